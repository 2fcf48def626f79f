"""The bootstrap: from few known pairs to a correspondence, by matching and mapping in turn.

Both spaces are mapped into common coordinates (at first: coordinates in the span of the known
pairs), rows are matched there by hubness-corrected similarity (CSLS), and the matches give the next
pair of maps by one singular value decomposition. All anchors are thus tied to one map between the
spaces, whereas Algorithm 1 moves each anchor freely from a random start, so that its first matching
depends mostly on noise. At the end the anchors are freed and fitted one by one (`fit_anchors`).

Related: self-learning and symmetric re-weighting (Artetxe et al. 2018), CSLS (Lample et al. 2018).
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from common.linear import both_mapped, mapped, unit
from common.parallel import block_rows, scan_rows
from common.retrieval import largest, products

# Score of a dropped pair: below every score 2 s - r of unit rows, and finite, since all entries of
# a column may be dropped.
DROPPED = -4.0
LOWEST = -1e30  # initial best objective; finite, as `train.run` requires of a state


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loop:
    """Static values of `step`; "measured" values were chosen on development pairs alone.

    Development pairs are minilm -> minilm_input and noisy isometries; what was measured is in
    docs/results/anchor_opt.md, "Constants of the bootstrap".
    """

    neighbours: int = 10  # of CSLS (Lample et al. 2018)
    reweight: float = 1.0  # power of the singular values, measured
    pair_weight: float = 10.0  # weight of a known pair; a match has weight 1; measured
    patience: int = 10  # steps without gain before keep_prob is doubled or, at 1, the loop ends
    tolerance: float = 1e-4  # smallest gain of the objective that counts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grouped(Loop):
    """Static values of `grouped_step`."""

    patience: int = 30  # steps without gain before the loop ends, measured
    groups: int  # groups of the rows of each space
    group_rows: int | None = None  # rows of a group; None: the groups hold all rows


class State(NamedTuple):
    """Maps into the common coordinates, and the progress of the loop."""

    source_map: Float[Array, "d_source r"]
    target_map: Float[Array, "d_target r"]
    keep_prob: Float[Array, ""]  # probability that a similarity takes part in a matching
    best: Float[Array, ""]  # highest objective at this keep_prob
    stalled: Int[Array, ""]  # steps since the last gain
    draw: Int[Array, ""]  # number of the next random draw of dropped similarities


class Data(NamedTuple):
    """Unit rows of both spaces; rows `source_pairs` and `target_pairs` are the known pairs."""

    source: Float[Array, "n d_source"]
    target: Float[Array, "m d_target"]
    source_pairs: Int[Array, " p"]
    target_pairs: Int[Array, " p"]


class Matches(NamedTuple):
    """Nearest neighbours by CSLS in both directions."""

    to_target: Int[Array, " n"]  # target row of each source row
    to_source: Int[Array, " m"]  # source row of each target row
    mutual: Bool[Array, " n"]  # whether a source row is the nearest one of its target row, too
    objective: Float[Array, ""]  # mean CSLS of both directions; high if the maps are right


@partial(jax.jit, static_argnames="neighbours")
def csls_matches(
    source: Float[Array, "n r"],
    target: Float[Array, "m r"],
    *,
    neighbours: int = 10,
    keep_prob: Float[Array, ""] | float = 1.0,
    draw: Int[Array, ""] | int = 0,
) -> Matches:
    """Matches unit rows by CSLS = 2 cos - r(source row) - r(target row), in two streamed passes.

    Args:
      source: unit rows.
      target: unit rows.
      neighbours: rows that r averages over, cut to the rows there are.
      keep_prob: probability that a pair may be matched; the others are dropped at random.
      draw: number of the random draw; another number drops other pairs.
    """
    nearest = partial(_nearest, neighbours=neighbours, keep_prob=keep_prob)
    to_source, target_score, source_hubness = nearest(source, target, draw=draw)
    to_target, source_score, target_hubness = nearest(target, source, draw=draw + 1)
    mutual = to_source[to_target] == jnp.arange(source.shape[0])
    objective = (target_score - target_hubness).mean() + (source_score - source_hubness).mean()
    return Matches(to_target=to_target, to_source=to_source, mutual=mutual, objective=objective / 2)


def _nearest(rows, columns, neighbours, keep_prob, draw):
    """For every column the row with the largest 2 s - r(row), that score, and r of the rows.

    r of a block's rows is known once the block is, so one pass gives hubness and argmax together.
    Of the similarities one block [block, columns] is held (243 MiB for 200,000 columns).
    """
    num_columns = columns.shape[0]
    neighbours = min(neighbours, num_columns)

    def step(carry, index, valid, block, columns):
        best, argmax = carry
        similarity = products(block, columns)
        hubness = largest(similarity, neighbours)[0].mean(axis=1)
        penalty = jnp.where(valid, hubness, jnp.inf)[:, None]

        def dropped():
            kept = _kept(index, num_columns, keep_prob, draw)
            return _best_rows(jnp.where(kept, 2 * similarity - penalty, DROPPED))

        value, winner = lax.cond(
            keep_prob < 1, dropped, lambda: _best_rows(2 * similarity - penalty)
        )
        better = value > best  # strict: of equal scores the lower row is taken
        carry = jnp.where(better, value, best), jnp.where(better, index[winner], argmax)
        return carry, hubness

    def merge(first, second):
        better = second[0] > first[0]
        return jax.tree.map(lambda a, b: jnp.where(better, b, a), first, second)

    init = jnp.full(num_columns, -jnp.inf), jnp.zeros(num_columns, jnp.int32)
    block = block_rows(num_columns)
    (best, argmax), hubness = scan_rows(step, init, merge, rows, columns, block=block)
    return argmax, best, hubness


def _best_rows(score):
    """The largest score of every column and its row."""
    return score.max(axis=0), score.argmax(axis=0)


def _kept(index, num_columns, keep_prob, draw):
    """Whether each pair of rows is kept: a hash of (row, column, draw) below keep_prob.

    It does not depend on the number of devices. Neither does `jax.random.bernoulli` with a key
    folded with each row's index, but with it a step at 4,000 rows of 384 numbers took .82 s instead
    of .54 s on one core.
    """
    column = jnp.arange(num_columns, dtype=jnp.uint32)[None]
    h = index.astype(jnp.uint32)[:, None] * jnp.uint32(0x9E3779B1)
    h = h ^ (column * jnp.uint32(0x85EBCA77) + jnp.uint32(draw) * jnp.uint32(0xC2B2AE3D))
    h = (h ^ (h >> 15)) * jnp.uint32(0x2C1B3C6D)
    h = (h ^ (h >> 12)) * jnp.uint32(0x297A2D39)
    return (h ^ (h >> 15)).astype(jnp.float32) * 2.0**-32 < keep_prob


def from_maps(
    source_map: Float[Array, "d_source r"],
    target_map: Float[Array, "d_target r"],
    keep_prob: float = 1.0,
    draw: int = 0,
) -> State:
    """The state at the start of a loop from the given maps."""
    return State(
        source_map=source_map,
        target_map=target_map,
        keep_prob=np.float32(keep_prob),
        best=np.float32(LOWEST),
        stalled=np.int32(0),
        draw=np.int32(draw),
    )


@jax.jit
def from_pairs(data: Data) -> State:
    """The state at the start of a loop from the known pairs.

    The common coordinates of x are x S' (S S')^(-1/2), where the rows of S are the space's rows in
    known pairs. They leave out the orthogonal complement of the span of S, about which the pairs
    say nothing; an orthogonal map fitted on few pairs would fill it with an arbitrary rotation. If
    there are more pairs than dimensions it is the orthogonal map that is taken.
    """
    rank = min(data.source.shape[1], data.target.shape[1])
    if len(data.source_pairs) > rank:
        return from_maps(*common_maps(pair_covariance(data), 0.0))

    def whitened(pairs):
        values, vectors = jnp.linalg.eigh(pairs @ pairs.T)
        # The eigenvalues of linearly dependent rows are rounding errors.
        scale = jnp.where(values > 1e-3 * values[-1], 1 / jnp.sqrt(jnp.abs(values)), 0.0)
        transform = pairs.T @ (vectors * scale) @ vectors.T
        return jnp.pad(transform, [(0, 0), (0, rank - len(pairs))])

    pairs = data.source[data.source_pairs], data.target[data.target_pairs]
    return from_maps(*map(whitened, pairs))


def coordinates(state: State, data: Data) -> tuple[Float[Array, "n r"], Float[Array, "m r"]]:
    """Both spaces in the common coordinates, unit rows."""
    return both_mapped((data.source, data.target), (state.source_map, state.target_map))


@jax.jit
def common_maps(
    covariance: Float[Array, "d_source d_target"], reweight: float
) -> tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]:
    """Maps of both spaces into common coordinates: U s^(reweight/2) and V s^(reweight/2).

    U s V' is the singular value decomposition of the covariance, s divided by its largest entry.

    Args:
      covariance: sum of x_i y_j' over matched rows.
      reweight: power of the singular values; 0: one orthogonal map between the spaces.
    """
    left, values, right = jnp.linalg.svd(covariance, full_matrices=False)
    scale = (values / values[0]) ** (reweight / 2)
    return left * scale, right.T * scale


def pair_covariance(data: Data) -> Float[Array, "d_source d_target"]:
    """Sum of x_i y_j' over the known pairs."""
    return data.source[data.source_pairs].T @ data.target[data.target_pairs]


