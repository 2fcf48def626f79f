"""The locality preserving loss (LPL): neighbours, their weights, and equations 4 to 8.

In the first phase, the weights with which the k nearest neighbours of a source vector reconstruct
it are solved for (equation 6). In the second phase, a map f is trained on known pairs (equation 7)
while these weights are constant. Losses are returned for each pair, so that a task can weight them.
Where the paper sums over pairs we take means, so that learning rates do not depend on the batch
size.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common.arrays import AnyArray, RealNumber
from common.errors import check_count, check_penalty
from common.linear import centred
from common.parallel import block_rows, map_rows
from common.retrieval import top_k

REGULARISATION = 1e-3  # relative to the trace of the Gram matrix, as in scikit-learn's LLE


@partial(jax.jit, static_argnames="k")
def neighbours(vectors: Float[Array, "n d"], rows: Int[Array, " r"], k: int) -> Int[Array, "r k"]:
    """The k < n nearest other rows of the given rows by the Euclidean distance, nearest first."""
    vectors = centred(vectors)  # a large common offset would round the products
    # |x - y|^2 = |x|^2 - 2 (<x, y> - |y|^2 / 2), so the nearest y has the largest bracket.
    offset = -jnp.sum(vectors**2, axis=1, keepdims=True) / 2
    keys = jnp.concatenate([vectors, offset], axis=1)
    queries = jnp.concatenate([vectors[rows], jnp.ones((len(rows), 1))], axis=1)
    check_count("k", k, max(0, len(vectors) - 1), "other rows")
    nearest = top_k(queries, keys, k + 1)[1]
    # The row itself is moved to the end and cut off. It may be missing from the list if the vector
    # has k duplicates; then the last one is cut off.
    order = jnp.argsort(nearest == rows[:, None], axis=1, stable=True)
    return jnp.take_along_axis(nearest, order[:, :k], axis=1)


def closed_form(gram: Float[Array, "b k k"]) -> Float[Array, "b k"]:
    """The minimum of w' G w among weights w of sum 1, for each Gram matrix G."""
    weights = jnp.linalg.solve(gram, jnp.ones((*gram.shape[:2], 1)))[..., 0]
    return weights / weights.sum(axis=1, keepdims=True)


def gradient_descent(gram: Float[Array, "b k k"], steps: int = 500) -> Float[Array, "b k"]:
    """As `closed_form`, by gradient descent from equal weights, which is the paper's first phase.

    Every step is projected onto the weights of sum 1 and accelerated (Nesterov 1983). Its length is
    1 / tr(G), at most the inverse of the largest eigenvalue of G, so the descent can't diverge.
    """
    length = 1 / jnp.trace(gram, axis1=1, axis2=2)[:, None]

    def step(state, i):
        weights, ahead = state
        moved = ahead - length * jnp.einsum("bij,bj->bi", gram, ahead)
        # The weights are projected, not the gradient: rounding errors would add up in the sum.
        moved += (1 - moved.sum(axis=1, keepdims=True)) / moved.shape[1]
        return (moved, moved + i / (i + 3) * (moved - weights)), None

    start = jnp.full(gram.shape[:2], 1 / gram.shape[1])
    return lax.scan(step, (start, start), jnp.arange(steps, dtype=jnp.float32))[0][0]


WEIGHTS = {"closed_form": closed_form, "gradient": gradient_descent}


def lle_weights(
    vectors: Float[AnyArray, "n d"],
    rows: Int[AnyArray, " r"],
    index: Int[AnyArray, "r k"],
    regularisation: RealNumber = REGULARISATION,
    solve: Callable = closed_form,
) -> Float[Array, "r k"]:
    """The weights, of sum 1, that reconstruct each row from its neighbours (equation 6).

    They minimise |x - sum_j w_j x_j|^2 + regularisation tr(G) |w|^2, where G is the Gram matrix of
    the offsets x_j - x. Without the second term they are not unique if k > d (Roweis and Saul
    2000). `index` has the neighbours of `rows`, which are processed in blocks, and `solve` is one
    of `WEIGHTS`.

    Raises:
      UserError: a regularisation that is negative or not finite.
    """
    check_penalty("regularisation", regularisation)
    if not index.size:
        return jnp.zeros(index.shape)
    return _lle_weights(vectors, rows, index, regularisation, solve)


@partial(jax.jit, static_argnames="solve")
def _lle_weights(vectors, rows, index, regularisation, solve):
    def block_weights(rows, vectors):
        row, index = rows
        offsets = vectors[index] - vectors[row][:, None]
        gram = jnp.einsum("bid,bjd->bij", offsets, offsets)
        trace = jnp.trace(gram, axis1=1, axis2=2)[:, None, None]
        # If all neighbours equal the vector, all weights reconstruct it: I gives equal ones.
        diagonal = jnp.where(trace > 0, regularisation * trace, 1.0)
        return solve(gram + jnp.eye(index.shape[1]) * diagonal)

    # The offsets [block, k, d] are read once, for the Gram matrix. Blocks of an eighth of the usual
    # number of rows stay in the cache of a CPU core, which halves the time (measured).
    block = block_rows(8 * index.shape[1] * vectors.shape[1])
    return map_rows(block_weights, (rows, index), vectors, block=block)


def combine(neighbours: Float[Array, "n k d"], weights: Float[Array, "n k"]) -> Float[Array, "n d"]:
    """The weighted sums of neighbours in equations 5 and 6: sum_j w_ij x_ij."""
    return jnp.einsum("nkd,nk->nd", neighbours, weights)


def mse(mapped: Float[Array, "n d"], targets: Float[Array, "n d"]) -> Float[Array, " n"]:
    """|f(m_i) - t_i|^2 of each pair (equation 4)."""
    return jnp.sum((mapped - targets) ** 2, axis=1)


def lpl(
    mapped_neighbours: Float[Array, "n k d"],
    weights: Float[Array, "n k"],
    targets: Float[Array, "n d"],
) -> Float[Array, " n"]:
    """|t_i - sum_j w_ij f(m_j)|^2 of each pair (equation 5).

    If f is linear or affine this equals `mse` of f(sum_j w_ij m_j), since the weights sum to 1: f
    is also asked to map the reconstruction of a vector to its target.
    """
    return mse(combine(mapped_neighbours, weights), targets)


def orthogonality(matrix: Float[Array, "p q"]) -> Float[Array, ""]:
    """|M M' - I|^2 over the smaller side of M; zero if its rows or columns are orthonormal.

    The paper prints this loss for the weights W of the neighbours (below equation 6), where it has
    no meaning. Section 3.3 asks for it of the map, after Xing et al. (2015), as is done here.
    """
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return jnp.sum((small @ small.T - jnp.eye(len(small))) ** 2)
