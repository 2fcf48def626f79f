"""What is kept of the nearest rows of a re-embedded store, estimated from pairs alone.

Each pair is a query in turn. Its nearest pair by the new model, the second nearest and so on stand
for rows of the store: their places in the other store are counted, and whether they are among its
first N is all that is taken of them. Their ranks in the re-embedded store are not known. Of m rows
drawn at random from n, the s-th has the rank t with the negative hypergeometric probability

  C(t - 1, s - 1) C(n - t, m - s) / C(n, m),

and the likelihood sums over the ranks of each two neighbours s and s + 1 together, since two that
are found in the wrong order say most about a map that is nearly perfect.

If products in both stores are jointly normal, a row of rank t is among the first N with probability
Phi(a + (z(t) - z(N)) / w), where z(t) is the normal quantile of 1 - t / n; w = 0 is a perfect map.
Some queries are better than others, so that a share of the noise w is common to the rows of one.
These three parameters are fitted by maximum likelihood and read off at t = 1, ..., 10.

Ranks below n / m are seen seldom. There the nearest rows of real encoders are farther from the rest
than a normal tail has it, more or less, so that more of them are found: the slope is the fitted one
times (1 + min(1, w))^u, with u from -1/4 to 1/2. The interval is that of the likelihood, with a
half-Cauchy prior of w, whose power is such that its width is that of a sandwich estimate over items
(each is a query and a neighbour of others), and what was seen beyond it with real encoders.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Int
from scipy.special import expit, gammaln, ndtr, ndtri
from scipy.stats import multivariate_t

from common.aligner import Aligner
from common.arrays import AnyArray
from common.linear import unit
from common.metrics import Estimate
from common.parallel import one_blas_thread
from common.retrieval import top_k
from isthmus.store import remapping
from isthmus.store.remapping import LENGTHS, NEAREST, SETTINGS, Choice, Settings, other_rows

TIED = 1e-6  # difference of products of unit rows that may be rounding
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(5)  # of the noise that a query's rows share
WEIGHTS /= WEIGHTS.sum()
BOUNDS = np.array([(-8.0, 8.0), (-6.0, 3.0), (-4.0, 0.0)])  # of a, log w, logit of the shared part
STARTS = ((0.0, 0.0, -1.0), (0.0, -3.0, -1.0), (-2.0, 1.5, -1.0))
STEPS = np.array([0.02, 0.02, 0.05])  # for central differences
DRAWS = 400  # of parameters, from their likelihood
FREEDOM = 4  # degrees of freedom of the t-distribution that they are drawn from
BEYOND = (-0.25, 0.5)  # u of slopes beyond the ranks that are seen
FEW_FITTED = 0.02  # of a store, by which no estimate is changed
MIN_RIGHT = 10  # couples in the right order, without one in the wrong, for a perfect map
MIN_INFLATION = 2.0  # each neighbour is in two of the couples whose likelihoods are multiplied


class Estimates(NamedTuple):
    """Estimates of `remapping.kept`, of the lists in which candidates can be sought."""

    by_map: dict[str, Estimate]  # of the mapped store, which the new model's queries search
    by_old: dict[str, Estimate]  # of the old store, which the old model's queries search


def _either(by_one: dict[str, Estimate], by_other: dict[str, Estimate]) -> dict[str, Estimate]:
    """Estimates of one of two ways to search, as uncertain as it is which of them it is."""
    return {
        name: Estimate(value, max(width, abs(value - other.value) + other.uncertainty))
        for (name, (value, width)), other in zip(by_one.items(), by_other.values(), strict=True)
    }


def estimates_of(
    choice: Choice,
    target: Float[ArrayLike, "p d_target"],
    rows: Int[np.ndarray, " p"],
    old_stores: Iterable[Float[AnyArray, "n _"]],
    store: Float[AnyArray, "n d_source"],
    settings: Settings = SETTINGS,
    names: Mapping[int, str] = LENGTHS,
) -> Estimates:
    """Estimates what both kinds of lists keep, from the pairs that the choice has held out.

    `target` has the raw rows of all pairs by the new model, `rows` their places in the store,
    `store` the raw rows of the old model, as they are mapped, and `old_stores` as they are
    searched, no longer than 1, in two ways if it is not known in which. The shares have the `names`
    by the length of their lists.
    """
    held_out = rows[choice.rows]
    new = unit(jnp.take(jnp.asarray(target, jnp.float32), choice.rows, axis=0))
    about = held_out, new, len(store), settings, names
    part = len(rows) / len(store)  # whose maps were fitted to them, and keep more of them
    folds = _by_folds(choice, np.asarray(target), rows, store, settings.folds, part > FEW_FITTED)
    by_map, *fitted = estimated(folds, *about)
    for name, share in by_map.items() if fitted else ():
        mixed = (x + part * (y - x) for x, y in zip(share, fitted[0][name], strict=True))
        by_map[name] = Estimate(*mixed)
    olds = (jnp.asarray(old, jnp.float32) for old in old_stores)
    searches = ([Searched(old[held_out], [old[held_out]], old)] for old in olds)
    return Estimates(by_map, reduce(_either, (estimated(one, *about)[0] for one in searches)))


class Searched(NamedTuple):
    """Some pairs as queries, all pairs as they stand in a store, in one way or more; unit rows."""

    queries: Float[AnyArray, "q d"]
    own: Sequence[Float[AnyArray, "m d"]]
    store: Float[AnyArray, "n d"]


def _by_folds(choice: Choice, target, rows, store, folds: int, fitted: bool) -> Iterator[Searched]:
    """Each fold of the pairs in turn, in the store that is mapped without it.

    A map that is fitted to a query takes the rows around it to where its neighbours by the new
    model are, and so keeps more of them than of another query. Each pair that is sought stands by a
    map that is fitted neither to the query's fold nor to its own; if `fitted`, then also by one
    that is fitted to its own.
    """
    parts, old = choice.rows.reshape(folds, -1), np.asarray(store)[rows]

    @cache
    def without(*numbers: int) -> Aligner:
        others = np.setdiff1d(np.arange(len(rows)), parts[list(numbers)])
        return remapping.fitted(choice.aligner, old[others], target[others], choice.best)

    queries = unit(choice.embedded).reshape(folds, len(parts[0]), -1)
    for fold in range(folds):
        mapped = unit(without(fold).apply(store))
        maps = (without(*sorted({fold, number})) for number in range(folds))
        own = [one.apply(old[part]) for one, part in zip(maps, parts, strict=True)]
        own = [unit(jnp.concatenate(own)), jnp.take(mapped, rows[choice.rows], axis=0)]
        yield Searched(queries[fold], own[: 1 + fitted], mapped)


def estimated(
    searches: Iterable[Searched],
    rows: Int[np.ndarray, " m"],
    embedded: Float[AnyArray, "m e"],
    n: int,
    settings: Settings = SETTINGS,
    names: Mapping[int, str] = LENGTHS,
) -> list[dict[str, Estimate]]:
    """Estimates `remapping.kept` of a store of n rows, without the re-embedded store.

    Row i of `embedded`, and of the pairs in each search, is the item `rows[i]` of the store; the
    searches have the next of them as queries. All rows are no longer than 1. Pairs stand by maps
    that were not fitted to them, since others would be nearer to queries than the rest of the
    store; there is an estimate of each way in which they stand. Rows that tie with a pair, of which
    stores of quantised vectors have many, stand in random order.
    """
    m, ways, asked = len(embedded), [], 0
    count = min(settings.neighbours, max(2, m // 10))
    true = other_rows(embedded, embedded, count)
    lengths = [length for length in names if length < n]
    for queries, owns, store in searches:
        of_queries = jnp.arange(asked, asked := asked + len(queries))
        ways.append([])
        for own in owns:
            best = top_k(queries, jnp.asarray(store).at[rows].set(own), min(max(lengths) + 2, n))[0]
            given = best, jnp.asarray(queries), jnp.asarray(own), of_queries, jnp.asarray(true)
            ways[-1].append(np.asarray(_places(*given, n / m)))
    ranks, joint = _joint_ranks(n - 1, m - 1, count, lengths)
    seen = max(1.0, n / m)  # rank of the first pair, on the average
    z, nearest, seen = (
        _quantile(rank, n) for rank in (ranks, np.arange(1, min(NEAREST, n - 1) + 1), seen)
    )
    estimates = []
    with one_blas_thread():  # products are small
        for first, last in (np.concatenate(way, axis=1) for way in zip(*ways, strict=True)):
            estimates.append({})
            for length in lengths:
                found = np.clip((length - first) / np.maximum(last - first, 1), 0, 1)
                edge = _quantile(length + 0.5, n)
                of_store = z - edge, joint, nearest - edge, seen - edge
                estimates[-1][names[length]] = _share(found, true, *of_store)
    return estimates


@jax.jit
def _places(best, queries, own, asked, true, rows_of_a_pair):
    """How many rows of the store precede each true neighbour at least, and with those that tie.

    The queries are the pairs `asked`.
    The neighbour itself ties, and the query's own row, which is in the store, does not count. Ties
    that go on beyond the best rows are counted among the pairs, which are a sample of the store.
    """
    products = jnp.einsum("md,msd->ms", queries, own[true[asked]])
    to_own = jnp.sum(queries * own[asked], axis=1)[:, None]

    def count(bounds):
        before = jnp.sum(best[:, None, :] > bounds[:, :, None], axis=2)
        return (before - (to_own > bounds).astype(before.dtype)).astype(best.dtype)

    first, last = count(products + TIED), count(products - TIED)
    to_pairs = queries @ own.T
    tied = jnp.sum(jnp.abs(to_pairs[:, None, :] - products[:, :, None]) <= TIED, axis=2)
    all_listed = last < best.shape[1] - 1
    last = jnp.where(all_listed, last, first + rows_of_a_pair * tied.astype(best.dtype))
    return jnp.stack([first, last])


def _quantile(rank, n: int):
    return ndtri(1 - np.minimum(rank, n - 1) / n)


def _joint_ranks(
    n: int, m: int, count: int, lengths: list[int]
) -> tuple[Float[np.ndarray, " g"], Float[np.ndarray, "s g g"]]:
    """Probabilities of the ranks of the s-th and the next of m rows of n, in cells of ranks.

    They are C(t - 1, s - 1) C(n - u, m - s - 1) / C(n, m) for t < u, of which each factor is summed
    over its cell. Cells end at the `lengths`, and are single ranks first.
    """
    highest = int(min(n, count * (n + 1) / (m + 1) * (1 + 6 / np.sqrt(count)) + 12))
    edges = np.r_[1:22, np.geomspace(21, max(highest + 1, 22), 36).round(), np.add(lengths, 1)]
    edges = np.unique(np.r_[edges[edges <= highest], highest + 1]).astype(int)
    t, size = np.arange(1, highest + 1), len(edges) - 1
    cell = np.searchsorted(edges, t, side="right") - 1

    def choose(of, k):
        of_valid = np.maximum(of, k)
        log = gammaln(of_valid + 1) - gammaln(k + 1) - gammaln(of_valid - k + 1)
        return np.where(of >= k, log, -np.inf)

    joint = []
    for s in range(1, count):
        before, after = choose(t - 1, s - 1), choose(n - t, m - s - 1)
        typical = min(highest, max(s, s * n // m)) - 1
        before, after = np.exp(before - before[typical]), np.exp(after - after[typical])
        rest = np.r_[np.cumsum(after[::-1])[::-1], 0]  # from each rank on
        cells = np.outer(np.bincount(cell, before, size), np.bincount(cell, after, size))
        within = np.bincount(cell, before * (rest[1:] - rest[edges[1:] - 1][cell]), size)
        cells = np.triu(cells, 1) + np.diag(within)
        joint.append(cells / cells.sum())
    return (edges[:-1] + edges[1:] - 1) / 2, np.array(joint)


def _chance(thetas, z) -> Float[np.ndarray, "b k g"]:
    """The probability that a row is found, for each node of what its query's rows share."""
    a, log_w, shared = (column[:, None, None] for column in np.asarray(thetas).T)
    noise = np.sqrt(expit(shared)) * NODES[:, None]
    return ndtr((a + z * np.exp(-log_w) + noise) / np.sqrt(expit(-shared)))


