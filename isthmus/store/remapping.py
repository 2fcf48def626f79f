"""Vectors of an old embedding model in the space of a new one: which map, and what it keeps.

A store holds vectors of an old model, queries come from a new one. `choose` fits a map of the store
to items that both models have embedded, chosen by how well it keeps the lists of nearest rows of
pairs that it was not fitted to. Of the ten rows that are nearest to a query in the re-embedded
store, `kept` measures how many are among the 10, 50, 100 and 200 nearest of another store, and
`estimated` says so without a re-embedded store. The first number is the recall of the mapped store
itself; the others are what is left if the new model embeds so many candidates and puts them in
order. `advise` chooses what to do.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int
from scipy.special import log_ndtr, ndtr, ndtri

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
JACKKNIFE_GROUPS = 10
PENALISED = {name: alignment.METHODS[name] for name in ("whitened_procrustes", "ridge")}
TIED = 1e-6  # difference of products of unit rows that may be rounding


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How maps are compared on held-out pairs, and larger stores extrapolated."""

    folds: int = 5
    penalties: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # 1: mean eigenvalue
    rows: int = 2_000  # held-out pairs, at most, among which nearest rows are sought
    neighbours: int = 20  # of each of them, at most, whose places in the store are counted
    tolerance: float = 0.05  # an estimate that is less certain is not to be trusted
    # Share of the nearest rows that candidates have to hold, or everything is embedded again. They
    # were chosen by judged retrieval between five encoders, of which none is MPNet.
    wanted_of_map: float = 0.95
    wanted_of_old: float = 0.8


class Candidate(NamedTuple):
    """A kind of map, and the mean fraction of nearest rows that it keeps for held-out pairs."""

    method: str
    penalty: float | None
    kept: float


class Estimate(NamedTuple):
    """A share of nearest rows that is kept, and its uncertainty, about two standard errors."""

    value: float
    uncertainty: float


class Choice(NamedTuple):
    """The map that was chosen.

    Attributes:
      aligner: with the chosen map.
      candidates: of each method the best, in ascending order of complexity.
      best: the one that was chosen.
      rows: the pairs that were held out, each once.
      mapped: their unit source rows, mapped by maps that were fitted to other pairs.
      embedded: their normalised target rows.
    """

    aligner: Aligner
    candidates: tuple[Candidate, ...]
    best: Candidate
    rows: Int[np.ndarray, " m"]
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


