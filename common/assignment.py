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
ITERATIONS = 10  # at most
TOLERANCE = 0.03  # mean error of the plan's rows at which they end
FEW = 3  # enough where only the order of the search depends on them
TINY = 1e-30  # a column that the kernel does not reach


def exact(a: Float[Array, "n d"], b: Float[Array, "n d"]) -> Int[np.ndarray, " n"]:
    """The row of b of each row of a, in the permutation that maximises the sum of products.

    By scipy's shortest augmenting paths, on the products plus a number for each row and column,
    which change all permutations' sums alike: the potentials of entropic transport, under which
    nearly all of the paths are one step long. The products are float32's.
    """
    products, rows, columns, _ = map(np.asarray, _products(a, b, FEW))
    cost = -rows.astype(np.float64)[:, None] - products
    cost -= columns
    return linear_sum_assignment(cost)[1]


def rounded(a: Float[Array, "n d"], b: Float[Array, "n d"]) -> Int[np.ndarray, " n"]:
    """As `exact`, but nearly: an entropic plan, rounded to a permutation.

    A row and a column are matched where most of the weight of both is on their entry, and the row's
    weight is right. The others, few where the embeddings correspond, are matched among themselves
    exactly.
    """
    scores, best, sure = _scores(a, b)
    sure, found = np.asarray(sure), np.array(best)
    left = np.flatnonzero(~sure)
    free = np.setdiff1d(np.arange(len(found)), found[sure])
    rest = -np.asarray(scores)[np.ix_(left, free)].astype(np.float64)
    found[left] = free[linear_sum_assignment(rest)[1]]
    return found


@partial(jax.jit, static_argnames="iterations")
def _products(
    a: Float[Array, "n d"], b: Float[Array, "n d"], iterations: int
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """Products, what to add to their rows and columns, and the sums of the rows of the plan.

    The plan is exp((products + both) / EPSILON), by Sinkhorn iterations with a kernel in which each
    row's largest entry is 1; its columns sum to one. They end early once nearly all rows do, too.
    """
    products = a @ b.T
    largest = products.max(axis=1)
    kernel = jnp.exp((products - largest[:, None]) / EPSILON)

    def goes_on(state):
        done, u, _, reached = state
        return (done < iterations) & (jnp.abs(u * reached - 1).mean() > TOLERANCE)

    def iterate(state):
        done, _, _, reached = state
        u = 1 / jnp.maximum(reached, TINY)
        v = 1 / jnp.maximum(u @ kernel, TINY)
        return done + 1, u, v, kernel @ v

    ones = jnp.ones(len(products))
    start = iterate((0, ones, ones, kernel.sum(axis=1)))
    _, u, v, reached = lax.while_loop(goes_on, iterate, start)
    return products, EPSILON * jnp.log(u) - largest, EPSILON * jnp.log(v), u * reached


@jax.jit
def _scores(a, b):
    """Products plus potentials, the best column of each row, and whether it is surely its own."""
    products, rows, columns, sums = _products(a, b, ITERATIONS)
    scores = products + rows[:, None] + columns
    # Two entries of a column that sums to one can't both be above a half; not .5, for roundings.
    most = scores.max(axis=1) > EPSILON * jnp.log(0.6)
    return scores, scores.argmax(axis=1), most & (jnp.abs(sums - 1) < 0.1)
