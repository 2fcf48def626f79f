"""Assignment of the rows of one embedding to those of another: the permutation of largest cosines.

All of it is held, n x n: for some thousands of rows.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

EPSILON = 0.02  # of the cosine
ITERATIONS = 20
TINY = 1e-30  # a column that the kernel does not reach


def exact(a: Float[Array, "n d"], b: Float[Array, "n d"]) -> Int[np.ndarray, " n"]:
    """The row of b of each row of a, in the permutation that maximises the sum of products.

    By scipy's shortest augmenting paths, on the products plus a number for each row and column,
    which change all permutations' sums alike: the potentials of entropic transport, under which
    nearly all of the paths are one step long.
    """
    products = np.asarray(a, np.float64) @ np.asarray(b, np.float64).T
    rows, columns = _potentials(jnp.asarray(products, jnp.float32))
    np.subtract(-np.asarray(rows, np.float64)[:, None], products, out=products)
    products -= np.asarray(columns, np.float64)
    return linear_sum_assignment(products)[1]


def rounded(a: Float[Array, "n d"], b: Float[Array, "n d"]) -> Int[np.ndarray, " n"]:
    """As `exact`, but nearly: an entropic plan, rounded to a permutation.

    A row and a column are matched where the plan puts more than half of the weight of both. The
    others, few where the embeddings correspond, are matched among themselves exactly.
    """
    scores, sure, best = _scores(jnp.asarray(a), jnp.asarray(b))
    sure, found = np.asarray(sure), np.array(best)
    left = np.flatnonzero(~sure)
    free = np.setdiff1d(np.arange(len(found)), found[sure])
    rest = -np.asarray(scores)[np.ix_(left, free)].astype(np.float64)
    found[left] = free[linear_sum_assignment(rest)[1]]
    return found


@partial(jax.jit, static_argnames="iterations")
def _potentials(
    products: Float[Array, "n n"], epsilon: float = EPSILON, iterations: int = ITERATIONS
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """What to add to rows and columns of `products`: P = exp((products + both) / epsilon).

    By products with the kernel, in which each row's largest entry is 1.
    """
    largest = products.max(axis=1)
    kernel = jnp.exp((products - largest[:, None]) / epsilon)

    def iterate(state, _):
        u = 1 / jnp.maximum(kernel @ state[1], TINY)
        return (u, 1 / jnp.maximum(u @ kernel, TINY)), None

    ones = jnp.ones(len(products))
    (u, v), _ = lax.scan(iterate, (ones, ones), length=iterations)
    return epsilon * jnp.log(u) - largest, epsilon * jnp.log(v)


@jax.jit
def _scores(a, b):
    """Products plus potentials, whether more than half of a row is in one column, and which."""
    products = a @ b.T
    rows, columns = _potentials(products)
    scores = products + rows[:, None] + columns
    best = scores.argmax(axis=1)
    # The columns of the plan sum to one, its rows nearly: two of these can't be in one column.
    return scores, scores.max(axis=1) > EPSILON * jnp.log(0.5), best
