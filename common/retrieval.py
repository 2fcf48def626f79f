"""Streamed nearest-neighbour retrieval between two sets of vectors.

Similarity is the inner product, which is the cosine for unit rows. No [n, m] array is held, see
`common/parallel.py`. Ties go to the lower index. Rows may be bfloat16, which halves their memory;
sums are float32 (benchmarks/README.md has the errors).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from common.parallel import block_rows, map_rows, scan_rows

GROUP_SIZE = 32  # columns in a group of `largest`; the fastest of 8 to 128
MIN_TILE_KEYS = 16_384  # minimal number of keys in a tile, measured
TILE_QUERIES = 1_024  # queries in a block if there are several tiles, measured


def products(a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """All inner products, summed in float32 for rows of any type."""
    return jnp.matmul(a, b.T, preferred_element_type=jnp.float32)


def largest(scores: Float[Array, "n m"], k: int) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """`lax.top_k`, faster for long rows: values and indices, best first.

    The k largest entries of a row are in the k groups of consecutive columns with the largest
    maxima, so one pass finds the maxima and `lax.top_k` is applied to k groups only. On CPUs
    `lax.top_k` of whole rows would take as long as inner products of 50 dimensions.
    """
    n, m = scores.shape
    groups = m // GROUP_SIZE
    if groups <= 8 * max(k, 10):
        return lax.top_k(scores, k)
    grouped = scores[:, : groups * GROUP_SIZE].reshape(n, groups, GROUP_SIZE)
    picked = jnp.sort(lax.top_k(grouped.max(axis=2), k)[1], axis=1)[:, :, None]
    values = jnp.take_along_axis(grouped, picked, axis=1).reshape(n, k * GROUP_SIZE)
    index = (picked * GROUP_SIZE + jnp.arange(GROUP_SIZE)).reshape(n, k * GROUP_SIZE)
    rest = jnp.broadcast_to(jnp.arange(groups * GROUP_SIZE, m), (n, m - groups * GROUP_SIZE))
    values = jnp.concatenate([values, scores[:, groups * GROUP_SIZE :]], axis=1)
    index = jnp.concatenate([index, rest], axis=1)
    values, place = lax.top_k(values, k)
    return values, jnp.take_along_axis(index, place, axis=1)


@partial(jax.jit, static_argnames="k")
def top_k(
    queries: Float[Array, "n d"], keys: Float[Array, "m d"], k: int
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """The k keys with the largest inner product with each query, best first: values, indices."""
    return _over_tiles(lambda q, keys: [products(q, keys)], [k], queries, keys)[0]


def _over_tiles(scores, counts, queries, *keys):
    """The `counts` largest of each score among all keys; keys are arrays that are cut into tiles.

    The products of a block of queries and a tile fit into the cache for any number of keys.
    `scores` maps a block of queries and a tile to a list of [block, tile size].
    """
    m = len(keys[0])
    tiles = max(1, m // max(MIN_TILE_KEYS, *counts))
    size = m // tiles

    def tile(start, size, counts, q, keys):
        found = scores(q, *(lax.dynamic_slice_in_dim(x, start, size) for x in keys))
        best = map(largest, found, counts)
        return tuple((values, index + start) for values, index in best)

    def block(q, *keys):
        def add(best, start):
            return _join(best, tile(start, size, counts, q, keys)), None

        best = tile(0, size, counts, q, keys)
        if tiles > 1:
            best, _ = lax.scan(add, best, size * jnp.arange(1, tiles))
        if rest := m - tiles * size:  # fewer keys than tiles, and maybe fewer than the counts
            fewer = [min(count, rest) for count in counts]
            best = _join(best, tile(m - rest, rest, fewer, q, keys))
        return best

    return map_rows(block, queries, *keys, block=block_rows(m) if tiles == 1 else TILE_QUERIES)


def _join(first, second):
    """Merges sorted lists; ties go to the first list, whose indices are lower."""

    def join(one, other):
        values, index = (jnp.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
        values, place = lax.top_k(values, one[0].shape[1])
        return values, jnp.take_along_axis(index, place, axis=1)

    return tuple(map(join, first, second))


@partial(jax.jit, static_argnames="k")
def mean_top_k(
    queries: Float[Array, "n d"], keys: Float[Array, "m d"], k: int
) -> Float[Array, " n"]:
    """r(q), the mean of the k largest similarities: the hubness in CSLS (Lample et al. 2018)."""
    return top_k(queries, keys, k)[0].mean(axis=1)


@partial(jax.jit, static_argnames=("k", "neighbours"))
def csls_top_k(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    k: int,
    neighbours: int = 10,
    key_hubness: Float[Array, " m"] | None = None,
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """As `top_k`, under CSLS = 2 cos - r_keys(q) - r_queries(k) (Lample et al. 2018, eq. 4).

    Args:
      queries: unit rows.
      keys: unit rows.
      k: number of keys returned for each query.
      neighbours: number of nearest neighbours in r; all keys or queries if there are fewer.
      key_hubness: r_queries of the keys, if it is known; this saves a pass.
    """
    if key_hubness is None:
        key_hubness = mean_top_k(keys, queries, min(neighbours, queries.shape[0]))

    def scores(q, keys, key_hubness):
        similarity = products(q, keys)
        return similarity, 2 * similarity - key_hubness

    counts = [min(neighbours, keys.shape[0]), k]
    (nearest, _), (values, index) = _over_tiles(scores, counts, queries, keys, key_hubness)
    return values - nearest.mean(axis=1, keepdims=True), index


@jax.jit
def log_mass(
    keys: Float[Array, "m d"], queries: Float[Array, "n d"], beta: float = 30.0
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
    beta: float = 30.0,
    key_mass: Float[Array, " m"] | None = None,
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """As `top_k`, under the log of the inverted softmax (Smith et al. 2017, eq. 9).

    score(q, y) = beta cos(q, y) - log sum_q' exp(beta cos(q', y)), where q' are all queries. Pass
    `key_mass`, from `log_mass`, if the sum is known or is over other queries.
    """
    if key_mass is None:
        key_mass = log_mass(keys, queries, beta)

    def scores(q, keys, key_mass):
        return [beta * products(q, keys) - key_mass]

    return _over_tiles(scores, [k], queries, keys, key_mass)[0]


class Dictionary(NamedTuple):
    """Matched rows of two spaces.

    Attributes:
      to_target: the best target row of every source row.
      to_source: the best source row of every target row.
      score: CSLS of each source row and its best target row.
      mutual: whether the source row is also the best one of that target row.
      confidence: of each of these pairs, from 0 to 1, see `csls_dictionary`.
    """

    to_target: Int[Array, " n"]
    to_source: Int[Array, " m"]
    score: Float[Array, " n"]
    mutual: Bool[Array, " n"]
    confidence: Float[Array, " n"]


@partial(jax.jit, static_argnames=("neighbours", "frequent"))
def csls_dictionary(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    *,
    neighbours: int = 10,
    frequent: int = 20_000,
    inverse_temperature: float = 30.0,
) -> Dictionary:
    """Best partners by CSLS(x, y) = 2 cos(x, y) - r(x) - r(y) (Lample et al. 2018, eq. 4).

    r is the mean cosine of a row with its nearest neighbours in the other space. The confidence of
    a pair is the smaller of its softmax probabilities, exp(b cos) over its sum over all target rows
    and over its sum over all source rows (the softmax and the inverted softmax of Smith et al.
    2017, whose b is 30). All pairs of rows are met once: a matrix product, two argmaxes and two
    sums. Beside the rows it holds little more than a block of rows of their similarities (250 MiB
    for 200,000 target rows).

    Args:
      source: unit rows in common coordinates, the most frequent first.
      target: likewise.
      neighbours: number of nearest neighbours in r; all rows if there are fewer.
      frequent: number of rows of the other space among which these neighbours are; 20,000 of
        200,000 are enough to estimate r.
      inverse_temperature: b.
    """
    target_hubness = mean_top_k(target, source[:frequent], min(neighbours, len(source), frequent))
    num_neighbours = min(neighbours, len(target), frequent)

    # In eight parts, since the compiler stores the weights: 250 MiB instead of 415, and faster.
    def eighths(x):
        return x.reshape(8, -1, *x.shape[1:])

    def add_weights(total, rows):
        similarity, valid = rows
        weight = jnp.where(valid[:, None], jnp.exp(inverse_temperature * (similarity - 1)), 0.0)
        return total + weight.sum(axis=0), weight.sum(axis=1)

    def step(carry, index, valid, block, target, target_hubness):
        best, choice, total = carry
        similarity = products(block, target)
        hubness = largest(similarity[:, :frequent], num_neighbours)[0].mean(axis=1)
        score = 2 * similarity - target_hubness
        to_target = score.argmax(axis=1)
        nearest = jnp.take_along_axis(similarity, to_target[:, None], axis=1)[:, 0]
        total, row_total = lax.scan(add_weights, total, jax.tree.map(eighths, (similarity, valid)))
        reverse = 2 * similarity - jnp.where(valid, hubness, jnp.inf)[:, None]
        winner, value = reverse.argmax(axis=0), reverse.max(axis=0)
        better = value > best  # strictly, so that the lower row wins a tie
        carry = (
            jnp.where(better, value, best),
            jnp.where(better, index[winner], choice),
            total,
        )
        found = jnp.exp(inverse_temperature * (nearest - 1))
        return carry, (to_target, score.max(axis=1) - hubness, found, row_total.ravel())

    def merge(first, second):
        better = second[0] > first[0]
        best, choice = (jnp.where(better, b, a) for a, b in zip(first[:2], second[:2], strict=True))
        return best, choice, first[2] + second[2]

    m = target.shape[0]
    init = jnp.full(m, -jnp.inf), jnp.zeros(m, jnp.int32), jnp.zeros(m)
    (_, to_source, target_total), (to_target, score, weight, source_total) = scan_rows(
        step, init, merge, source, target, target_hubness, block=block_rows(m)
    )
    total = jnp.maximum(source_total, target_total[to_target])
    return Dictionary(
        to_target=to_target,
        to_source=to_source,
        score=score,
        mutual=to_source[to_target] == jnp.arange(source.shape[0]),
        confidence=weight / jnp.maximum(total, 1e-30),
    )


@jax.jit
def confidence(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    rows: Int[Array, " p"],
    columns: Int[Array, " p"],
    inverse_temperature: float = 30.0,
) -> Float[Array, " p"]:
    """The confidence of given pairs, as in `csls_dictionary`.

    Args:
      source: unit rows in common coordinates.
      target: likewise.
      rows: the source row of each pair.
      columns: its target row.
      inverse_temperature: b.
    """

    def one(pair):
        x, y = source[pair[0]], target[pair[1]]
        totals = [jnp.exp(inverse_temperature * (z - 1)).sum() for z in (target @ x, source @ y)]
        return jnp.exp(inverse_temperature * (x @ y - 1)) / jnp.maximum(jnp.maximum(*totals), 1e-30)

    return lax.map(one, (rows, columns), batch_size=256)
