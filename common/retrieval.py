"""Streamed nearest-neighbour retrieval between two sets of vectors.

Similarity is the inner product: give unit rows for the cosine. No [n, m] array is ever held, see
`common/parallel.py`. Ties go to the lower index. Rows may be bfloat16: their memory is halved, sums
are float32 (benchmarks/README.md has what the rounding costs).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common.parallel import block_rows, map_rows

GROUP = 32  # columns of which `largest` looks at the maximum first; measured, 8 to 128 tried
TILE = 16_384  # many keys meet the queries in tiles of so many at least, measured
BLOCK = 1_024  # queries that a tile meets at once, measured


def products(a: Float[Array, "n d"], b: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """All inner products, summed in float32 whatever the rows are, bfloat16 for instance."""
    return jnp.matmul(a, b.T, preferred_element_type=jnp.float32)


def largest(scores: Float[Array, "n m"], k: int) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """`lax.top_k`, which on CPUs takes as long as the products of 50 dimensions, for long rows.

    The k largest of a row lie in its k groups of largest maximum: one pass for the maxima, then a
    choice among k groups. Ties go to the lower index there too, as groups are runs of columns.
    """
    n, m = scores.shape
    groups = m // GROUP
    if groups <= 8 * max(k, 10):
        return lax.top_k(scores, k)
    whole = scores[:, : groups * GROUP].reshape(n, groups, GROUP)
    picked = jnp.sort(lax.top_k(whole.max(axis=2), k)[1], axis=1)[:, :, None]
    values = jnp.take_along_axis(whole, picked, axis=1).reshape(n, k * GROUP)
    index = (picked * GROUP + jnp.arange(GROUP)).reshape(n, k * GROUP)
    rest = jnp.broadcast_to(jnp.arange(groups * GROUP, m), (n, m - groups * GROUP))
    values = jnp.concatenate([values, scores[:, groups * GROUP :]], axis=1)
    index = jnp.concatenate([index, rest], axis=1)
    values, place = lax.top_k(values, k)
    return values, jnp.take_along_axis(index, place, axis=1)


@partial(jax.jit, static_argnames="k")
def top_k(
    queries: Float[Array, "n d"], keys: Float[Array, "m d"], k: int
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """The k keys of largest inner product with each query, best first: values and indices."""
    return _over_tiles(lambda q, keys: [products(q, keys)], [k], queries, keys)[0]


def _over_tiles(scores, counts, queries, *keys):
    """The `largest` of each score among all of the keys, by tiles where there are many of them.

    A tile's products stay near the cache and are of one size, however many keys there are.

    Args:
      scores: `(queries, *tile) -> [[b, size], ...]`, of blocks of queries.
      counts: how many of the largest, for each score.
      queries: [n, d].
      *keys: arrays with m leading rows, that are cut into tiles together.
    """
    m = len(keys[0])
    tiles = max(1, m // max(TILE, *counts))
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
        if rest := m - tiles * size:  # fewer than tiles: maybe fewer than are sought
            fewer = [min(count, rest) for count in counts]
            best = _join(best, tile(m - rest, rest, fewer, q, keys))
        return best

    return map_rows(block, queries, *keys, block=block_rows(m) if tiles == 1 else BLOCK)


def _join(first, second):
    """The best of each two lists, those of the first before their equals in the second."""

    def join(one, other):
        values, index = (jnp.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
        values, place = lax.top_k(values, one[0].shape[1])
        return values, jnp.take_along_axis(index, place, axis=1)

    return tuple(map(join, first, second))


@partial(jax.jit, static_argnames="k")
def mean_top_k(
    queries: Float[Array, "n d"], keys: Float[Array, "m d"], k: int
) -> Float[Array, " n"]:
    """r(q): the mean of the k largest similarities, CSLS's measure of hubness (Lample 2018)."""
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

    `neighbours` is cut to the number of keys or queries where there are fewer. `key_hubness` is
    r_queries of the keys where it is known already, and saves a pass.
    """
    if key_hubness is None:
        key_hubness = mean_top_k(keys, queries, min(neighbours, queries.shape[0]))
    return _penalised_top_k(queries, keys, key_hubness, k, min(neighbours, keys.shape[0]))


def _penalised_top_k(queries, keys, key_penalty, k, neighbours):
    def scores(q, keys, key_penalty):
        similarity = products(q, keys)
        return similarity, 2 * similarity - key_penalty

    counts = [neighbours, k]
    (nearest, _), (values, index) = _over_tiles(scores, counts, queries, keys, key_penalty)
    return values - nearest.mean(axis=1, keepdims=True), index


@jax.jit
def log_mass(
    keys: Float[Array, "m d"], queries: Float[Array, "n d"], beta: float = 30.0
) -> Float[Array, " m"]:
    """Log sum over all queries q of exp(beta cos(q, key)), what the inverted softmax divides by."""
    return map_rows(
        lambda key, queries: jax.nn.logsumexp(beta * products(key, queries), axis=1),
        keys,
        queries,
        block=block_rows(queries.shape[0]),
    )


@partial(jax.jit, static_argnames="k")
def inverted_softmax_top_k(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    k: int,
    beta: float = 30.0,
    key_mass: Float[Array, " m"] | None = None,
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """As `top_k`, under the log of the inverted softmax (Smith et al. 2017, eq. 9).

    score(q, y) = beta cos(q, y) - log sum over all queries q' of exp(beta cos(q', y)). `key_mass`
    is that logarithm where it is known already, or taken over other queries (`log_mass`).
    """
    if key_mass is None:
        key_mass = log_mass(keys, queries, beta)

    def scores(q, keys, key_mass):
        return [beta * products(q, keys) - key_mass]

    return _over_tiles(scores, [k], queries, keys, key_mass)[0]
