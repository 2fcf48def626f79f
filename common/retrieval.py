"""Streamed nearest-neighbour retrieval between two sets of vectors.

Similarity is the inner product, which is the cosine for unit rows. No [n, m] array is held, see
`common/parallel.py`. Ties go to the lower index. Rows may be bfloat16, which halves their memory;
sums are float32 (benchmarks/README.md has the errors).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common.arrays import AnyArray, RealNumber
from common.errors import check_count
from common.parallel import block_rows, map_rows, on_cpu, on_tpu

GROUP_SIZE = 16  # entries in a group of `largest`; measured
MIN_TILE_KEYS = 16_384  # minimal number of keys in a tile, measured
TILE_QUERIES = 1_024  # queries in a block if there are several tiles, measured


class TopK(NamedTuple):
    """The largest scores of each row, best first, and their columns."""

    values: Float[Array, "n k"]
    index: Int[Array, "n k"]


def products(a: Float[AnyArray, "n d"], b: Float[AnyArray, "m d"]) -> Float[Array, "n m"]:
    """All inner products, summed in float32 for rows of any type.

    A TPU multiplies float32 by three products of bfloat16, half of those of full precision. The
    products of unit rows are then wrong by 2e-6 at most, a few times the rounding of their sums.
    """
    precision = lax.Precision.HIGH if on_tpu() else None
    return jnp.matmul(a, b.T, preferred_element_type=jnp.float32, precision=precision)


def largest(scores: Float[AnyArray, "n m"], k: int, axis: int = 1) -> TopK:
    """`lax.top_k` of each row, or with `axis` 0 of each column, faster for long ones.

    The k largest entries of a row are in the k groups of consecutive entries with the largest
    maxima, so one pass finds the maxima and `lax.top_k` is applied to k groups only. On CPUs
    `lax.top_k` of whole rows would take as long as inner products of 50 dimensions. TPUs have an
    operation for whole rows.
    """
    size = scores.shape[axis]
    groups = size // GROUP_SIZE
    if on_tpu() or groups <= 8 * max(k, 10):
        return TopK(*lax.top_k(scores if axis else scores.T, k))
    maxima = _maxima_of_groups(scores, groups, axis)
    picked = jnp.sort(lax.top_k(maxima if axis else maxima.T, k)[1], axis=1)[:, :, None]
    place = jnp.arange(size, dtype=picked.dtype)
    index = (picked * GROUP_SIZE + place[:GROUP_SIZE]).reshape(len(picked), k * GROUP_SIZE)
    rest = jnp.broadcast_to(place[groups * GROUP_SIZE :], (len(picked), size % GROUP_SIZE))
    index = jnp.concatenate([index, rest], axis=1)
    lines = jnp.arange(len(picked))[:, None]
    values, best = lax.top_k(scores[lines, index] if axis else scores[index, lines], k)
    return TopK(values, jnp.take_along_axis(index, best, axis=1))


def _maxima_of_groups(scores, groups: int, axis: int) -> Float[AnyArray, "_ _"]:
    """The largest of each group of consecutive entries along an axis."""
    if on_cpu():  # where a slice that is reshaped is a copy
        window = (1, GROUP_SIZE) if axis else (GROUP_SIZE, 1)
        return lax.reduce_window(scores, -jnp.inf, lax.max, window, window, "valid")
    if axis:
        return scores[:, : groups * GROUP_SIZE].reshape(-1, groups, GROUP_SIZE).max(axis=2)
    return scores[: groups * GROUP_SIZE].reshape(groups, GROUP_SIZE, -1).max(axis=1)


def first_largest(
    scores: Float[Array, "n m"], axis: int
) -> tuple[Float[Array, " _"], Int[Array, " _"]]:
    """The maxima along an axis, and the place of the first entry that equals each.

    These are max and argmax, of which XLA does not vectorise the latter on CPUs: for a block of 584
    rows of 4,000 numbers it takes four times as long as both minimum and maximum. The compiler may
    compute `scores` twice, for the maxima and for the places, but the results are bitwise equal if
    there are no multiplications but by powers of two between the matrix products and the scores;
    the rounding of others depends on the operations they are fused with. Places are counted in
    float32, whose minimum is fast: exact up to 2^24.
    """
    best = scores.max(axis=axis)
    place = lax.broadcasted_iota(jnp.float32, scores.shape, axis)
    first = jnp.where(scores == jnp.expand_dims(best, axis), place, scores.shape[axis] - 1)
    return best, first.min(axis=axis).astype(jnp.int32)


@partial(jax.jit, static_argnames="k")
def top_k(queries: Float[Array, "n d"], keys: Float[Array, "m d"], k: int) -> TopK:
    """The k keys with the largest inner product with each query, best first."""
    return top_k_over_tiles(_products_alone, [k], queries, keys)[0]


def _products_alone(queries, keys):
    return [products(queries, keys)]


def top_k_over_tiles(
    scores: Callable[..., Sequence[Float[Array, "b t"]]],
    counts: Sequence[int],
    queries: Float[Array, "n d"],
    *keys: Float[Array, "m ..."],
) -> tuple[TopK, ...]:
    """The largest of each score of each query among all keys.

    The products of a block of queries and a tile of keys fit into the cache for any number of keys.

    Args:
      scores: maps a block of queries and a tile of each array of keys to one or more scores.
      counts: how many of each score are returned.
      queries: rows.
      *keys: arrays with m rows, which are cut into tiles.

    Raises:
      UserError: more are to be returned than there are keys, or none.
    """
    m = len(keys[0])
    for count in counts:
        check_count("k", count, m, "keys")
    tiles = max(1, m // max(MIN_TILE_KEYS, *counts))
    size = m // tiles

    def tile(start, size, counts, queries, keys):
        of_tile = scores(queries, *(lax.dynamic_slice_in_dim(x, start, size) for x in keys))
        best = map(largest, of_tile, counts)
        return tuple(TopK(values, index + start) for values, index in best)

    def block(queries, *keys):
        def add(best, start):
            return _join(best, tile(start, size, counts, queries, keys)), None

        best = tile(0, size, counts, queries, keys)
        if tiles > 1:
            best, _ = lax.scan(add, best, size * jnp.arange(1, tiles, dtype=jnp.int32))
        if rest := m - tiles * size:  # fewer keys than tiles, and maybe fewer than the counts
            fewer = [min(count, rest) for count in counts]
            best = _join(best, tile(m - rest, rest, fewer, queries, keys))
        return best

    return map_rows(block, queries, *keys, block=block_rows(m) if tiles == 1 else TILE_QUERIES)


def _join(first: tuple[TopK, ...], second: tuple[TopK, ...]) -> tuple[TopK, ...]:
    """Merges sorted lists; ties go to the first list, whose indices are lower."""
    return tuple(map(_join_lists, first, second))


def _join_lists(first: TopK, second: TopK) -> TopK:
    values, index = (jnp.concatenate(pair, axis=1) for pair in zip(first, second, strict=True))
    values, place = lax.top_k(values, first.values.shape[1])
    return TopK(values, jnp.take_along_axis(index, place, axis=1))


@jax.jit
def log_mass(
    keys: Float[Array, "m d"], queries: Float[Array, "n d"], beta: RealNumber = 30.0
) -> Float[Array, " m"]:
    """Log-divisor of the inverted softmax: log sum_q exp(beta cos(q, key)) over all queries q."""

    def block_mass(keys, queries):
        return jax.nn.logsumexp(beta * products(keys, queries), axis=1)

    return map_rows(block_mass, keys, queries, block=block_rows(len(queries)))


@partial(jax.jit, static_argnames="k")
def inverted_softmax_top_k(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    k: int,
    beta: RealNumber = 30.0,
    key_mass: Float[Array, " m"] | None = None,
) -> TopK:
    """As `top_k`, under the log of the inverted softmax (Smith et al. 2017, eq. 9).

    score(q, y) = beta cos(q, y) - log sum_q' exp(beta cos(q', y)), where q' are all queries. Pass
    `key_mass`, from `log_mass`, if the sum is known or is over other queries.
    """
    mass = log_mass(keys, queries, beta) if key_mass is None else key_mass

    def scores(q, keys, key_mass):
        return [beta * products(q, keys) - key_mass]

    return top_k_over_tiles(scores, [k], queries, keys, mass)[0]


@jax.jit
def in_order(
    queries: Float[Array, "n d"], keys: Float[Array, "m d"], candidates: Int[Array, "n c"]
) -> Int[Array, "n c"]:
    """The candidates of each query, rows of `keys`, in descending order of the inner product."""

    def block(rows, keys):
        queries, candidates = rows
        scores = jnp.einsum("bd,bcd->bc", queries, keys[candidates])
        order = jnp.argsort(-scores, axis=1, stable=True)
        return jnp.take_along_axis(candidates, order, axis=1)

    block_size = block_rows(candidates.shape[1] * queries.shape[1])
    return map_rows(block, (queries, candidates), keys, block=block_size)