def current_matches(state: State, data: Data, neighbours: int, **drop) -> Matches:
    """`csls_matches` in the common coordinates; `drop` are its keep_prob and draw."""
    return csls_matches(*coordinates(state, data), neighbours=neighbours, **drop)


def step(state: State, index, data: Data, settings: Loop) -> tuple[State, dict]:
    """Matches in the common coordinates, then maps by the matches' cross-covariance."""
    drop = {"keep_prob": state.keep_prob, "draw": state.draw}
    found = current_matches(state, data, settings.neighbours, **drop)
    # The matches of both directions, not the mutual ones alone: from a weak start those are few,
    # and mostly confirm the map that produced them.
    covariance = data.source.T @ data.target[found.to_target]
    covariance += data.source[found.to_source].T @ data.target
    covariance += settings.pair_weight * pair_covariance(data)
    metrics = {"objective": found.objective, "mutual": found.mutual.mean()}
    new = _advanced(state, index, covariance, found.objective, settings)
    return new, metrics | {"keep_prob": state.keep_prob}


def _advanced(state: State, index, covariance: Array, objective: Array, settings: Loop) -> State:
    """The state after a step: the maps of the covariance, and the progress of the objective.

    The objective of the first step (`index` 0) does not count: it is measured in the coordinates of
    the start, which may weight their axes in another way.
    """
    source_map, target_map = common_maps(covariance, settings.reweight)
    stalled = jnp.where(objective > state.best + settings.tolerance, 0, state.stalled + 1)
    doubles = (stalled >= settings.patience) & (state.keep_prob < 1)
    return State(
        source_map=source_map,
        target_map=target_map,
        keep_prob=jnp.where(doubles, jnp.minimum(1.0, 2 * state.keep_prob), state.keep_prob),
        # Objectives at different probabilities are not comparable.
        best=jnp.where(doubles | (index == 0), LOWEST, jnp.maximum(state.best, objective)),
        stalled=jnp.where(doubles, 0, stalled),
        draw=state.draw + 2,  # one draw for each direction
    )


