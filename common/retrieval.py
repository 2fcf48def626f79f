"""Streamed nearest-neighbour retrieval between two sets of vectors.

Similarity is the inner product, which is the cosine for unit rows. No [n, m] array is held, see
`common/parallel.py`. Ties go to the lower index. Rows may be bfloat16, which halves their memory;
sums are float32 (benchmarks/README.md has the errors).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from common.arrays import AnyArray, RealNumber, Unchecked
from common.errors import UserError, check_count
from common.parallel import all_parts, block_rows, map_rows, on_cpu, on_tpu, scan_rows

GROUP_SIZE = 16  # entries in a group of `largest`; measured
MIN_TILE_KEYS = 16_384  # minimal number of keys in a tile, measured
MAX_PADDING = 256  # queries that are added to a request
TILE_QUERIES = 1_024  # queries in a block if there are several tiles, measured


class TopK(NamedTuple):
    """The largest scores of each row, best first, and their columns."""

    values: Float[Array, "n k"]
    index: Int[Array, "n k"]


def products(a: Float[AnyArray, "n d"], b: Float[AnyArray, "m d"]) -> Float[Array, "n m"]:
    """All inner products, summed in float32 for rows of any type.

    On a TPU those of unit rows are wrong by 2e-6 at most, in half the time of full precision.
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

    XLA does not vectorise argmax on CPUs, which takes four times as long. The compiler may compute
    `scores` twice: they are equal if only multiplications by powers of two follow a matrix product.
    """
    best = scores.max(axis=axis)
    place = lax.broadcasted_iota(jnp.float32, scores.shape, axis)
    first = jnp.where(scores == jnp.expand_dims(best, axis), place, scores.shape[axis] - 1)
    return best, first.min(axis=axis).astype(jnp.int32)


def top_k(queries: Annotated[Unchecked, "n d"], keys: Annotated[Unchecked, "m d"], k: int) -> TopK:
    """The k keys with the largest inner product with each query, best first; they are checked."""
    try:
        queries, keys = (
            x if isinstance(x, np.ndarray | jax.Array) else np.asarray(x, float)
            for x in (queries, keys)
        )
    except (TypeError, ValueError) as error:
        raise UserError("The queries or the keys are no arrays of numbers: give rows.") from error
    shapes = queries.shape, keys.shape
    if [*map(len, shapes)] != [2, 2] or shapes[0][1] != shapes[1][1]:
        given = "The queries have shape {} and the keys {}".format(*map(list, shapes))
        raise UserError(f"{given}: give rows of one width, [n, d] and [m, d].")
    check_count("k", k, len(keys), "keys")
    n = len(queries)
    padding = (1 << max(0, n - 1).bit_length()) - n
    if not 0 < padding <= MAX_PADDING or isinstance(queries, Tracer):
        return _top_k(queries, keys, k)
    # One program serves the requests of a service, whose numbers of queries differ.
    found = _top_k(np.pad(queries, ((0, padding), (0, 0))), keys, k)
    return TopK(*(jax.device_put(np.asarray(array)[:n]) for array in found))


@partial(jax.jit, static_argnames="k")
def _top_k(queries, keys, k):
    return top_k_over_tiles(lambda rows, tile: [products(rows, tile)], [k], queries, keys)[0]


def top_k_over_tiles(
    scores: Callable[..., Sequence[Float[Array, "b t"]]],
    counts: Sequence[int],
    queries: Float[Array, "n d"],
    *keys: Float[Array, "m ..."],
) -> tuple[TopK, ...]:
    """The `counts` largest of each score of each query among all keys.

    `scores` maps a block of queries and a tile of each array of keys, which fit into the cache for
    any number of keys, to one or more scores. UserError: more than there are keys, or none.
    """
    for count in counts:
        check_count("k", count, len(keys[0]), "keys")

    def num_tiles(m):
        return max(1, m // max(MIN_TILE_KEYS, *counts))

    def best_of_tile(start, size, queries, keys):
        tile = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, size), keys)
        of_tile = (tile.masked(x, -jnp.inf) for x in scores(queries, *tile.rows))
        best = (largest(x, min(count, size)) for x, count in zip(of_tile, counts, strict=True))
        return tuple(TopK(values, index + tile.index[0]) for values, index in best)

    def step(carry, block, keys):
        m = len(keys.index)
        tiles, size = num_tiles(m), m // num_tiles(m)
        best = best_of_tile(0, size, block.rows, keys)

        def add(best, start):
            return tuple(map(_join, best, best_of_tile(start, size, block.rows, keys))), None

        if tiles > 1:
            best, _ = lax.scan(add, best, size * jnp.arange(1, tiles, dtype=jnp.int32))
        if rest := m - tiles * size:  # fewer keys than tiles
            best = tuple(map(_join, best, best_of_tile(m - rest, rest, block.rows, keys)))
        return carry, tuple(map(largest_of_parts, best, counts))

    def block(m, parts):
        return block_rows(m, parts) if num_tiles(-(-m // parts)) == 1 else TILE_QUERIES

    return scan_rows(step, lambda keys: (), queries, keys, block=block)[1]


def largest_of_parts(best: TopK, k: int) -> TopK:
    """The k largest of each row among all columns, from those of the columns of each device."""
    values = all_parts(best.values, axis=1)
    if values is best.values:  # of one device
        return best
    values, place = lax.top_k(values, k)
    return TopK(values, jnp.take_along_axis(all_parts(best.index, axis=1), place, axis=1))


def _join(first: TopK, second: TopK) -> TopK:
    """Merges sorted lists; ties go to the first list, whose indices are lower."""
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
    """As `top_k`, by log inverted softmax (Smith et al. 2017, eq. 9): beta cos(q, y) - `key_mass`.

    None: `log_mass` over these queries, the log of sum_q' exp(beta cos(q', y)).
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
