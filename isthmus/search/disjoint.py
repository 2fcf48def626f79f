"""A map between two samples that have no item in common, or a few: the known pairs.

The rows have no partners, only neighbours: rows of like items. As in self-learning without
known pairs (initialization.py, `self_learning.grouped_step`), the first matching is by the cosines
with matched cluster centres, and rows are then matched within random groups, which grow. At first
the axes are weighted by their singular values, so that those about which poor matches agree lead;
then the map is orthogonal, since the weights follow the errors of the matches. Each step takes
other rows at random, so that their errors do not repeat; the result is the mean of the maps of the
last steps, in which these errors are averaged out.

Known pairs are a further initialization, in the coordinates of their span, and in every step they
take part in the covariance of the matches. All pairs together have a constant share of its weight.

Self-learning ends in one of many optima, of which the right one has the best matches. It is
therefore begun several times, with other random samples, and those with the best matches go on.
Whether the map is right is decided by these, without labels: right maps agree with each other, and
an arbitrary one of many wrong maps is not found a second time.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from common import multi_step
from common.errors import check_count
from common.linear import Maps, unit
from common.retrieval import top_k
from common.run.train import Stages
from isthmus.search import initialization, self_learning
from isthmus.search.self_learning import Data, State

SETTLED_AGREEMENT = 0.9  # of two runs in small groups, from which one alone goes on


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the method."""

    num_clusters: int = 40  # whose centres begin a restart; of `initialization.Settings`
    num_draws: int = 60
    start_rows: int = 10_000  # rows of each space that are matched at first
    restarts: int = 6  # at most, with other random samples
    finalists: int = 3  # of which so many go on
    first_steps: int = 120  # of a restart
    first_reweight: float = 0.5  # power of the singular values in these steps; then 0
    group_rows: int = 500  # rows of a group at first; they are doubled
    last_group_rows: int = 8_000  # at most
    step_rows: int = 8_000  # rows of each space in a step
    steps: int = 60  # for each larger size of the groups
    last_steps: int = 30  # on all rows, whose mean map is the result
    neighbours: int = 10  # of CSLS
    pair_share: float = 0.03  # weight of all known pairs, relative to that of all matches; measured
    agreement_rows: int = 2_000  # source rows of which the two maps are compared, at most
    min_agreement: float = 0.5  # of a success; on development pairs it is .001 or 1


def search(data: Data, settings: Settings, train: Stages) -> tuple[Maps, float, bool]:
    """Finds the map between two samples, and whether it is right.

    Two runs that agree in small groups are right already: no other is begun, and only the better
    one goes on, in the largest groups. The spaces are centred unit rows.

    Returns orthogonal maps of both spaces into common coordinates, the agreement of the best run
    and the one most like it, and whether the search has failed: that is below `min_agreement`.
    """
    check_count("finalists", settings.finalists, settings.restarts, "restarts", least=2)
    rows = data.source[: settings.agreement_rows]
    learning = Learning(data, settings, train)
    first, *larger = _group_sizes(data, settings)
    begun: list[State] = []
    for number in range(settings.restarts):
        begun.append(learning.begun(number, first))
        order = sorted(range(len(begun)), key=lambda i: -float(begun[i].best))
        states = [begun[i] for i in order[: settings.finalists]]
        if number and (agreed := float(agreement(states[:2], rows))) >= SETTLED_AGREEMENT:
            best = learning.in_groups(data, states[0].maps, larger[-1:] or [first], "both")
            break
    else:
        states = [
            learning.in_groups(learning.restart(i), state.maps, larger or [first], str(i))
            for i, state in zip(order, states, strict=False)
        ]
        best, *others = sorted(states, key=lambda state: -float(state.best))
        agreed = max(float(agreement([best, other], rows)) for other in others)
    return learning.mean_map(best.maps), agreed, agreed < settings.min_agreement


