"""Vectors of an old embedding model in the space of a new one: which map, and what it keeps.

`choose` fits a map of the store to items that both models have embedded. Of the ten rows that are
nearest to a query in the re-embedded store, `kept` measures how many are among the 10, 50, 100 and
200 nearest of another store: the recall of that store itself, and what is left if the new model
puts so many candidates in order.
"""

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int

from common import alignment
from common.alignment import Aligner
from common.arrays import AnyArray
from common.errors import UserError
from common.linear import procrustes, unit
from common.retrieval import top_k

MIN_PAIRS = 10  # to fit a map
MANY_PAIRS = 100  # from which the pairs themselves are used; of fewer, matches that are found
NEAREST = 10  # rows of the re-embedded store that are to be kept
# Length of the lists of another store -> name of the share that they keep
LENGTHS = {10: "recall_10", 50: "within_50", 100: "within_100", 200: "within_200"}

PENALISED = {name: alignment.METHODS[name] for name in ("whitened_procrustes", "ridge")}


def length_of(name: str) -> int:
    """The length of the lists that a share is of, which its name ends with."""
    return int(name.rpartition("_")[2])


def lists_of(candidates: Iterable[int]) -> dict[int, str]:
    """`LENGTHS` with further numbers of candidates, and their names; UserError: one below 10."""
    if wrong := [count for count in candidates if count < NEAREST]:
        raise UserError(f"There are {wrong[0]} candidates: give {NEAREST} or more.")
    return dict(sorted(({n: f"within_{n}" for n in candidates} | LENGTHS).items()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How maps are compared on held-out pairs, and larger stores extrapolated."""

    folds: int = 10
    penalties: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # 1: mean eigenvalue
    rows: int = 2_000  # held-out pairs, at most, among which nearest rows are sought
    neighbours: int = 20  # of each of them, at most, whose places in the store are counted
    tolerance: float = 0.05  # an estimate that is less certain is not to be trusted
    # Share of the nearest rows that candidates have to hold, or everything is embedded again. They
    # were chosen by judged retrieval between five encoders, of which none is MPNet.
    wanted_of_map: float = 0.95
    wanted_of_old: float = 0.8


SETTINGS = Settings()


class Candidate(NamedTuple):
    """A kind of map, and the mean fraction of nearest rows that it keeps for held-out pairs."""

    method: str
    penalty: float | None
    kept: float


class Choice(NamedTuple):
    """The map that was chosen, and the pairs that were held out, each once."""

    aligner: Aligner  # with the chosen map
    candidates: tuple[Candidate, ...]  # of each method the best, in ascending order of complexity
    best: Candidate  # the one that was chosen
    rows: Int[np.ndarray, " m"]  # the pairs that were held out
    mapped: Float[Array, "m d_target"]  # unit source rows, by maps that were fitted to other pairs
    embedded: Float[Array, "m d_target"]  # normalised target rows


def fitted(
    aligner: Aligner,
    source: Float[ArrayLike, "n d_source"],
    target: Float[ArrayLike, "n d_target"],
    candidate: Candidate,
) -> Aligner:
    """The aligner with a map of the candidate's kind, fitted to paired raw rows."""
    x, y = aligner.normalise_source(source), aligner.normalise_target(target)
    method, penalty, _ = candidate
    # The eigenvalues of x' x have the sum n, since rows are of unit length.
    options = {} if penalty is None else {"penalty": penalty * len(x) / x.shape[1]}
    matrix = alignment.METHODS[method](x, y, **options)
    return dataclasses.replace(aligner, matrix=matrix, method=method)


def other_rows(queries, store, k: int) -> Int[np.ndarray, "m k"]:
    """The k nearest rows of a store of each query, its own row left out."""
    index = np.asarray(top_k(queries, store, min(k + 1, len(store)))[1])
    others = np.argsort(index == np.arange(len(index))[:, None], axis=1, kind="stable")
    return np.take_along_axis(index, others, axis=1)[:, :k]


def overlap(lists: Int[np.ndarray, "n l"], true: Int[AnyArray, "n k"]) -> Float[np.ndarray, " n"]:
    """The share of each row of `true` that is in the list."""
    return (np.asarray(true)[:, :, None] == lists[:, None, :]).any(axis=2).mean(axis=1)


@jax.jit
def _mapped_folds(x, y, folds, rests, penalties) -> Float[Array, "maps m d_target"]:
    """Unit rows of each fold by the maps of the rest: orthogonal, and others by each penalty."""

    def mapped(rows):
        fold, rest = rows
        pairs, own = (x[rest], y[rest]), penalties * len(rest) / x.shape[1]
        maps = [jax.vmap(fit, (None, None, 0))(*pairs, own) for fit in PENALISED.values()]
        return unit(x[fold] @ jnp.concatenate([procrustes(*pairs)[None], *maps]))

    return jnp.concatenate(lax.map(mapped, (folds, rests)), axis=1)


def choose(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "n d_target"],
    settings: Settings = SETTINGS,
) -> Choice:
    """Chooses a map of raw rows by cross-validation on pairs, the simplest as good as the best.

    The kinds are orthogonal, orthogonal between whitened rows, and ridge, of rows that are centred
    or not. Each is fitted to all folds of the pairs but one, whose source rows it maps; then the
    error is the fraction of the ten target rows nearest to a target row (fewer of few pairs) that
    are not the nearest mapped rows. A simpler kind is as good if the mean difference is within one
    standard error of it. Fewer pairs than dimensions do not span the spaces, and orthogonal maps
    take the other directions anywhere, which the nearest of few pairs do not show: from these the
    map is ridge.
    """
    if len(source) < MIN_PAIRS or len(source) != len(target):
        counts = f"{len(source)} and {len(target)} rows"
        raise UserError(f"{counts}: give {MIN_PAIRS} or more pairs to fit a map.")
    aligners = [
        alignment.fit("procrustes", source, target, normalise=steps, names=("old", "new"))
        for steps in (alignment.NORMALISE, ("unit",))
    ]
    choices = [_choose(aligner, source, target, settings) for aligner in aligners]
    choice = max(choices, key=lambda choice: choice.best.kept)
    return choice._replace(aligner=fitted(choice.aligner, source, target, choice.best))


def _choose(aligner: Aligner, source, target, settings: Settings) -> Choice:
    """`choose` by one normalisation, that of the aligner, which is not yet fitted anew."""
    x, y = aligner.normalise_source(source), aligner.normalise_target(target)
    kinds = [("procrustes", None)]
    kinds += [(name, penalty) for name in PENALISED for penalty in settings.penalties]
    size = min(len(x), settings.rows) // settings.folds
    order = np.random.default_rng(0).permutation(len(x))
    folds = order[: size * settings.folds].reshape(settings.folds, size)
    rests = np.array([np.setdiff1d(order, fold) for fold in folds])
    mapped = _mapped_folds(x, y, folds, rests, np.array(settings.penalties, np.float32))
    embedded = jnp.take(y, folds.ravel(), axis=0)
    k = min(NEAREST, 1 + len(embedded) // 10)
    new = unit(jnp.take(jnp.asarray(target, jnp.float32), folds.ravel(), axis=0))
    true = other_rows(new, new, k)
    kept = [overlap(other_rows(embedded, rows, k), true) for rows in mapped]
    means = np.array([one.mean() for one in kept])
    last = 1 + len(settings.penalties)
    numbers = [0, 1 + int(means[1:last].argmax()), last + int(means[last:].argmax())]
    determined = numbers if len(x) >= max(x.shape[1], y.shape[1]) else numbers[-1:]
    first = max(determined, key=lambda i: means[i])
    for chosen in determined:
        worse = kept[first] - kept[chosen]
        if worse.mean() <= worse.std() / np.sqrt(len(worse)):
            break
    candidates = {i: Candidate(*kinds[i], float(means[i])) for i in numbers}
    return Choice(
        aligner=aligner,
        candidates=tuple(candidates.values()),
        best=candidates[chosen],
        rows=folds.ravel(),
        mapped=mapped[chosen],
        embedded=embedded,
    )


def kept(
    queries: Float[AnyArray, "q d"],
    store: Float[AnyArray, "n d"],
    nearest: Int[AnyArray, "q k"],
) -> dict[str, float]:
    """The mean share of the `nearest` rows of each query that is among its N nearest of `store`.

    By name for each N of `LENGTHS`; `nearest` are rows of the re-embedded store.
    """
    lists = np.asarray(top_k(queries, store, min(max(LENGTHS), len(store)))[1])
    return {name: float(overlap(lists[:, :n], nearest).mean()) for n, name in LENGTHS.items()}