def grouped_step(state: State, index, data: Data, settings: Grouped) -> tuple[State, dict]:
    """As `step`, but rows are matched within random groups, other ones at every step.

    Both spaces are cut into as many groups, and the rows of a group are matched with those of one
    group of the other space alone. This leaves out most similarities at random, which lets the loop
    leave a poor start (Artetxe et al. 2018), like `keep_prob`; but those that are left out are not
    computed, so that a step takes 1 / groups of the time. With `group_rows`, rows may be left out
    as well. All groups are on one device.
    """
    spaces, count = coordinates(state, data), settings.groups
    keys = jax.random.split(jax.random.key(state.draw))

    def groups(key, rows):
        # A few rows are left out if the groups do not divide them.
        size = settings.group_rows or len(rows) // count
        return jax.random.permutation(key, len(rows))[: size * count].reshape(count, size)

    def add(total, rows):
        covariance, objective = total
        source, target = (x[i] for x, i in zip(spaces, rows, strict=True))
        # As `csls_matches`, which streams rows and so computes the products twice.
        score = _scores(source, target, settings.neighbours)
        x, y = data.source[rows[0]], data.target[rows[1]]
        # As in CSLS, the hubness of the row itself does not change which row is its best match.
        covariance += x.T @ y[score.argmax(axis=1)] + x[score.argmax(axis=0)].T @ y
        objective += (score.max(axis=1).mean() + score.max(axis=0).mean()) / 2
        return (covariance, objective), None

    init = settings.pair_weight * pair_covariance(data), 0.0
    rows = tuple(groups(key, x) for key, x in zip(keys, spaces, strict=True))
    (covariance, objective), _ = lax.scan(add, init, rows)
    objective /= count
    return _advanced(state, index, covariance, objective, settings), {"objective": objective}


