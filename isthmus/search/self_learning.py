"""Self-learning: from maps into common coordinates to a correspondence, by turns.

Both spaces are mapped into common coordinates (at first: coordinates in the span of the known
pairs), rows are matched there by hubness-corrected similarity (CSLS, Lample et al. 2018), and the
matches give the next pair of maps by one singular value decomposition (symmetric re-weighting,
Artetxe et al. 2018).
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from common import csls, multi_step
from common.arrays import AnyArray, RealNumber, WholeNumber
from common.csls import Matches
from common.linear import Maps, apply_maps
from common.parallel import on_cpu
from common.retrieval import first_largest

MIN_OBJECTIVE = -1e30  # before the first step; finite, as `train.run` requires of a state


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Static values of `step`; "measured": on development pairs, see constants.md of the results.

    Development pairs are minilm -> minilm_input and noisy isometries.
    """

    neighbours: int = 10  # of CSLS (Lample et al. 2018)
    reweight: float = 1.0  # power of the singular values, measured
    pair_weight: float = 10.0  # weight of a known pair; a match has weight 1; measured
    patience: int = 10  # steps without gain before the loop ends
    tolerance: float = 1e-4  # smallest gain of the objective that counts


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupedSettings(Settings):
    """Static values of `grouped_step`."""

    patience: int = 30  # steps without gain before the loop ends, measured
    groups: int  # groups of the rows of each space
    group_rows: int | None = None  # rows of a group; None: the groups hold all rows


class State(NamedTuple):
    """Maps into the common coordinates, and the progress of the loop."""

    maps: Maps
    best: RealNumber  # highest objective
    stalled: WholeNumber  # steps since the last gain
    steps: WholeNumber  # that were taken


class Data(NamedTuple):
    """Unit rows of both spaces, the rows of known pairs, and the key of a step's random draws."""

    source: Float[AnyArray, "n d_source"]
    target: Float[AnyArray, "m d_target"]
    source_pairs: Int[AnyArray, " p"]
    target_pairs: Int[AnyArray, " p"]
    key: Array

    @property
    def pair_covariance(self) -> Float[Array, "d_source d_target"]:
        """Sum of x_i y_j' over the known pairs."""
        return self.source[self.source_pairs].T @ self.target[self.target_pairs]


def initial_state(maps: Maps) -> State:
    """The state before the first step, of copies of the maps: the loop overwrites its own."""
    copies, none = Maps(*map(jnp.array, maps)), np.int32(0)
    return State(copies, best=np.float32(MIN_OBJECTIVE), stalled=none, steps=none)


@jax.jit
def state_of_pairs(data: Data) -> State:
    """The state before the first step, of maps that are fitted to the known pairs.

    The common coordinates of x are x S' (S S')^(-1/2), where the rows of S are the space's rows in
    known pairs. They leave out the orthogonal complement of the span of S, about which the pairs
    say nothing; an orthogonal map fitted on few pairs would fill it with an arbitrary rotation. If
    there are more pairs than dimensions it is the orthogonal map that is taken.
    """
    rank = min(data.source.shape[1], data.target.shape[1])
    if len(data.source_pairs) > rank:
        return initial_state(multi_step.fit_covariance(data.pair_covariance, 0.0))
    rows = data.source[data.source_pairs], data.target[data.target_pairs]
    return initial_state(Maps(*(_onto_span(x, rank) for x in rows)))


def _onto_span(rows: Float[Array, "p d"], rank: int) -> Float[Array, "d rank"]:
    """S' (S S')^(-1/2) of rows S, filled up with zero columns."""
    values, vectors = jnp.linalg.eigh(rows @ rows.T)
    # The eigenvalues of linearly dependent rows are rounding errors.
    scale = jnp.where(values > 1e-3 * values[-1], 1 / jnp.sqrt(jnp.abs(values)), 0.0)
    matrix = rows.T @ (vectors * scale) @ vectors.T
    return jnp.pad(matrix, [(0, 0), (0, rank - len(rows))])


def coordinates(maps: Maps, data: Data) -> tuple[Float[Array, "n r"], Float[Array, "m r"]]:
    """Both spaces in the common coordinates, unit rows."""
    return apply_maps((data.source, data.target), maps)