@jax.jit
def agreement(states: Sequence[State], source: Float[Array, "n d_source"]) -> Float[Array, ""]:
    """The fraction of rows whose images under the maps of two states choose each other."""
    first, second = (unit(source @ state.maps.source @ state.maps.target.T) for state in states)
    rows = jnp.arange(len(source))
    forward = top_k(first, second, 1).index[:, 0] == rows
    backward = top_k(second, first, 1).index[:, 0] == rows
    return (forward & backward).mean()


def _group_sizes(data: Data, settings: Settings) -> list[int]:
    """The numbers of rows of the groups, each twice the one before."""
    num_rows = min(len(data.source), len(data.target))
    sizes = [min(settings.group_rows, num_rows)]
    while 2 * sizes[-1] <= min(settings.last_group_rows, num_rows):
        sizes.append(2 * sizes[-1])
    return sizes


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


class Learning(NamedTuple):
    """Self-learning on one pair of samples."""

    data: Data
    settings: Settings
    train: Stages

    def begun(self, number: int, group_rows: int) -> State:
        """The state of the best matches, in small groups, of all initial maps of a restart.

        They are by the centres of `initialization.cluster_modes`, and by the known pairs.
        """
        values, data = self.settings, self.restart(number)
        sizes = {"num_clusters": values.num_clusters, "num_draws": values.num_draws}
        clusters, reweight = initialization.Settings(**sizes), values.first_reweight
        modes = initialization.cluster_modes(data.key, data.source, data.target, clusters)
        spaces = data.source[: values.start_rows], data.target[: values.start_rows]
        covariances = (initialization.centre_covariance(spaces, centres) for centres in modes)
        initial = [multi_step.fit_covariance(covariance, reweight) for covariance in covariances]
        if len(data.source_pairs):
            initial.append(self_learning.state_of_pairs(data).maps)
        names, steps = f"{number}-initialization-{{}}".format, values.first_steps
        states = [
            self.run(data, maps, names(i), group_rows, steps, reweight=reweight).state
            for i, maps in enumerate(initial)
        ]
        return max(states, key=lambda state: float(state.best))

    def restart(self, number: int) -> Data:
        """The rows with the random draws of a restart."""
        return self.data._replace(key=jax.random.fold_in(self.data.key, number))

    def in_groups(self, data: Data, maps: Maps, sizes: Sequence[int], name: str) -> State:
        """Self-learning in groups of each size in turn."""
        for size in sizes:
            state = self.run(data, maps, name, size, self.settings.steps).state
            maps = state.maps
        return state

    def mean_map(self, maps: Maps) -> Maps:
        """The orthogonal map nearest to the mean of those of `last_steps` steps on all rows.

        There are two groups at least, so that each step matches the rows with others.
        """
        rows = min(len(self.data.source), len(self.data.target))
        size = min(self.settings.last_group_rows, max(1, rows // 2))
        last = self.run(self.data, maps, "all", size, self.settings.last_steps, step_rows=rows)
        return multi_step.fit_covariance(last.total, 0.0)

    def run(
        self,
        data: Data,
        maps: Maps,
        name: str,
        group_rows: int,
        num_steps: int,
        *,
        step_rows: int | None = None,
        reweight: float = 0.0,
    ) -> Averaged:
        """Self-learning from maps in groups, which hold `step_rows` together (None: the setting).

        The random draws are those of this size of the groups.
        """
        rows = min(step_rows or self.settings.step_rows, len(data.source), len(data.target))
        groups = max(1, rows // group_rows)
        num_matches = 2 * groups * group_rows  # of both directions
        share = self.settings.pair_share * num_matches
        settings = self_learning.GroupedSettings(
            groups=groups,
            group_rows=group_rows,
            reweight=reweight,
            neighbours=self.settings.neighbours,
            pair_weight=share / max(1, len(data.source_pairs)),
            patience=num_steps,
        )
        data = data._replace(key=jax.random.fold_in(data.key, group_rows))
        total = jnp.zeros((data.source.shape[1], data.target.shape[1]))
        start = Averaged(self_learning.initial_state(maps), total)
        options = {"stage": f"{name}-{group_rows}-rows", "num_steps": num_steps, "chunk": 5}
        return self.train(averaged_step, start, data, settings, **options)