def _unit_rows(x: Float[ArrayLike, "n d"], rows: Int[np.ndarray, " m"]) -> Float[Array, "m d"]:
    return unit(jnp.take(jnp.asarray(x, jnp.float32), rows, axis=0))


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
    settings: Settings = Settings(),
) -> Choice:
    """Chooses a map by cross-validation on pairs: the simplest that is as good as the best.

    The kinds are orthogonal, orthogonal between whitened rows, and ridge, of rows that are centred
    or not. Each is fitted to all folds of the pairs but one, whose source rows it maps; then the
    error is the fraction of the ten target rows nearest to a target row (fewer of few pairs) that
    are not the nearest mapped rows. A simpler kind is as good if the mean difference is within one
    standard error of it. Fewer pairs than dimensions do not span the spaces, and orthogonal maps
    take the other directions anywhere, which the nearest of few pairs do not show: from these the
    map is ridge.

    Args:
      source: raw rows of the old model.
      target: raw rows of the new model, of the same items.
      settings: of the comparison.

    Raises:
      UserError: fewer than MIN_PAIRS pairs, or rows that `alignment.fit` refuses.
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
    new = _unit_rows(target, folds.ravel())
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
    """The share of the rows nearest in the re-embedded store that are near in this one.

    Args:
      queries: unit rows.
      store: unit rows that are searched.
      nearest: the k rows of the re-embedded store that are nearest to each query.

    Returns:
      For each N of `LENGTHS`, by its name, the mean share of these that are among the N nearest
      rows of `store`.
    """
    lists = np.asarray(top_k(queries, store, min(max(LENGTHS), len(store)))[1])
    return {name: float(overlap(lists[:, :n], nearest).mean()) for n, name in LENGTHS.items()}


def estimated(
    queries: Float[AnyArray, "m d"],
    own: Float[AnyArray, "m d"],
    rows: Int[np.ndarray, " m"],
    embedded: Float[AnyArray, "m e"],
    store: Float[AnyArray, "n d"],
    settings: Settings = Settings(),
) -> dict[str, Estimate]:
    """Estimates `kept` of a store from pairs, without the re-embedded store.

    Each pair is a query in turn. Of its nearest pairs by the new model, the s-th of m has the rank
    of about t = s n / m in the whole re-embedded store of n rows, and its place in `store` is
    counted. There all pairs stand by maps that were not fitted to them, since others would be
    nearer to queries than the rest of the store. Rows that tie with it, of which stores of
    quantised vectors have many, stand in random order.

    If products in both stores are jointly normal, the probability that the row of rank t is among
    the first N is Phi(a + b z(t)), where z(t) is the normal quantile of 1 - t / n. a and b are
    fitted to the shares at s = 1, 2, ... by maximum likelihood, and read off at t = 1, ..., 10.
    Maps of few pairs were seen to blur the nearest rows, which halves b there; beyond the first
    rank that is observed the mean of both slopes is taken. The uncertainty is half of their
    difference, and two standard errors: by a jackknife over ten groups of queries, or of the fit if
    these are larger.

    Args:
      queries: unit rows with which the store is searched, of each pair.
      own: unit rows by which the pairs are in the store, of maps that were not fitted to them.
      rows: of the store, the items of the pairs.
      embedded: unit rows of the pairs by the new model.
      store: unit rows of all items.
      settings: gives the number of neighbours.
    """
    m, n = len(queries), len(store)
    count = min(settings.neighbours, max(1, m // 10))
    true = other_rows(embedded, embedded, count)
    lengths = [length for length in LENGTHS if length < n]
    held_out = jnp.asarray(store).at[rows].set(own)
    best = top_k(queries, held_out, min(max(lengths) + 2, n))[0]
    first, last = map(np.asarray, _places(best, *map(jnp.asarray, (queries, own, true)), n / m))
    ranks = np.arange(1, count + 1) * n / m
    groups = np.arange(m) % JACKKNIFE_GROUPS
    estimates = {}
    for length in lengths:
        found = np.clip((length - first) / np.maximum(last - first, 1), 0, 1)
        line = _line(found, ranks, n)
        value, doubt = _share(line, n)
        others = (_line(found[groups != group], ranks, n) for group in range(JACKKNIFE_GROUPS))
        jackknife = 2 * np.sqrt(JACKKNIFE_GROUPS - 1) * np.std([_share(x, n)[0] for x in others])
        error = max(jackknife, _standard_errors(line, n)) + doubt
        estimates[LENGTHS[length]] = Estimate(value, float(error))
    return estimates


class Estimates(NamedTuple):
    """Estimates of `kept`, of the lists in which candidates can be sought.

    Attributes:
      by_map: of the mapped store, which the new model's queries search.
      by_old: of the old store, which the old model's queries search.
    """

    by_map: dict[str, Estimate]
    by_old: dict[str, Estimate]


def estimates_of(
    choice: Choice,
    source: Float[ArrayLike, "p d_source"],
    target: Float[ArrayLike, "p d_target"],
    rows: Int[np.ndarray, " p"],
    old_store: Float[AnyArray, "n d_source"],
    mapped_store: Float[AnyArray, "n d_target"],
    settings: Settings = Settings(),
) -> Estimates:
    """Estimates what both kinds of lists keep, from the pairs that the choice has held out.

    Args:
      choice: of `choose`, from these pairs.
      source: raw rows of the old model.
      target: raw rows of the new model, of the same items.
      rows: of both stores, these items.
      old_store: unit rows of the old model, all of them.
      mapped_store: unit rows of the same items, by the map that was chosen.
      settings: see `estimated`.
    """
    old, new = (_unit_rows(x, choice.rows) for x in (source, target))
    rows = rows[choice.rows]
    return Estimates(
        estimated(unit(choice.embedded), choice.mapped, rows, new, mapped_store, settings),
        estimated(old, old, rows, new, old_store, settings),
    )


class Advice(NamedTuple):
    """What to do: a strategy, and the number of candidates that the new model puts in order."""

    strategy: str
    candidates: int | None = None


def advise(estimates: Estimates, old_model_runs: bool, settings: Settings = Settings()) -> Advice:
    """The cheapest strategy that is estimated to keep enough.

    In ascending order of what it costs for each query: stay with the old model, map the store, the
    old model's or the mapped store's first 10, 50, 100 or 200 candidates in the new model's order,
    and embed everything again. A store of its own lists has to keep `wanted_of_map`. The old
    model's candidates need to keep less: it is a good model itself, and what it leaves out is
    seldom what was asked for.

    Args:
      estimates: of the lists in which candidates can be sought.
      old_model_runs: whether queries can still be embedded by the old model.
      settings: what has to be kept.
    """
    by_map, by_old = estimates
    if old_model_runs and by_old["recall_10"].value >= settings.wanted_of_map:
        return Advice("old model")
    if by_map["recall_10"].value >= settings.wanted_of_map:
        return Advice("mapped store")
    for length, name in LENGTHS.items():
        if old_model_runs and name in by_old and by_old[name].value >= settings.wanted_of_old:
            return Advice("old candidates", length)
        if name in by_map and by_map[name].value >= settings.wanted_of_map:
            return Advice("mapped candidates", length)
    return Advice("re-embedded")


@jax.jit
def _places(best, queries, own, true, rows_of_a_pair):
    """How many rows of the store precede each true neighbour at least, and with those that tie.

    The neighbour itself ties, and the query's own row, which is in the store, does not count. Ties
    that go on beyond the best rows are counted among the pairs, which are a sample of the store.
    """
    products = jnp.einsum("md,msd->ms", queries, own[true])
    to_own = jnp.sum(queries * own, axis=1)[:, None]

    def count(bounds):
        return jnp.sum(best[:, None, :] > bounds[:, :, None], axis=2) - (to_own > bounds)

    first, last = count(products + TIED), count(products - TIED)
    to_pairs = queries @ own.T
    tied = jnp.sum(jnp.abs(to_pairs[:, None, :] - products[:, :, None]) <= TIED, axis=2)
    all_listed = last < best.shape[1] - 1
    return first, jnp.where(all_listed, last, first + rows_of_a_pair * tied)


class _Line(NamedTuple):
    """The probit regression of `estimated`: the chance of a row is Phi(a + b z).

    Attributes:
      coefficients: a and b; b is 0 if one rank alone is observed, which shows no slope.
      covariance: of both, if all queries were independent.
      first: z of the first rank that is observed.
    """

    coefficients: Float[np.ndarray, " 2"]
    covariance: Float[np.ndarray, "2 2"]
    first: float


def _line(found: Float[np.ndarray, "m s"], ranks: Float[np.ndarray, " s"], n: int) -> _Line:
    """The regression by maximum likelihood, from whether the rows of certain ranks are found.

    Half an observation that finds the row and half a one that does not are added, spread over the
    ranks, so that the fit is finite if no or every row is found.
    """
    from scipy.optimize import minimize

    count = len(found) + 1 / len(ranks)
    shares = (found.sum(axis=0) + 0.5 / len(ranks)) / count
    z = ndtri(1 - np.minimum(ranks, n - 1) / n)
    terms = np.stack([np.ones(len(z)), z * (len(z) > 1)], axis=1)

    def loss(coefficients):
        places = terms @ coefficients
        likelihood = shares * log_ndtr(places) + (1 - shares) * log_ndtr(-places)
        gradient = shares * _density_ratio(places) - (1 - shares) * _density_ratio(-places)
        return -count * likelihood.sum(), -count * terms.T @ gradient

    coefficients = minimize(loss, [ndtri(shares.mean()), 0.0], jac=True).x
    places = terms @ coefficients
    information = count * _density_ratio(places) * _density_ratio(-places)  # of each rank
    return _Line(coefficients, np.linalg.pinv(terms.T @ (terms * information[:, None])), z[0])


def _nearest(line: _Line, n: int, slope: float) -> Float[np.ndarray, "k 2"]:
    """Terms 1 and z of the `NEAREST` ranks; beyond the first observed one b is `slope` b."""
    z = ndtri(1 - np.arange(1, min(NEAREST, n - 1) + 1) / n)
    seen, beyond = np.minimum(z, line.first), np.maximum(z - line.first, 0)
    return np.stack([np.ones(len(z)), seen + slope * beyond], axis=1)


def _share(line: _Line, n: int) -> tuple[float, float]:
    """The share of the `NEAREST` rows by the mean of both slopes, and half of their difference."""
    whole, half = (ndtr(_nearest(line, n, slope) @ line.coefficients).mean() for slope in (1, 0.5))
    return float((whole + half) / 2), float(abs(whole - half) / 2)


def _standard_errors(line: _Line, n: int) -> float:
    """The distance from the share by the whole slope to the farther end of its interval.

    That is two standard errors of a + b z if all queries were independent, which a jackknife misses
    if no or every row is found and all its groups agree. Where few rows are found, chances change
    little with a + b z at first, and much after it.
    """
    terms = _nearest(line, n, 1)
    places = terms @ line.coefficients
    errors = np.sqrt(np.sum(terms @ line.covariance * terms, axis=1))
    low, value, high = (ndtr(places + side * errors).mean() for side in (-2, 0, 2))
    return float(max(value - low, high - value))


def _density_ratio(z: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Density over distribution function of the standard normal distribution."""
    return np.exp(-(z**2) / 2 - log_ndtr(z)) / np.sqrt(2 * np.pi)
