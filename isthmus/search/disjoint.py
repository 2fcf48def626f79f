"""A map between two samples that have no item in common, or a few: the known pairs.

The rows have no partners, only neighbours: rows of like items. As in self-learning without
known pairs (initialization.py, `self_learning.grouped_step`), the first matching is by the cosines
with matched cluster centres, and rows are then matched within random groups. Each step takes
other rows at random, so that their errors do not repeat; the result is the mean of the maps of the
last steps, in which these errors are averaged out.

Poor matches agree about the leading axes alone, and what they say of the others is error. The
search therefore begins in the leading principal axes of both spaces, weighted by their singular
values. The map is then orthogonal, since the weights follow the errors of the matches, and is
extended to more and more axes: self-learning of each number of them begins at the map of the last.

Known pairs are a further initialization, in the coordinates of their span, and in every step they
take part in the covariance of the matches. All pairs together have a constant share of its weight.

Self-learning ends in one of many optima, of which the right one has the best matches. It is
therefore begun several times, with other random samples, and those with the best matches go on.
Whether the map is right is decided by these, without labels: right maps agree with each other, and
an arbitrary one of many wrong maps is not found a second time.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from common import multi_step
from common.errors import check_count
from common.linear import Maps, second_moment, unit
from common.retrieval import top_k
from common.run.train import Stages
from isthmus.search import initialization, self_learning
from isthmus.search.self_learning import Data, State

SETTLED_AGREEMENT = 0.9  # of two restarts, from which no other is begun


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the method."""

    cluster_axes: int = 128  # leading ones, in which clusters are sought
    num_clusters: int = 40  # whose centres begin a restart; of `initialization.Settings`
    num_draws: int = 60
    start_rows: int = 10_000  # rows of each space that are matched at first
    axes: tuple[int, ...] = (64, 96, 128, 192, 256)  # leading ones, in turn; then all
    restarts: int = 12  # at most, with other random samples, in the first axes
    finalists: int = 3  # of which so many go on
    first_steps: int = 60  # of a restart
    first_reweight: float = 0.5  # power of the singular values in the first axes; then 0
    group_rows: int = 500  # rows of a group in a restart; they are doubled
    weighted_steps: int = 150  # in the first axes, for each of the next two sizes of the groups
    steps: int = 60  # for each number of axes, and then for each larger size of the groups
    last_group_rows: int = 8_000  # rows of a group at most; there are two groups at least
    step_rows: int = 8_000  # rows of each space in a step, at most
    last_steps: int = 30  # on all rows, whose mean map is the result
    neighbours: int = 10  # of CSLS
    pair_share: float = 0.03  # weight of all known pairs, relative to that of all matches; measured
    agreement_rows: int = 2_000  # source rows of which the two maps are compared, at most
    min_agreement: float = 0.7  # of a success; wrong maps agree in up to about .7, see halves.md


def search(data: Data, settings: Settings, train: Stages) -> tuple[Maps, float, bool]:
    """Finds the map between two samples, and whether it is right.

    No restart is begun after two that agree, and these two alone go on. Others pass all stages
    twice, since in all axes the map of the first ones has become better. The spaces are centred
    unit rows.

    Returns orthogonal maps of both spaces into common coordinates, the agreement of the best run
    and the one most like it, and whether the search has failed: that is below `min_agreement`.
    """
    check_count("finalists", settings.finalists, settings.restarts, "restarts", least=2)
    spaces = data.source, data.target
    axes = [second_moment(x).vectors[:, ::-1] for x in spaces]  # by decreasing variance
    source, target = map(jnp.matmul, spaces, axes)
    data = data._replace(source=source, target=target)
    num_rows, num_axes = map(min, zip(source.shape, target.shape, strict=True))
    learning = Learning(data, settings, train, stages(settings, num_rows, num_axes))
    rows = learning.data.source[: settings.agreement_rows]
    begun: list[State] = []
    passes = 2
    for number in range(settings.restarts):
        begun.append(learning.begun(number))
        best = sorted(range(len(begun)), key=lambda i: -float(begun[i].best))[: settings.finalists]
        if number and agreement([begun[i] for i in best[:2]], rows) >= SETTLED_AGREEMENT:
            best, passes = best[:2], 1
            break
    ends = {number: learning.extended(number, begun[number].maps, passes) for number in best}
    end, *others = sorted(ends, key=lambda number: -float(ends[number].best))
    agreed = max(float(agreement([ends[end], ends[other]], rows)) for other in others)
    last = learning.run(end, learning.stages[-1], ends[end].maps, "self-learning-mean")
    maps = Maps(*map(jnp.matmul, axes, multi_step.fit_covariance(last.total, 0.0)))
    return maps, agreed, agreed < settings.min_agreement


@jax.jit
def agreement(states: Sequence[State], source: Float[Array, "n d_source"]) -> Float[Array, ""]:
    """The fraction of rows whose images under the maps of two states choose each other.

    The maps are of the leading axes of the rows.
    """
    leading = source[:, : len(states[0].maps.source)]
    first, second = (unit(leading @ state.maps.source @ state.maps.target.T) for state in states)
    rows = jnp.arange(len(source))
    forward = top_k(first, second, 1).index[:, 0] == rows
    backward = top_k(second, first, 1).index[:, 0] == rows
    return (forward & backward).mean()


