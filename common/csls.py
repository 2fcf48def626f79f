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
from common.parallel import block_rows, scan_rows
from common.retrieval import TopK, first_largest, largest, products


def hubness(
    rows: Float[AnyArray, "n d"], others: Float[AnyArray, "m d"], neighbours: int = 10
) -> Float[Array, " n"]:
    """R of each row: the mean of its `neighbours` largest cosines with the other space's rows.

    All of these are taken if there are fewer.
    """
    return _hubness(rows, others, min(neighbours, len(others)))


@partial(jax.jit, static_argnames="neighbours")
def _hubness(rows, others, neighbours):
    return retrieval.top_k(rows, others, neighbours).values.mean(axis=1)


def _hubness_of_block(
    similarity: Float[Array, "b m"], neighbours: int, axis: int = 1
) -> Float[Array, " _"]:
    """R of some rows, given their cosines with all rows of the other space; axis 0: of columns."""
    return largest(similarity, min(neighbours, similarity.shape[axis]), axis).values.mean(axis=1)


@partial(jax.jit, static_argnames=("k", "neighbours"))
def top_k(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    k: int,
    neighbours: int = 10,
    key_hubness: Float[Array, " m"] | None = None,
) -> TopK:
    """The k keys of largest CSLS with each query, best first.

    Args:
      queries: unit rows.
      keys: unit rows.
      k: number of keys returned for each query.
      neighbours: number of nearest neighbours in r; all keys or queries if there are fewer.
      key_hubness: r of the keys, if it is known; this saves a pass.
    """
    if key_hubness is None:
        key_hubness = hubness(keys, queries, neighbours)

    def scores(queries, keys, key_hubness):
        similarity = products(queries, keys)
        return similarity, 2 * similarity - key_hubness

    counts = [min(neighbours, keys.shape[0]), k]
    nearest, best = retrieval.top_k_over_tiles(scores, counts, queries, keys, key_hubness)
    return TopK(best.values - nearest.values.mean(axis=1, keepdims=True), best.index)


class Matches(NamedTuple):
    """The best partners by CSLS in both directions.

    Attributes:
      to_target: the best target row of every source row.
      to_source: the best source row of every target row.
      mutual: whether the source row is also the best one of its target row.
      objective: the mean CSLS of the matches of both directions; high if both spaces correspond.
    """

    to_target: Int[AnyArray, " n"]
    to_source: Int[AnyArray, " m"]
    mutual: Bool[AnyArray, " n"]
    objective: RealNumber


@partial(jax.jit, static_argnames="neighbours")
def matches(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    *,
    neighbours: int = 10,
) -> Matches:
    """The best partner of every row, in two streamed passes.

    Args:
      source: unit rows.
      target: unit rows.
      neighbours: number of nearest neighbours in r; all rows if there are fewer.
    """
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
    """The key of largest CSLS with each query, in one streamed pass.

    r of a query is the same for all keys, so that only that of the keys is computed.

    Args:
      queries: unit rows.
      keys: unit rows.
      neighbours: number of nearest queries in r of a key; all if there are fewer.
    """
    return _best_rows(keys, queries, neighbours)[0].row


class _Best(NamedTuple):
    """For every column the largest score of the rows that were met so far, and its row."""

    score: Float[Array, " m"]
    row: Int[Array, " m"]

    @classmethod
    def none(cls, num_columns: int) -> "_Best":
        return cls(jnp.full(num_columns, -jnp.inf), jnp.zeros(num_columns, jnp.int32))

    def merge(self, later: "_Best") -> "_Best":
        better = later.score > self.score  # strictly, so that the lower row wins a tie
        return jax.tree.map(lambda old, new: jnp.where(better, new, old), self, later)


def _best_rows(rows, columns, neighbours) -> tuple[_Best, Float[Array, " n"]]:
    """For every column the row of largest 2 s - r(row), and r of all rows.

    r of a block's rows is known once the block is, so one pass gives hubness and argmax together.
    Of the similarities one block [block, columns] is held (243 MiB for 200,000 columns).
    """

    def step(best, index, valid, block, columns):
        similarity = products(block, columns)
        hubness = _hubness_of_block(similarity, neighbours)
        penalty = jnp.where(valid, hubness, jnp.inf)[:, None]
        score, winner = first_largest(2 * similarity - penalty, axis=0)
        return best.merge(_Best(score, index[winner])), hubness

    init, block = _Best.none(len(columns)), block_rows(len(columns))
    return scan_rows(step, init, _Best.merge, rows, columns, block=block)


