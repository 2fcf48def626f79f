"""Vectors of an old embedding model in the space of a new one: which map, and what it keeps.

A store holds vectors of an old model, queries come from a new one. `choose` fits a map of the store
to items that both models have embedded, chosen by how well it keeps the lists of nearest rows of
pairs that it was not fitted to. `estimated` says what the map keeps in a store of any size, and
`measured` compares it with the re-embedded store itself.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int
from scipy.stats import spearmanr

from common import alignment
from common.alignment import Aligner
from common.arrays import AnyArray
from common.errors import UserError
from common.linear import procrustes, ridge, unit
from common.retrieval import top_k

MIN_PAIRS = 10  # to fit a map
MANY_PAIRS = 100  # from which the pairs themselves are used; of fewer, matches that are found
RANKED = 2_000  # rows and, of these, a tenth as queries, on which rank correlations are taken


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How maps are compared on held-out pairs, and larger stores extrapolated."""

    folds: int = 5
    penalties: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of ridge; 1: mean eigenvalue
    rows: int = 2_000  # held-out pairs, at most, among which nearest rows are sought
    list_length: int = 50  # of the longest lists; of 10, 20, 50 the best between two encoders
    tolerance: float = 0.05  # an estimate that is less certain is not to be trusted


class Candidate(NamedTuple):
    """A kind of map, and the mean fraction of nearest rows that it keeps for held-out pairs."""

    method: str
    penalty: float | None
    kept: float


class Estimate(NamedTuple):
    """A measure of retrieval and its uncertainty, about two standard errors."""

    value: float
    uncertainty: float


class Choice(NamedTuple):
    """The map that was chosen.

    Attributes:
      aligner: with the chosen map.
      candidates: of each method the best, in ascending order of complexity.
      mapped: unit rows of held-out pairs, mapped by maps that were fitted to other pairs.
      embedded: the rows of the target that belong to them.
    """

    aligner: Aligner
    candidates: tuple[Candidate, ...]
    mapped: Float[Array, "m d_target"]
    embedded: Float[Array, "m d_target"]


def fitted(
    aligner: Aligner,
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "n d_target"],
    candidate: Candidate,
) -> Aligner:
    """The aligner with a map of the candidate's kind, fitted to paired raw rows."""
    x, y = aligner.normalise_source(source), aligner.normalise_target(target)
    matrix = _matrix(x, y, candidate.method, candidate.penalty)
    return dataclasses.replace(aligner, matrix=matrix, method=candidate.method)


def _matrix(x, y, method, penalty):
    # The eigenvalues of x' x have the sum n, since rows are of unit length.
    options = {} if penalty is None else {"penalty": penalty * len(x) / x.shape[1]}
    return alignment.METHODS[method](x, y, **options)


@jax.jit
def _all_mapped(held_out, x, y, penalties):
    """Unit rows of `held_out` by the orthogonal map and by ridge with each of the penalties."""
    penalties = penalties * len(x) / x.shape[1]
    maps = jax.vmap(ridge, (None, None, 0))(x, y, penalties)
    return unit(held_out @ jnp.concatenate([procrustes(x, y)[None], maps]))