class Stage(NamedTuple):
    """Steps of self-learning in groups of rows."""

    axes: int | None  # leading ones; None: all
    group_rows: int
    steps: int
    step_rows: int  # of all groups
    reweight: float = 0.0


def stages(settings: Settings, num_rows: int, num_axes: int) -> list[Stage]:
    """A restart, and how it goes on: in larger groups, in more axes, and in larger groups still.

    The last is of the mean map, the orthogonal one nearest to the mean of the maps of its steps. It
    has two groups at least, so that each step matches the rows with others.
    """
    sizes = [min(settings.group_rows, num_rows)]
    while 2 * sizes[-1] <= min(settings.last_group_rows, num_rows // 2):
        sizes.append(2 * sizes[-1])
    size, *larger = sizes[1:] or sizes
    axes = [*(r for r in settings.axes if r < num_axes), None]
    step_rows, weight = min(settings.step_rows, num_rows), settings.first_reweight
    weighted = [(sizes[0], settings.first_steps)]
    weighted += [(rows, settings.weighted_steps) for rows in sizes[1:3] or sizes]
    last = min(settings.last_group_rows, max(1, num_rows // 2))
    return [
        *(Stage(axes[0], rows, steps, step_rows, weight) for rows, steps in weighted),
        *(Stage(r, size, settings.steps, step_rows) for r in axes),
        *(Stage(None, rows, settings.steps, step_rows) for rows in larger),
        Stage(None, last, settings.last_steps, num_rows),
    ]


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


def _of_axes(maps: Maps, shape: tuple[int, int]) -> Maps:
    """The same map, 0 in further axes, or the orthogonal map nearest to its leading block."""
    if len(maps.source) > shape[0]:
        block = (maps.source @ maps.target.T)[: shape[0], : shape[1]]
        return multi_step.fit_covariance(block, 0.0)
    sides = zip(maps, shape, strict=True)
    return Maps(*(jnp.pad(x, [(0, d - len(x)), (0, min(shape) - x.shape[1])]) for x, d in sides))


class Learning(NamedTuple):
    """Self-learning on one pair of samples, whose coordinates are in their principal axes."""

    data: Data
    settings: Settings
    train: Stages
    stages: list[Stage]

    def leading(self, number: int, axes: int | None) -> Data:
        """Unit rows in the leading axes, with the random draws of a restart."""
        source, target = (unit(x[:, :axes]) for x in (self.data.source, self.data.target))
        key = jax.random.fold_in(self.data.key, number)
        return self.data._replace(source=source, target=target, key=key)

    def begun(self, number: int) -> State:
        """The state of the best matches, in the first axes, of all initial maps of a restart.

        They are by the centres of `initialization.cluster_modes`, and by the known pairs.
        """
        values, stage = self.settings, self.stages[0]
        data = self.leading(number, values.cluster_axes)
        clusters = initialization.Settings(
            num_clusters=values.num_clusters, num_draws=values.num_draws
        )
        modes = initialization.cluster_modes(data.key, data.source, data.target, clusters)
        spaces = data.source[: values.start_rows], data.target[: values.start_rows]
        covariances = (initialization.centre_covariance(spaces, centres) for centres in modes)
        initial = [
            multi_step.fit_covariance(c[: stage.axes, : stage.axes], stage.reweight)
            for c in covariances
        ]
        if len(data.source_pairs):
            initial.append(self_learning.state_of_pairs(self.leading(number, stage.axes)).maps)
        states = [
            self.run(number, stage, maps, f"initialization-{number}-{i}").state
            for i, maps in enumerate(initial)
        ]
        return max(states, key=lambda state: float(state.best))

    def extended(self, number: int, maps: Maps, passes: int) -> State:
        """The state at the end of all stages but that of the mean map, passed so many times."""
        for again, (index, stage) in itertools.product(range(passes), enumerate(self.stages[1:-1])):
            draws = number + again * self.settings.restarts
            state = self.run(draws, stage, maps, f"self-learning-{draws}-{index}").state
            maps = state.maps
        return state

    def run(self, number: int, stage: Stage, maps: Maps, name: str) -> Averaged:
        """Self-learning from maps, which may be of fewer or of more axes than the stage has.

        The random draws are those of the restart and this size of the groups.
        """
        data, size = self.leading(number, stage.axes), stage.group_rows
        groups = max(1, stage.step_rows // size)
        share = self.settings.pair_share * 2 * groups * size  # matches of both directions
        settings = self_learning.GroupedSettings(
            groups=groups,
            group_rows=size,
            reweight=stage.reweight,
            neighbours=self.settings.neighbours,
            pair_weight=share / max(1, len(data.source_pairs)),
            patience=stage.steps,
        )
        data = data._replace(key=jax.random.fold_in(data.key, size))
        shape = data.source.shape[1], data.target.shape[1]
        start = Averaged(self_learning.initial_state(_of_axes(maps, shape)), jnp.zeros(shape))
        options = {"stage": name, "num_steps": stage.steps, "chunk": 5}
        return self.train(averaged_step, start, data, settings, **options)
