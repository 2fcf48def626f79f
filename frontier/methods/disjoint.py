"""A map between two samples that have no item in common, or a few: the known pairs.

The rows have no partners, only neighbours: rows of like items. As in self-learning without
known pairs (initialization.py, `self_learning.grouped_step`), the first matching is by the cosines
with matched cluster centres, and rows are then matched within random groups, which grow. Two things
differ. The map is orthogonal: weights of the axes by their singular values follow the errors of
such matches. And each step takes other rows at random, so that their errors do not repeat; the
result is the mean of the maps of the last steps, in which these errors are averaged out.

Known pairs are a further initialization, in the coordinates of their span, and in every step they
take part in the covariance of the matches. All pairs together have a constant share of its weight.

Whether the map is right is decided without labels: it is learned twice, with other random samples.
Right maps agree with each other. Self-learning that fails ends in an arbitrary one of many wrong
maps, which is not found a second time.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from absl import logging
from jaxtyping import Array, Float

from anchor_opt.problem import Problem, Result, Run
from common import multi_step
from common.linear import Maps, unit
from common.retrieval import top_k
from isthmus.search import initialization, self_learning
from isthmus.search.self_learning import Data, State

SETTLED_AGREEMENT = 0.9  # of two runs in small groups, from which one alone goes on


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the method."""

    start_rows: int = 10_000  # rows of each space that are matched at first
    group_rows: int = 500  # rows of a group at first; they are doubled
    last_group_rows: int = 8_000  # at most
    step_rows: int = 8_000  # rows of each space in a step
    steps: int = 40  # for each size of the groups
    last_steps: int = 30  # on all rows, whose mean map is the result
    neighbours: int = 10  # of CSLS
    pair_share: float = 0.03  # weight of all known pairs, relative to that of all matches; measured
    agreement_rows: int = 2_000  # source rows of which the two maps are compared, at most
    min_agreement: float = 0.5  # of a success; on development pairs it is .001 or 1


def run(problem: Problem, run: Run) -> Result:
    """The method: anchors are mapped by the orthogonal map that it finds; known pairs take part.

    The notes are `agreement` (see `agreement`) of two runs of self-learning, of which the one with
    the better matches is fitted to all rows, and `failed`, whether it is below `min_agreement`. Two
    runs that agree in small groups are right already, and only the better one goes on, in the
    largest groups.
    """
    settings = run.settings.disjoint
    key = jax.random.key(run.random_seed)
    data = Data(problem.source, problem.target, *problem.pairs, key)
    rows = data.source[: settings.agreement_rows]
    samples = [data._replace(key=jax.random.fold_in(key, number)) for number in range(2)]
    first, *larger = _group_sizes(data, settings)
    states = [
        _from_best_initialization(first, data, run, str(number))
        for number, data in enumerate(samples)
    ]
    agreed = float(agreement(states, rows))
    if agreed >= SETTLED_AGREEMENT:
        best = _in_groups(_of_better_matches(states), larger[-1:], data, run, "both")
    else:
        states = [
            _in_groups(state, larger, data, run, str(number))
            for number, (state, data) in enumerate(zip(states, samples, strict=True))
        ]
        agreed = float(agreement(states, rows))
        best = _of_better_matches(states)
    failed = agreed < settings.min_agreement
    if failed:
        logging.warning(
            f"{run.part} has failed: two runs of self-learning map {agreed:.0%} of the rows alike; "
            "use more vectors or more similar spaces."
        )
    maps = _mean_map(data, run, best.maps)
    notes = {"agreement": agreed, "failed": failed}
    return Result(unit(problem.source_anchors @ maps.source @ maps.target.T), maps, notes)


@jax.jit
def agreement(states: Sequence[State], source: Float[Array, "n d_source"]) -> Float[Array, ""]:
    """The fraction of rows of which the images under two maps choose each other.

    Args:
      states: two, whose maps map `source` into the target space.
      source: rows.
    """
    first, second = (unit(source @ state.maps.source @ state.maps.target.T) for state in states)
    rows = jnp.arange(len(source))
    forward = top_k(first, second, 1).index[:, 0] == rows
    backward = top_k(second, first, 1).index[:, 0] == rows
    return (forward & backward).mean()


class _Stage(NamedTuple):
    """Steps with groups of so many rows, which together hold `step_rows` rows of each space."""

    name: str
    group_rows: int
    step_rows: int
    steps: int


