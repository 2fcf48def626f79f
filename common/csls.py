"""Matching of two spaces by CSLS, cross-domain similarity local scaling (Lample et al. 2018).

    CSLS(x, y) = 2 cos(x, y) - r(x) - r(y)                                      (eq. 4)

The hubness r of a row is its mean cosine with its nearest rows in the other space. Rows near to
everything, which plain cosines would match with too many others, are thus held back. All rows are
unit rows, and no [n, m] array is held but where a function says so. Ties go to the lower row.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from common import retrieval
from common.arrays import AnyArray, RealNumber
from common.parallel import Part, block_rows, scan_rows, sum_of_parts
from common.retrieval import TopK, first_largest, largest, largest_of_parts, products


@partial(jax.jit, static_argnames="neighbours")
def hubness(
    rows: Float[AnyArray, "n d"], others: Float[AnyArray, "m d"], neighbours: int = 10
) -> Float[Array, " n"]:
    """R of each row: the mean of its `neighbours` largest cosines, or all, with the other space."""
    return retrieval.top_k(rows, others, min(neighbours, len(others))).values.mean(axis=1)


def _hubness_of_block(similarity: Float[Array, "b m"], neighbours: int) -> Float[Array, " b"]:
    """R of some rows, given their cosines with those rows of the other space on this device."""
    best = largest(similarity, min(neighbours, similarity.shape[1]))
    return largest_of_parts(best, neighbours).values.mean(axis=1)


@partial(jax.jit, static_argnames=("k", "neighbours"))
def top_k(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    k: int,
    neighbours: int = 10,
    key_hubness: Float[Array, " m"] | None = None,
) -> TopK:
    """The k keys of largest CSLS with each query, best first; known `key_hubness` saves a pass."""
    r = hubness(keys, queries, neighbours) if key_hubness is None else key_hubness

    def scores(queries, keys, key_hubness):
        similarity = products(queries, keys)
        return similarity, 2 * similarity - key_hubness

    counts = [min(neighbours, keys.shape[0]), k]
    nearest, best = retrieval.top_k_over_tiles(scores, counts, queries, keys, r)
    return TopK(best.values - nearest.values.mean(axis=1, keepdims=True), best.index)


class Matches(NamedTuple):
    """The best rows by CSLS in both directions, and the mean CSLS of these matches.

    `mutual`: whether a source row is also the best one of its target row.
    """

    to_target: Int[AnyArray, " n"]
    to_source: Int[AnyArray, " m"]
    mutual: Bool[AnyArray, " n"]
    objective: RealNumber


@partial(jax.jit, static_argnames="neighbours")
def matches(
    source: Float[Array, "n r"], target: Float[Array, "m r"], *, neighbours: int = 10
) -> Matches:
    """The best partner of every row, in two streamed passes."""
    best_source, source_hubness = _best_rows(source, target, neighbours)
    best_target, target_hubness = _best_rows(target, source, neighbours)
    to_target, to_source = best_target.row, best_source.row
    objective = (best_source.score - target_hubness).mean()
    objective += (best_target.score - source_hubness).mean()
    mutual = to_source[to_target] == jnp.arange(source.shape[0])
    return Matches(to_target, to_source, mutual, objective / 2)


@partial(jax.jit, static_argnames="neighbours")
def best_keys(
    queries: Float[Array, "n d"], keys: Float[Array, "m d"], neighbours: int = 10
) -> Int[Array, " n"]:
    """The key of largest CSLS with each query, whose own r is the same for all keys."""
    return _best_rows(keys, queries, neighbours)[0].row


class _Best(NamedTuple):
    """For every column the largest score of the rows that were met so far, and its row."""

    score: Float[Array, " m"]
    row: Int[Array, " m"]

    @classmethod
    def none(cls, columns: Part) -> "_Best":
        row = jnp.zeros_like(columns.index)
        return cls(jnp.full_like(row, -jnp.inf, jnp.float32), row)

    def merge(self, later: "_Best") -> "_Best":
        tied = later.score == self.score
        better = (later.score > self.score) | (tied & (later.row < self.row))
        return jax.tree.map(lambda old, new: jnp.where(better, new, old), self, later)


def _best_rows(rows, columns, neighbours) -> tuple[_Best, Float[Array, " n"]]:
    """For every column the row of largest 2 s - r(row), and r of all rows.

    r is known with a block's rows: one pass, one block of similarities (243 MiB for 200,000).
    """
    neighbours = min(neighbours, len(columns))

    def step(best, block, columns):
        similarity = columns.masked(products(block.rows, columns.rows), -jnp.inf)
        hubness = _hubness_of_block(similarity, neighbours)
        return best.merge(_best_of_block(similarity, block, hubness)), hubness

    return scan_rows(step, _Best.none, rows, columns, block=block_rows)


def _best_of_block(similarity, block: Part, hubness) -> _Best:
    """For every column the row of largest 2 s - r(row) in a block."""
    penalty = block.masked(hubness, jnp.inf)[:, None]
    score, winner = first_largest(2 * similarity - penalty, axis=0)
    return _Best(score, block.index[winner])


class Dictionary(NamedTuple):
    """The best rows by CSLS in both directions; score and confidence are of the source's matches.

    `mutual`: whether a source row is also the best one of its target row.
    """

    to_target: Int[AnyArray, " n"]
    to_source: Int[AnyArray, " m"]
    score: Float[AnyArray, " n"]
    mutual: Bool[AnyArray, " n"]
    confidence: Float[AnyArray, " n"]

    def mutual_pairs(self) -> Int[np.ndarray, "s 2"]:
        """(source row, target row) of the rows that are each other's best partner."""
        rows = np.flatnonzero(self.mutual)
        return np.stack([rows, np.asarray(self.to_target)[rows]], axis=1)