def _logs(thetas, z, joint) -> Float[np.ndarray, "b s 4"]:
    """Log-probabilities that of two neighbours none, the farther, the nearer, or both are found."""
    found = _chance(thetas, z)
    weighted = (found * WEIGHTS[:, None]).swapaxes(1, 2)
    of_two = (weighted @ found).reshape(len(found), -1)  # by the ranks of both
    both = of_two @ joint.reshape(len(joint), -1).T
    farther, nearer = (weighted.sum(axis=2) @ joint.sum(axis=axis).T for axis in (1, 2))
    couples = np.stack([1 - nearer - farther + both, farther - both, nearer - both, both], axis=2)
    return np.log(np.maximum(couples, 1e-9))


def _losses(thetas, z, joint, counts) -> Float[np.ndarray, " b"]:
    penalty = (np.asarray(thetas)[:, 2] / 1.5) ** 2 / 2  # for what few pairs say nothing about
    return penalty - np.einsum("bsc,sc->b", _logs(thetas, z, joint), counts)


def _means(thetas, powers, nearest, seen) -> Float[np.ndarray, " b"]:
    """Shares of the nearest rows, with slopes beyond the ranks that are seen by these powers u."""
    slopes = (1 + np.minimum(1, np.exp(np.asarray(thetas)[:, 1]))) ** powers
    beyond = np.maximum(nearest - seen, 0)
    z = np.minimum(nearest, seen) + slopes[:, None, None] * beyond
    return np.einsum("k,bkg->b", WEIGHTS, _chance(thetas, z)) / len(nearest)