def _from_best_initialization(group_rows: int, data: Data, run: Run, name: str) -> State:
    """Self-learning in groups from each of the initial maps; that of the better matches."""
    return _of_better_matches(
        [
            _learn(data, run, maps, _stage(f"{name}-initialization-{kind}", group_rows, data, run))
            for kind, maps in enumerate(_initial_maps(data, run))
        ]
    )


def _in_groups(state: State, sizes: Sequence[int], data: Data, run: Run, name: str) -> State:
    """Self-learning in groups of each size in turn."""
    for rows in sizes:
        state = _learn(data, run, state.maps, _stage(f"{name}-{rows}-rows", rows, data, run))
    return state


def _group_sizes(data: Data, settings: Settings) -> list[int]:
    """The numbers of rows of the groups, each twice the one before."""
    num_rows = min(len(data.source), len(data.target))
    sizes = [min(settings.group_rows, num_rows)]
    while 2 * sizes[-1] <= min(settings.last_group_rows, num_rows):
        sizes.append(2 * sizes[-1])
    return sizes


def _stage(name: str, group_rows: int, data: Data, run: Run) -> _Stage:
    settings = run.settings.disjoint
    step_rows = min(settings.step_rows, len(data.source), len(data.target))
    return _Stage(name, group_rows, step_rows, settings.steps)


def _of_better_matches(states: Sequence[State]) -> State:
    return max(states, key=lambda state: state.best)


class Averaged(NamedTuple):
    """Self-learning, and the sum of its maps of the source into the target space."""

    state: State
    total: Float[Array, "d_source d_target"]


def averaged_step(
    averaged: Averaged, index, data: Data, settings: self_learning.GroupedSettings
) -> tuple[Averaged, dict]:
    """As `self_learning.grouped_step`; the map of the step is added to the sum."""
    state, metrics = self_learning.grouped_step(averaged.state, index, data, settings)
    return Averaged(state, averaged.total + state.maps.source @ state.maps.target.T), metrics


def _mean_map(data: Data, run: Run, maps: Maps) -> Maps:
    """The orthogonal map nearest to the mean of those of `last_steps` steps on all rows.

    There are two groups at least, so that each step matches the rows with others.
    """
    settings = run.settings.disjoint
    num_rows = min(len(data.source), len(data.target))
    group_rows = min(settings.last_group_rows, max(1, num_rows // 2))
    stage = _Stage(f"all-{group_rows}-rows", group_rows, num_rows, settings.last_steps)
    total = jnp.zeros((data.source.shape[1], data.target.shape[1]))
    averaged = _train(averaged_step, Averaged(_initial_state(maps), total), data, run, stage)
    return multi_step.fit_covariance(averaged.total, 0.0)


def _learn(data: Data, run: Run, maps: Maps, stage: _Stage) -> State:
    return _train(self_learning.grouped_step, _initial_state(maps), data, run, stage)


def _initial_state(maps: Maps) -> State:
    """The state of maps that the loop, which may overwrite its own, leaves as they are."""
    return self_learning.initial_state(Maps(*map(jnp.array, maps)))


def _train(step: Callable[..., tuple[Any, dict]], state: Any, data: Data, run: Run, stage: _Stage):
    """The last state of a stage, whose random draws are its own."""
    groups = max(1, stage.step_rows // stage.group_rows)
    num_matches = 2 * groups * stage.group_rows  # of both directions
    share = run.settings.disjoint.pair_share * num_matches
    settings = self_learning.GroupedSettings(
        groups=groups,
        group_rows=stage.group_rows,
        reweight=0.0,
        neighbours=run.settings.disjoint.neighbours,
        pair_weight=share / max(1, len(data.source_pairs)),
        patience=stage.steps,
    )
    data = data._replace(key=jax.random.fold_in(data.key, stage.group_rows))
    options = {"stage": stage.name, "num_steps": stage.steps, "chunk": 5}
    return run.train(step, state, data, settings, **options)


def _initial_maps(data: Data, run: Run) -> list[Maps]:
    """Maps by the centres of `initialization.cluster_modes`, and by the known pairs."""
    count = run.settings.disjoint.start_rows
    spaces = data.source[:count], data.target[:count]
    modes = initialization.cluster_modes(data.key, data.source, data.target, run.settings.start)
    initial = [
        multi_step.fit_covariance(initialization.centre_covariance(spaces, centres), 0.0)
        for centres in modes
    ]
    if len(data.source_pairs):
        initial.append(self_learning.state_of_pairs(data).maps)
    return initial
