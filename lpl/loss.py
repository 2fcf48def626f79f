"""The locality preserving loss (LPL): neighbourhoods, their weights, and equations 4 to 8.

First phase: each unit's weights over its k neighbours in the source space are solved for (eq. 6).
Second phase: a map f is trained on pairs (eq. 7) with these weights frozen. Losses are given for
each pair by itself, so that a task can weight them; where the paper sums over pairs we take means,
which leaves learning rates independent of the size of a batch.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common.parallel import block_rows, map_rows
from common.retrieval import top_k

REGULARISATION = 1e-3  # of the trace of a Gram matrix, as scikit-learn's LLE has it


@partial(jax.jit, static_argnames="k")
def neighbours(vectors: Float[Array, "n d"], rows: Int[Array, " r"], k: int) -> Int[Array, "r k"]:
    """The k nearest other rows of each row by the Euclidean distance, nearest first; exact.

    Args:
      vectors: the source space.
      rows: of the units whose neighbours are sought.
      k: below n.
    """
    # |x - y|^2 is smallest where <x, y> - |y|^2 / 2 is largest.
    offset = -jnp.sum(vectors**2, axis=1, keepdims=True) / 2
    keys = jnp.concatenate([vectors, offset], axis=1)
    queries = jnp.concatenate([vectors[rows], jnp.ones((len(rows), 1))], axis=1)
    found = top_k(queries, keys, k + 1)[1]
    # The unit itself goes to the end; among k duplicates it may be missing, and the last one goes.
    order = jnp.argsort(found == rows[:, None], axis=1, stable=True)
    return jnp.take_along_axis(found, order[:, :k], axis=1)


@jax.jit
def lle_weights(
    vectors: Float[Array, "n d"],
    rows: Int[Array, " r"],
    index: Int[Array, "r k"],
    regularisation: float = REGULARISATION,
) -> Float[Array, "r k"]:
    """The weights of sum one that rebuild each row from its neighbours (eq. 6), in closed form.

    They minimise |x - sum_j w_j x_j|^2 + regularisation tr(G) |w|^2, where G is the Gram matrix of
    the neighbours' offsets x_j - x: without the second term they are not unique for k > d
    (Roweis and Saul 2000). Streamed over blocks of rows.

    Args:
      vectors: the source space.
      rows: of the units to rebuild.
      index: neighbours of each.
      regularisation: share of the trace added to the diagonal.
    """

    def block_weights(rows, vectors):
        weights = jnp.linalg.solve(
            _gram(vectors, *rows, regularisation), jnp.ones((*rows[1].shape, 1))
        )[..., 0]
        return weights / weights.sum(axis=1, keepdims=True)

    return _by_blocks(block_weights, vectors, rows, index)


@partial(jax.jit, static_argnames="steps")
def lle_weights_by_gradient(
    vectors: Float[Array, "n d"],
    rows: Int[Array, " r"],
    index: Int[Array, "r k"],
    regularisation: float = REGULARISATION,
    steps: int = 500,
) -> Float[Array, "r k"]:
    """As `lle_weights`, by the paper's first phase of gradient descent, from equal weights.

    Each step is projected to sum one. Steps are accelerated (Nesterov 1983) and of the length
    1 / tr(G), which never diverges.
    """

    def block_weights(rows, vectors):
        gram = _gram(vectors, *rows, regularisation)
        length = 1 / jnp.trace(gram, axis1=1, axis2=2)[:, None]

        def step(state, i):
            weights, ahead = state
            slope = jnp.einsum("bij,bj->bi", gram, ahead)
            moved = ahead - length * slope
            # To the nearest point of sum one; projecting the slope alone would drift by rounding.
            moved += (1 - moved.sum(axis=1, keepdims=True)) / moved.shape[1]
            return (moved, moved + i / (i + 3) * (moved - weights)), None

        start = jnp.full(rows[1].shape, 1 / rows[1].shape[1])
        return lax.scan(step, (start, start), jnp.arange(steps, dtype=jnp.float32))[0][0]

    return _by_blocks(block_weights, vectors, rows, index)


def _by_blocks(block_weights, vectors, rows, index):
    # The offsets are written, read for the Gram matrix and done with: an eighth of a block's usual
    # rows, which stay in a CPU core's own cache, take half the time (measured).
    block = block_rows(8 * index.shape[1] * vectors.shape[1])
    return map_rows(block_weights, (rows, index), vectors, block=block)


def _gram(vectors, rows, index, regularisation) -> Float[Array, "b k k"]:
    offsets = vectors[index] - vectors[rows][:, None]
    gram = jnp.einsum("bid,bjd->bij", offsets, offsets)
    trace = jnp.trace(gram, axis1=1, axis2=2)[:, None, None]
    # Where all neighbours coincide with the unit, any weights rebuild it: equal ones.
    return gram + jnp.eye(index.shape[1]) * jnp.where(trace > 0, regularisation * trace, 1.0)


def combine(neighbours: Float[Array, "n k d"], weights: Float[Array, "n k"]) -> Float[Array, "n d"]:
    """The weighted sums of neighbours, mapped or not: of eq. 5 and eq. 6."""
    return jnp.einsum("nkd,nk->nd", neighbours, weights)


def mse(mapped: Float[Array, "n d"], targets: Float[Array, "n d"]) -> Float[Array, " n"]:
    """|f(m_i) - t_i|^2 of each pair (eq. 4)."""
    return jnp.sum((mapped - targets) ** 2, axis=1)


def lpl(
    mapped_neighbours: Float[Array, "n k d"],
    weights: Float[Array, "n k"],
    targets: Float[Array, "n d"],
) -> Float[Array, " n"]:
    """|t_i - sum_j w_ij f(m_j)|^2 of each pair (eq. 5).

    For a linear or affine f this is `mse` of f(sum_j w_ij m_j), since weights sum to one: the loss
    then asks that f send the unit's reconstruction to its target too.
    """
    return mse(combine(mapped_neighbours, weights), targets)


def orthogonality(matrix: Float[Array, "p q"]) -> Float[Array, ""]:
    """|M M' - I|^2 for the smaller side of a map M, zero where its rows or columns are orthonormal.

    The paper prints it for the weights W of the neighbours (below eq. 6), where it has no meaning,
    and asks for it of the map (section 3.3, after Xing et al. 2015), which is meant here.
    """
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return jnp.sum((small @ small.T - jnp.eye(len(small))) ** 2)