def choose(
    aligner: Aligner,
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "n d_target"],
    settings: Settings = Settings(),
) -> Choice:
    """Chooses a map by cross-validation on pairs: the simplest that is as good as the best.

    The kinds are orthogonal, least squares and ridge. Each is fitted to all folds of the pairs but
    one, whose source rows it maps; then the error is the fraction of the ten target rows nearest to
    a target row (fewer of few pairs) that are not the nearest mapped rows. A simpler kind is as
    good if the mean difference is within one standard error of it.

    Args:
      aligner: gives the normalisation.
      source: raw rows of the old model.
      target: raw rows of the new model, of the same items.
      settings: of the comparison.

    Raises:
      UserError: fewer than MIN_PAIRS pairs, or rows that `Aligner.apply` refuses.
    """
    x, y = aligner.normalise_source(source), aligner.normalise_target(target)
    if len(x) < MIN_PAIRS or len(x) != len(y):
        raise UserError(f"{len(x)} and {len(y)} rows: give {MIN_PAIRS} or more pairs to fit a map.")
    kinds = [("procrustes", None), ("least_squares", None)]
    kinds += [("ridge", penalty) for penalty in settings.penalties]
    size = min(len(x), settings.rows) // settings.folds
    order = np.random.default_rng(0).permutation(len(x))
    folds = order[: size * settings.folds].reshape(settings.folds, size)
    mapped = []
    for fold in folds:
        rest = np.setdiff1d(order, fold)
        mapped.append(_all_mapped(x[fold], x[rest], y[rest], jnp.array((0, *settings.penalties))))
    mapped = jnp.concatenate(mapped, axis=1)
    embedded = y[folds.ravel()]
    k = min(10, 1 + len(embedded) // 10)
    true = _other_rows(embedded, embedded, k)
    kept = [_overlap(_other_rows(embedded, rows, k), true)[:, -1] for rows in mapped]
    best = 2 + int(np.argmax([one.mean() for one in kept[2:]]))
    numbers = [0, 1, best]
    first = max(numbers, key=lambda i: kept[i].mean())
    for chosen in numbers:
        worse = kept[first] - kept[chosen]
        if worse.mean() <= worse.std() / np.sqrt(len(worse)):
            break
    candidates = [Candidate(*kinds[i], float(kept[i].mean())) for i in numbers]
    return Choice(
        aligner=fitted(aligner, source, target, candidates[numbers.index(chosen)]),
        candidates=tuple(candidates),
        mapped=mapped[chosen],
        embedded=embedded,
    )


def measured(
    queries: Float[AnyArray, "q d"],
    mapped: Float[AnyArray, "n e"],
    embedded: Float[AnyArray, "n d"],
    mapped_queries: Float[AnyArray, "q e"] | None = None,
) -> dict[str, float]:
    """What a mapped store keeps of the retrieval from the re-embedded one.

    Args:
      queries: unit rows of the new model.
      mapped: unit rows of the store, mapped.
      embedded: unit rows of the same items by the new model.
      mapped_queries: unit rows with which `mapped` is searched; None: the same queries.

    Returns:
      `recall_1` and `recall_10`, the fraction of the nearest and of the ten nearest rows of the
      re-embedded store that are among as many nearest rows of the mapped one, and
      `rank_correlation`, Spearman's, of the cosines with all rows (2,000 of them), a mean over
      queries.
    """
    searched = (queries if mapped_queries is None else mapped_queries, mapped), (queries, embedded)
    kept = _overlap(*(np.asarray(top_k(*pair, 10)[1]) for pair in searched))
    scores = {"recall_1": kept[:, 0].mean(), "recall_10": kept[:, -1].mean()}
    ranked = _rank_correlations(*searched)
    return {name: float(x) for name, x in (scores | {"rank_correlation": ranked.mean()}).items()}


def estimated(
    mapped: Float[AnyArray, "m d"],
    embedded: Float[AnyArray, "m d"],
    store_rows: int,
    settings: Settings = Settings(),
) -> dict[str, Estimate]:
    """Estimates `measured` for a store of another size from held-out pairs.

    Each pair is a query in turn and all others are the store. The k nearest of m rows are about the
    k N / m nearest of N rows, so that the recall of the first 10 of N is that of the first 10 m / N
    of m. It is extrapolated by a power law in k, fitted to the lists of up to 50 rows. The
    uncertainty is two standard errors by a jackknife over ten groups of queries, and the
    difference from the power law of the ten shortest lists.

    Args:
      mapped: unit rows of held-out pairs by maps fitted to others, see `Choice`.
      embedded: their rows in the target.
      store_rows: N.
      settings: gives the longest list.
    """
    size = len(mapped)
    k = min(settings.list_length, size - 1)
    kept = _overlap(*(_other_rows(embedded, store, k) for store in (mapped, embedded)))
    groups = np.arange(size) % 10
    estimates = {}
    for name, count in (("recall_1", 1), ("recall_10", 10)):
        at = count * size / store_rows
        value = _power_law(kept.mean(axis=0), at)
        others = [_power_law(kept[groups != g].mean(axis=0), at) for g in range(10)]
        error = 3 * np.std(others)  # sqrt(9 / 10 sum of squares)
        short = _power_law(kept.mean(axis=0)[:10], at)
        estimates[name] = Estimate(float(value), float(2 * error + abs(short - value)))
    ranked = _rank_correlations((embedded, mapped), (embedded, embedded))
    error = 2 * ranked.std() / np.sqrt(len(ranked))
    return estimates | {"rank_correlation": Estimate(float(ranked.mean()), float(error))}


def curve(
    aligner: Aligner,
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "n d_target"],
    store_rows: int,
    settings: Settings = Settings(),
) -> dict[int, Estimate]:
    """Number of pairs -> recall_10 of the map chosen from so many, estimated on the others.

    The numbers are 10, 30, 100, 300 and 1,000, up to half of the pairs that are given. The
    arguments are those of `choose` and `estimated`.
    """
    order = np.random.default_rng(0).permutation(len(source))
    recalls = {}
    for count in (10, 30, 100, 300, 1_000):
        if 2 * count <= len(order):
            few, rest = order[:count], order[count:][: settings.rows]
            chosen = choose(aligner, source[few], target[few], settings).aligner
            mapped_rest = unit(chosen.apply(source[rest]))
            embedded = unit(chosen.normalise_target(target[rest]))
            estimates = estimated(mapped_rest, embedded, store_rows, settings)
            recalls[count] = estimates["recall_10"]
    return recalls


def _power_law(kept: Float[np.ndarray, " k"], at: float) -> float:
    """The fraction kept of the first `at` rows, at most 1, given that of the first 1 to k."""
    steps = np.log(np.arange(1, len(kept) + 1))
    logs = np.log(np.maximum(kept, 1e-4))
    slope, height = np.polyfit(steps, logs, 1) if len(kept) > 1 else (0.0, logs[0])
    return float(np.exp(min(0.0, height + slope * np.log(at))))


def _other_rows(queries, store, k: int) -> Int[np.ndarray, "m k"]:
    """The k nearest rows of a store of each query, its own row left out."""
    index = np.asarray(top_k(queries, store, min(k + 1, len(store)))[1])
    others = np.argsort(index == np.arange(len(index))[:, None], axis=1, kind="stable")
    return np.take_along_axis(index, others, axis=1)[:, :k]


def _overlap(
    lists: Int[np.ndarray, "n k"], true: Int[np.ndarray, "n k"]
) -> Float[np.ndarray, "n k"]:
    """For each length up to k, the fraction of the first rows that are in both lists."""
    same = lists[:, :, None] == true[:, None, :]
    first = np.arange(lists.shape[1])
    return same.cumsum(axis=1).cumsum(axis=2)[:, first, first] / (first + 1)


def _rank_correlations(*searched) -> Float[np.ndarray, " q"]:
    """Spearman's correlation of some queries' cosines with some rows of both stores."""
    cosines = [
        np.asarray(queries[: RANKED // 10] @ store[:RANKED].T) for queries, store in searched
    ]
    return np.array([spearmanr(*pair)[0] for pair in zip(*cosines, strict=True)])