def step(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """Matches in the common coordinates, then maps by the matches' cross-covariance."""
    matches = csls.matches(*coordinates(state.maps, data), neighbours=settings.neighbours)
    # The matches of both directions, not the mutual ones alone: from a weak initialization those
    # are few, and mostly confirm the map that produced them.
    covariance = matched_covariance(data.source, data.target, matches.to_target, matches.to_source)
    covariance += settings.pair_weight * data.pair_covariance
    metrics = {"objective": matches.objective, "mutual": matches.mutual.mean()}
    return _next_state(state, index, covariance, matches.objective, settings), metrics


def matched_covariance(
    source: Float[AnyArray, "n d_source"],
    target: Float[AnyArray, "m d_target"],
    to_target: Int[AnyArray, " n"],
    to_source: Int[AnyArray, " m"],
) -> Float[AnyArray, "d_source d_target"]:
    """Sum of x_i y_j' over the matches of both directions; a pair in both counts twice."""
    partners = jnp.take(target, to_target, axis=0)
    # Added first, all partners of a row take one product instead of two. Accelerators would add
    # them in no fixed order.
    if on_cpu():
        return source.T @ partners.at[to_source].add(target)
    return source.T @ partners + source[to_source].T @ target


def _next_state(
    state: State, index, covariance: AnyArray, objective: RealNumber, settings: Settings
) -> State:
    """The state after a step: the maps of the covariance, and the progress of the objective.

    The objective of the first step does not count: it is that of the initialization's coordinates,
    which may weight their axes in another way.
    """
    stalled = jnp.where(objective > state.best + settings.tolerance, 0, state.stalled + 1)
    return State(
        maps=multi_step.fit_covariance(covariance, settings.reweight),
        best=jnp.where(index == 0, MIN_OBJECTIVE, jnp.maximum(state.best, objective)),
        stalled=stalled,
        steps=state.steps + 1,
    )


def grouped_step(state: State, index, data: Data, settings: GroupedSettings) -> tuple[State, dict]:
    """As `step`, but rows are matched within random groups, other ones at every step.

    The rows of a group are matched with those of one group of the other space alone. This leaves
    out most similarities at random, which lets the loop leave a poor initialization (Artetxe et al.
    2018), and takes 1 / groups of the time. All groups are on one device.
    """
    spaces = coordinates(state.maps, data)
    keys = jax.random.split(jax.random.fold_in(data.key, index))
    rows = tuple(_random_groups(key, len(x), settings) for key, x in zip(keys, spaces, strict=True))

    def add(total, rows):
        covariance, objective = total
        source, target = (x[i] for x, i in zip(spaces, rows, strict=True))
        # As `csls.matches`, which streams rows and so computes the products twice.
        score = csls.scores(source, target, settings.neighbours)
        x, y = data.source[rows[0]], data.target[rows[1]]
        # As in CSLS, the hubness of the row itself does not change which row is its best match.
        best_target, to_target = first_largest(score, axis=1)
        best_source, to_source = first_largest(score, axis=0)
        covariance += matched_covariance(x, y, to_target, to_source)
        objective += (best_target.mean() + best_source.mean()) / 2
        return (covariance, objective), None

    init = settings.pair_weight * data.pair_covariance, 0.0
    (covariance, objective), _ = lax.scan(add, init, rows)
    objective /= settings.groups
    return _next_state(state, index, covariance, objective, settings), {"objective": objective}


def _random_groups(key, num_rows: int, settings: GroupedSettings) -> Int[Array, "groups size"]:
    """Rows of each group; a few are left out if the groups do not divide them."""
    size = settings.group_rows or num_rows // settings.groups
    rows = jax.random.permutation(key, num_rows)[: size * settings.groups]
    return rows.reshape(settings.groups, size)


def learn(
    train: Callable[..., State],
    state: State,
    data: Data,
    settings: Settings,
    step: Callable[..., tuple[State, dict]] = step,
    **options,
) -> State:
    """Repeats a step by `Run.train` until the objective has not gained for `patience` steps."""

    def done(state: State) -> bool:
        return int(state.stalled) >= settings.patience

    return train(step, state, data, settings, done=done, **options)


@partial(jax.jit, static_argnames="settings")
def agreement(state: State, data: Data, settings: Settings) -> Float[Array, ""]:
    """Fraction of the mutual matches that are found again without them, by two-fold validation.

    Maps fitted to a random half of the matches alone, as in `step`, match the rows of the other.
    """
    matches = csls.matches(*coordinates(state.maps, data), neighbours=settings.neighbours)

    def as_before(fitted_to):
        partners = jnp.where(fitted_to[:, None], data.target[matches.to_target], 0.0)
        maps = multi_step.fit_covariance(data.source.T @ partners, settings.reweight)
        return csls.best_keys(*coordinates(maps, data), settings.neighbours) == matches.to_target

    half = jax.random.bernoulli(jax.random.key(0), shape=matches.mutual.shape)
    again = jnp.where(half, *(as_before(matches.mutual & rows) for rows in (~half, half)))
    return (again & matches.mutual).sum() / jnp.maximum(matches.mutual.sum(), 1)


def rejected_pairs(
    matches: Matches | csls.Dictionary,
    source_pairs: Int[np.ndarray, " p"],
    target_pairs: Int[np.ndarray, " p"],
) -> list[int]:
    """Numbers of the known pairs of which neither row is matched with the other."""
    agreed = np.asarray(matches.to_target)[source_pairs] == target_pairs
    agreed |= np.asarray(matches.to_source)[target_pairs] == source_pairs
    return np.flatnonzero(~agreed).tolist()