@partial(jax.jit, static_argnames=("neighbours", "frequent"))
def dictionary(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    *,
    neighbours: int = 10,
    frequent: int = 20_000,
    inverse_temperature: RealNumber = 30.0,
) -> Dictionary:
    """The best partner of every row, with the score and the confidence of the source's pairs.

    The confidence of a pair is the smaller of its softmax probabilities, exp(b cos) over its sum
    over all target rows and over its sum over all source rows (the softmax and the inverted softmax
    of Smith et al. 2017, whose b is 30). r is estimated among the first `frequent` rows of the
    other space; 20,000 of 200,000 are enough. One pass holds 250 MiB for 200,000 target rows.
    """
    target_hubness = hubness(target, source[:frequent], neighbours)
    neighbours = min(neighbours, frequent, len(target))

    def add_weights(total, rows):
        similarity, valid = rows
        weight = jnp.where(valid[:, None], _weight(similarity, inverse_temperature), 0.0)
        return total + weight.sum(axis=0), weight.sum(axis=1)

    def step(carry, block, columns):
        best, total = carry
        target, target_hubness = columns.rows
        similarity = columns.masked(products(block.rows, target), -jnp.inf)
        known = jnp.where(columns.index < frequent, similarity, -jnp.inf)[:, :frequent]
        block_hubness = _hubness_of_block(known, neighbours)
        best_score, place = first_largest(2 * similarity - target_hubness, axis=1)
        nearest = jnp.take_along_axis(similarity, place[:, None], axis=1)[:, 0]
        place = columns.index[place]
        best_of_all = largest_of_parts(TopK(best_score[:, None], place[:, None]), 1)
        best_score, to_target = (x[:, 0] for x in best_of_all)
        nearest = sum_of_parts(jnp.where(place == to_target, nearest, 0))
        # In eight parts, since the compiler stores the weights: 250 MiB instead of 415, and faster.
        eighths = jax.tree.map(lambda x: x.reshape(8, -1, *x.shape[1:]), (similarity, block.valid))
        total, row_total = lax.scan(add_weights, total, eighths)
        best = best.merge(_best_of_block(similarity, block, block_hubness))
        weight, row_total = _weight(nearest, inverse_temperature), sum_of_parts(row_total.ravel())
        return (best, total), (to_target, best_score - block_hubness, weight, row_total)

    def init(columns):
        return _Best.none(columns), jnp.zeros(len(columns.index))

    (best_source, target_total), (to_target, score, weight, total) = scan_rows(
        step, init, source, (target, target_hubness), block=block_rows
    )
    confidence = weight / jnp.maximum(jnp.maximum(total, target_total[to_target]), 1e-30)
    mutual = best_source.row[to_target] == jnp.arange(source.shape[0])
    return Dictionary(to_target, best_source.row, score, mutual, confidence)


def _weight(similarity, inverse_temperature):
    """exp(b cos), divided by exp(b), the largest that it can be."""
    return jnp.exp(inverse_temperature * (similarity - 1))


@jax.jit
def confidence(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    source_rows: Int[Array, " p"],
    target_rows: Int[Array, " p"],
    inverse_temperature: RealNumber = 30.0,
) -> Float[Array, " p"]:
    """The confidence of given pairs of rows, as in `dictionary`."""

    def of_pair(pair):
        x, y = source[pair[0]], target[pair[1]]
        totals = [_weight(z, inverse_temperature).sum() for z in (target @ x, source @ y)]
        return _weight(x @ y, inverse_temperature) / jnp.maximum(jnp.maximum(*totals), 1e-30)

    return lax.map(of_pair, (source_rows, target_rows), batch_size=256)


@partial(jax.jit, static_argnames="neighbours")
def scores(
    source: Float[Array, "n r"], target: Float[Array, "m r"], neighbours: int = 10
) -> Float[Array, "n m"]:
    """CSLS of all pairs of rows, held in memory."""
    similarity = products(source, target)
    source_hubness, target_hubness = (
        largest(similarity, min(neighbours, similarity.shape[axis]), axis).values.mean(axis=1)
        for axis in (1, 0)
    )
    return 2 * similarity - source_hubness[:, None] - target_hubness


class OneToOne(NamedTuple):
    """The target row of each source row, and whether they are a pair of positive score."""

    to_target: Int[np.ndarray, " n"]
    is_pair: Bool[np.ndarray, " n"]


def one_to_one(
    source: Float[AnyArray, "n r"], target: Float[AnyArray, "m r"], neighbours: int = 10
) -> OneToOne:
    """The one-to-one matching of largest total CSLS, by scipy; all [n, m] scores are held."""
    score = np.asarray(scores(source, target, neighbours))
    rows, columns = linear_sum_assignment(score, maximize=True)
    result = OneToOne(np.zeros(len(score), np.int32), np.zeros(len(score), bool))
    result.to_target[rows], result.is_pair[rows] = columns, score[rows, columns] > 0
    return result