def _around(theta) -> Float[np.ndarray, "6 3"]:
    """Points beside theta, for central differences."""
    return theta + np.concatenate([np.diag(STEPS), -np.diag(STEPS)])


def _slopes(values) -> Float[np.ndarray, "3 ..."]:
    """Derivatives from the values at `_around`."""
    return ((values[:3] - values[3:]).T / (2 * STEPS)).T


def _share(found, true, z, joint, nearest, seen) -> Estimate:
    """The estimate from which neighbours are found, a share of them where they tie."""
    from scipy.optimize import minimize

    sides = np.stack([1 - found, found], axis=2)
    couples = np.einsum("msi,msj->msij", sides[:, :-1], sides[:, 1:]).reshape(len(found), -1, 4)
    data, asked = (z, joint, couples.sum(axis=0)), (nearest, seen)

    def objective(theta):
        losses = _losses(np.concatenate([theta[None], _around(theta)]), *data)
        return losses[0], _slopes(losses[1:])

    fits = [minimize(objective, x, jac=True, method="L-BFGS-B", bounds=BOUNDS) for x in STARTS]
    theta = min(fits, key=lambda fit: fit.fun).x
    covariance, power = _curvature(theta, couples, true, objective, data, asked)
    random = np.random.default_rng(0)
    steps = random.standard_normal((DRAWS, 3))
    steps *= np.sqrt(FREEDOM / random.chisquare(FREEDOM, (DRAWS, 1)))
    # The likelihood of few pairs has several modes.
    anywhere = random.uniform(BOUNDS[:, 0], BOUNDS[:, 1], (DRAWS, 3))
    thetas = np.concatenate([theta + steps @ np.linalg.cholesky(covariance).T, anywhere])
    thetas = thetas[np.all((thetas >= BOUNDS[:, 0]) & (thetas <= BOUNDS[:, 1]), axis=1)]
    near = multivariate_t.pdf(thetas, theta, covariance, FREEDOM)
    drawn = np.log(near + 1 / np.prod(np.ptp(BOUNDS, axis=1)))
    prior = thetas[:, 1] - np.log1p(np.exp(2 * thetas[:, 1]))  # half-Cauchy of w
    weights = prior - power * _losses(thetas, *data) - drawn
    weights = np.exp(weights - weights.max())
    shares = _means(thetas, random.uniform(*BEYOND, len(thetas)), *asked)
    order = np.argsort(shares)
    places = np.cumsum(weights[order]) / weights.sum()
    low, high = shares[order][np.searchsorted(places, (0.025, 0.975)).clip(max=len(order) - 1)]
    value = float(_means(theta[None], np.mean(BEYOND), *asked)[0])
    _, wrong, right, _ = data[2].sum(axis=0)  # order of couples of which one is found
    if not wrong and right >= MIN_RIGHT:
        value = 1.0  # nothing says that there is noise
    others = 0.01 + 0.06 * value * np.sqrt(1 - value)  # seen with real encoders
    return Estimate(value, float(np.hypot(max(value - low, high - value), others)))


def _curvature(theta, couples, true, objective, data, asked):
    """A covariance to draw from, and the power of the likelihood that makes its width right.

    The score of a couple is that of its query and of both neighbours, which may be in many.
    """
    hessian = _slopes(np.array([objective(x)[1] for x in _around(theta)]))
    scores = np.einsum("msc,psc->msp", couples, _slopes(_logs(_around(theta), *data[:2])))
    of_item = scores.sum(axis=1)
    for neighbours in (true[:, :-1], true[:, 1:]):
        np.add.at(of_item, neighbours, scores)
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    inverse = vectors / np.maximum(values, 0.3) @ vectors.T
    direction = inverse @ _slopes(_means(_around(theta), np.mean(BEYOND), *asked))
    variance = np.sum((of_item @ direction) ** 2)
    inflation = variance / max(direction @ hessian @ direction, 1e-12)
    power = 1 / max(inflation, MIN_INFLATION)
    return vectors / np.maximum(values * power, 0.5) @ vectors.T, power