@partial(jax.jit, static_argnames="neighbours")
def _scores(source: Array, target: Array, neighbours: int) -> Float[Array, "n m"]:
    """CSLS of all pairs of rows, held in memory."""
    similarity = products(source, target)
    hubness = [
        largest(s, min(neighbours, s.shape[1]))[0].mean(axis=1) for s in (similarity, similarity.T)
    ]
    return 2 * similarity - hubness[0][:, None] - hubness[1]


def one_to_one(
    source: Float[Array, "n r"], target: Float[Array, "m r"], neighbours: int
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """The one-to-one matching of largest total CSLS, by scipy; all [n, m] scores are held.

    Items that exclude each other as partners are matched better than by nearest neighbours, of
    which several may choose the same row. Items without a partner are matched too, mostly with a
    negative score: one below the mean similarity to the nearest rows.

    Args:
      source: unit rows.
      target: unit rows.
      neighbours: of CSLS.

    Returns:
      The target row of each source row, and whether they are a pair of positive score.
    """
    score = np.asarray(_scores(source, target, neighbours))
    rows, columns = linear_sum_assignment(score, maximize=True)
    to_target = np.zeros(len(score), np.int32)
    chosen = np.zeros(len(score), bool)
    to_target[rows], chosen[rows] = columns, score[rows, columns] > 0
    return to_target, chosen


@partial(jax.jit, static_argnames="settings")
def validation(
    data: Data,
    to_target: Int[Array, " n"],
    chosen: Bool[Array, " n"],
    folds: Int[Array, "f q"],
    settings: Loop,
) -> Float[Array, ""]:
    """Cross-validates the fit of maps to matched pairs.

    Maps are fitted to the pairs outside of a fold and match the source rows of the fold by CSLS
    among all target rows.

    Args:
      data: both spaces.
      to_target: the target row that is matched with each source row.
      chosen: whether they are a pair.
      folds: source rows of each fold; a row that is in no pair takes no part.
      settings: of the fit.

    Returns:
      The fraction of the folds' pairs that are found again.
    """
    partners = jnp.where(chosen[:, None], data.target[to_target], 0.0)
    covariance = data.source.T @ partners

    def found_again(rows):
        source = data.source[rows]
        maps = common_maps(covariance - source.T @ partners[rows], settings.reweight)
        both = mapped(source, maps[0]), mapped(data.target, maps[1])
        score = _scores(*both, settings.neighbours)
        return ((score.argmax(axis=1) == to_target[rows]) & chosen[rows]).sum()

    return lax.map(found_again, folds).sum() / jnp.maximum(chosen[folds].sum(), 1)


@partial(jax.jit, static_argnames="settings")
def agreement(state: State, data: Data, settings: Loop) -> Float[Array, ""]:
    """Fraction of the mutual matches that are found again without them, by two-fold validation.

    The mutual matches are divided at random into two halves. Maps are fitted to each half alone,
    as in `step`, and match the rows of the other half. Right maps find most of the matches again;
    maps that fit nothing but their own matches do not generalise.
    """
    found = current_matches(state, data, settings.neighbours)
    half = jax.random.bernoulli(jax.random.key(0), shape=found.mutual.shape)
    partners = data.target[found.to_target]

    def found_again(part):
        chosen = (found.mutual & part)[:, None]
        maps = common_maps(data.source.T @ jnp.where(chosen, partners, 0.0), settings.reweight)
        again = current_matches(from_maps(*maps), data, settings.neighbours)
        return again.to_target == found.to_target

    again = jnp.where(half, found_again(~half), found_again(half))
    return (again & found.mutual).sum() / jnp.maximum(found.mutual.sum(), 1)


def done(state: State, settings: Loop) -> bool:
    """Whether nothing is dropped and the objective has not gained for `patience` steps."""
    return float(state.keep_prob) >= 1 and int(state.stalled) >= settings.patience


@partial(jax.jit, static_argnames="unit_anchors")
def fit_anchors(
    source: Float[Array, "n d_source"],
    target: Float[Array, "m d_target"],
    anchors: Float[Array, "k d_source"],
    to_target: Int[Array, " n"],
    weight: Float[Array, " n"] | Bool[Array, " n"],
    *,
    unit_anchors: bool = True,
) -> Float[Array, "k d_target"]:
    """Anchors of the target that fit the matched pairs best: eq. 1 with the permutation fixed.

    Minimises sum_i weight_i |rr(x_i, A_X) / |rr(x_i, A_X)| - y_match(i) A_Y'|^2 over A_Y. The first
    term is the unit relative row, which the metrics compare.

    Args:
      source: unit rows.
      target: unit rows.
      anchors: of the source.
      to_target: the row of `target` matched with each row of `source`.
      weight: of each row of `source`; 0 leaves it out.
      unit_anchors: whether |a| = 1 for each anchor, as in the paper. The problem is then solved
        exactly, anchor by anchor, by its secular equation (G + l I) a = c, |a| = 1, in the
        eigenbasis of the Gram matrix G. Otherwise it is least squares.
    """
    wanted = unit(source @ anchors.T) * weight[:, None]
    matched = target[to_target]
    total = jnp.maximum(weight.sum(), 1)
    gram = (matched * weight[:, None]).T @ matched / total
    cross = wanted.T @ matched / total
    values, vectors = jnp.linalg.eigh(gram)
    cross = cross @ vectors
    floor = 1e-7 * values[-1]
    regular = values > floor
    free = jnp.where(regular, cross / jnp.where(regular, values, 1.0), 0.0)
    if not unit_anchors:
        return free @ vectors.T
    # The metrics normalise rows, so the common scale of the relative rows is arbitrary. It is set
    # so that the least-squares anchors have mean length one, which changes them least.
    cross = cross / jnp.linalg.norm(free, axis=1).mean()
    # |a(l)| falls from infinity to below one between these two bounds: bisection.
    low = jnp.full(len(cross), floor - values[0])
    high = jnp.linalg.norm(cross, axis=1) - values[0] + floor

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        long = jnp.sum((cross / (values + middle[:, None])) ** 2, axis=1) > 1
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    low, high = lax.fori_loop(0, 60, halve, (low, high))
    return unit(cross / (values + high[:, None])) @ vectors.T