class Dictionary(NamedTuple):
    """Matched rows of two spaces.

    Attributes:
      to_target: the best target row of every source row.
      to_source: the best source row of every target row.
      score: CSLS of each source row and its best target row.
      mutual: whether the source row is also the best one of that target row.
      confidence: of each of these pairs, from 0 to 1, see `dictionary`.
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
    of Smith et al. 2017, whose b is 30). All pairs of rows are met once: a matrix product, two
    argmaxes and two sums. Beside the rows it holds little more than a block of rows of their
    similarities (250 MiB for 200,000 target rows).

    Args:
      source: unit rows in common coordinates, the most frequent first.
      target: likewise.
      neighbours: number of nearest neighbours in r; all rows if there are fewer.
      frequent: number of rows of the other space among which these neighbours are; 20,000 of
        200,000 are enough to estimate r.
      inverse_temperature: b.
    """
    target_hubness = hubness(target, source[:frequent], neighbours)

    def add_weights(total, rows):
        similarity, valid = rows
        weight = jnp.where(valid[:, None], _weight(similarity, inverse_temperature), 0.0)
        return total + weight.sum(axis=0), weight.sum(axis=1)

    def step(carry, index, valid, block, target, target_hubness):
        best, total = carry
        similarity = products(block, target)
        block_hubness = _hubness_of_block(similarity[:, :frequent], neighbours)
        score = 2 * similarity - target_hubness
        best_score, to_target = first_largest(score, axis=1)
        nearest = jnp.take_along_axis(similarity, to_target[:, None], axis=1)[:, 0]
        # In eight parts, since the compiler stores the weights: 250 MiB instead of 415, and faster.
        eighths = jax.tree.map(lambda x: x.reshape(8, -1, *x.shape[1:]), (similarity, valid))
        total, row_total = lax.scan(add_weights, total, eighths)
        penalty = jnp.where(valid, block_hubness, jnp.inf)[:, None]
        reverse_score, winner = first_largest(2 * similarity - penalty, axis=0)
        out = _Forward(
            to_target=to_target,
            score=best_score - block_hubness,
            weight=_weight(nearest, inverse_temperature),
            total=row_total.ravel(),
        )
        return (best.merge(_Best(reverse_score, index[winner])), total), out

    def merge(first, second):
        return first[0].merge(second[0]), first[1] + second[1]

    m = target.shape[0]
    init = _Best.none(m), jnp.zeros(m)
    (best_source, target_total), forward = scan_rows(
        step, init, merge, source, target, target_hubness, block=block_rows(m)
    )
    total = jnp.maximum(forward.total, target_total[forward.to_target])
    return Dictionary(
        to_target=forward.to_target,
        to_source=best_source.row,
        score=forward.score,
        mutual=best_source.row[forward.to_target] == jnp.arange(source.shape[0]),
        confidence=forward.weight / jnp.maximum(total, 1e-30),
    )


class _Forward(NamedTuple):
    """Of each source row its match, CSLS and softmax weight, and the weights of all target rows."""

    to_target: Int[Array, " n"]
    score: Float[Array, " n"]
    weight: Float[Array, " n"]
    total: Float[Array, " n"]


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
    """The confidence of given pairs, as in `dictionary`.

    Args:
      source: unit rows in common coordinates.
      target: likewise.
      source_rows: the source row of each pair.
      target_rows: its target row.
      inverse_temperature: b.
    """

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
    source_hubness = _hubness_of_block(similarity, neighbours)
    return 2 * similarity - source_hubness[:, None] - _hubness_of_block(similarity, neighbours, 0)


class OneToOne(NamedTuple):
    """The target row of each source row, and whether they are a pair of positive score."""

    to_target: Int[np.ndarray, " n"]
    is_pair: Bool[np.ndarray, " n"]


def one_to_one(
    source: Float[AnyArray, "n r"], target: Float[AnyArray, "m r"], neighbours: int = 10
) -> OneToOne:
    """The one-to-one matching of largest total CSLS, by scipy; all [n, m] scores are held.

    Items that exclude each other as partners are matched better than by nearest neighbours, of
    which several may choose the same row. Items without a partner are matched too, mostly with a
    negative score: one below the mean similarity to the nearest rows.
    """
    score = np.asarray(scores(source, target, neighbours))
    rows, columns = linear_sum_assignment(score, maximize=True)
    result = OneToOne(np.zeros(len(score), np.int32), np.zeros(len(score), bool))
    result.to_target[rows], result.is_pair[rows] = columns, score[rows, columns] > 0
    return result
