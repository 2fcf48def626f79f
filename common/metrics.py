"""How well two spaces correspond, and the quality of retrieved lists.

Definitions of the first two as in the code of Moschella et al. (2023) and Cannistraci et al.
(2023).
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from common import csls
from common.arrays import AnyArray
from common.linear import centred
from common.parallel import block_rows, map_rows
from common.retrieval import products, top_k


class Estimate(NamedTuple):
    """A share, and half the width of its 95% interval."""

    value: float
    uncertainty: float


def correspondence(
    spaces: Mapping[str, Float[AnyArray, "n d"]], k: int = 10
) -> dict[tuple[str, str], dict[str, Float[Array, ""]]]:
    """Jaccard, MRR, cosine and P@1 of each ordered pair of spaces, row i being the same item.

    For an item w, T(w) are the k target rows with the largest cosine to w's target row, and S(w)
    those with the largest cosine to w's source row; both may contain w. `jaccard` is the mean of
    |S & T| / |S | T|; `mrr` that of 1 / rank of w in S(w), 0 if it is not in it; `cosine` that of
    corresponding rows; `p_at_1`, of different spaces, the fraction of items that retrieve
    themselves first by CSLS with k neighbours. Rows are unit rows; pairs of unequal dimension are
    omitted. A pair is NaN if one of its spaces has NaN or consists of equal rows.
    """
    metrics, names = ("jaccard", "mrr", "cosine", "p_at_1"), list(spaces)
    return {
        (names[source], names[target]): dict(zip(metrics, values, strict=False))
        for (source, target), values in _correspondence(tuple(spaces.values()), k).items()
    }


@partial(jax.jit, static_argnames="k")
def _correspondence(spaces: tuple[Array, ...], k: int) -> dict[tuple[int, int], tuple]:
    """The metrics of each pair of spaces, numbered, in one program."""
    numbers, items = range(len(spaces)), jnp.arange(len(spaces[0]))
    pairs = [(i, j) for i in numbers for j in numbers if spaces[i].shape[1] == spaces[j].shape[1]]
    lists = {(i, j): top_k(spaces[i], spaces[j], min(k, len(items))) for i, j in pairs}
    scores = {}
    for i, j in pairs:
        x, y, nearest = spaces[i], spaces[j], lists[i, j].index
        cosine = jnp.sum(x * y, axis=1).mean()
        scores[i, j] = jaccard(nearest, lists[j, j].index), mrr(nearest, items), cosine
        if i != j:
            hubness = lists[j, i].values.mean(axis=1)
            first = csls.top_k(x, y, 1, k, key_hubness=hubness).index
            scores[i, j] += (precision_at_k(first, items, 1),)
        scores[i, j] = tuple(value * _one_if_comparable(x, y) for value in scores[i, j])
    return scores


def _one_if_comparable(*spaces: Float[Array, "n _"]) -> Float[Array, ""]:
    """1, or NaN if a space has NaN or consists of several equal rows."""
    comparable = [jnp.isfinite(x).all() & ((x != x[:1]).any() | (len(x) == 1)) for x in spaces]
    return jnp.where(jnp.array(comparable).all(), 1.0, jnp.nan)


@jax.jit
def linear_cka(x: Float[Array, "n d"], y: Float[Array, "n e"]) -> Float[Array, ""]:
    """|x' y|^2 / (|x' x| |y' y|) of centred columns, linear CKA (Kornblith et al. 2019, eq. 3).

    It is 1 up to rotation and scale, 0 for uncorrelated spaces, NaN if one has NaN or equal rows.
    """
    # Squares of squares of very small or large numbers have no place in float32.
    a, b = (centred(z / jnp.abs(z).max(initial=0)) for z in (x, y))
    a, b, norm = a / jnp.abs(a).max(initial=0), b / jnp.abs(b).max(initial=0), jnp.linalg.norm
    cka = norm(a.T @ b) ** 2 / (norm(a.T @ a) * norm(b.T @ b))
    return cka * _one_if_comparable(x, y)


@jax.jit
def jaccard(first: Int[Array, "n k"], second: Int[Array, "n k"]) -> Float[Array, ""]:
    """Mean over rows of |A & B| / |A | B|; the indices in a row are distinct."""
    common = _num_common(first, second)
    return (common / (first.shape[1] + second.shape[1] - common)).mean()


@jax.jit
def mutual_neighbours(first: Int[Array, "n k"], second: Int[Array, "n k"]) -> Float[Array, ""]:
    """Mean over rows of |A & B| / k (Huh et al. 2024); the indices in a row are distinct."""
    return (_num_common(first, second) / first.shape[1]).mean()


def _num_common(first: Int[Array, "n k"], second: Int[Array, "n l"]) -> Int[Array, " n"]:
    return jnp.sum(first[:, :, None] == second[:, None, :], axis=(1, 2))


@jax.jit
def mrr(index: Int[Array, "n k"], truth: Int[Array, " n"]) -> Float[Array, ""]:
    """Mean of 1 / rank of the true index in each row, best first; 0 if it is not in the row."""
    hit = index == truth[:, None]
    return jnp.sum(jnp.where(hit, 1 / jnp.arange(1, index.shape[1] + 1), 0), axis=1).mean()


@partial(jax.jit, static_argnames="k")
def precision_at_k(
    index: Int[Array, "n m"], truth: Int[Array, " n"] | Int[Array, "n g"], k: int
) -> Float[Array, ""]:
    """Fraction of queries with a correct target among the first k retrieved, best first.

    `truth` is the correct target, or the set of them, padded with -1; an empty one counts as wrong.
    """
    gold = truth.reshape(len(truth), -1, 1)
    return jnp.any((index[:, None, :k] == gold) & (gold >= 0), axis=(1, 2)).mean()


@jax.jit
def foscttm(source: Float[Array, "n d"], target: Float[Array, "n d"]) -> Float[Array, ""]:
    """Fraction of samples closer than the true match (Liu et al. 2019), row i being the same item.

    The mean over source rows of the fraction of the n - 1 wrong target rows with a larger inner
    product than the true one; equal ones count half. 0 is best, .5 chance and the value of equal
    rows; NaN if an array has NaN or one row only. No [n, n] array is held.
    """
    n = len(target)

    def closer(rows, target):
        index, block = rows
        similarity = products(block, target)
        # The true products are entries of the same matrix, so that ties are not lost to rounding.
        true = jnp.take_along_axis(similarity, index[:, None], axis=1)
        return (jnp.sign(similarity - true).sum(axis=1) + n - 1) / (2 * (n - 1))

    return map_rows(closer, (jnp.arange(n), source), target, block=block_rows(n)).mean()


def spearman(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """Spearman's rank correlation; NaN where one has fewer than two different values."""
    from scipy.stats import spearmanr  # half a second, which most runs do not need

    if min(len(np.unique(z)) for z in (x, y)) < 2:
        return math.nan
    result: Any = spearmanr(x, y)  # scipy has no annotations
    return float(result.statistic)


@partial(jax.jit, static_argnames="k")
def ndcg(
    relevant: Bool[Array, "n m"], num_relevant: Int[Array, " n"], k: int = 10
) -> Float[Array, " n"]:
    """Normalised discounted cumulative gain of each query (Jarvelin and Kekalainen 2002).

    The sum of 1 / log2(rank + 1) over the relevant documents, best first, among the first k <= m,
    divided by that of a list that begins with all `num_relevant`, of which there is at least one.
    """
    gains = 1 / jnp.log2(jnp.arange(2, k + 2))
    best = jnp.cumsum(gains)[jnp.minimum(num_relevant, k) - 1]
    return jnp.sum(jnp.where(relevant[:, :k], gains, 0), axis=1) / best
