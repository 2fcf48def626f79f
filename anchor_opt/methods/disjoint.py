"""A map between two samples that have no item in common.

The rows have no partners, only neighbours: rows of like items. As in the search without known pairs
(starts.py, `bootstrap.grouped_step`), the first matching is by the cosines with matched cluster
centres, and rows are then matched within random groups, which grow. Two things differ. The map
is orthogonal: weights of the axes by their singular values follow the errors of such matches. And
each step draws other rows, so that their errors do not repeat.

Whether the map is right is decided without labels: the search is made twice, with other random
draws. Right maps agree with each other. A search that fails ends in an arbitrary one of many wrong
maps, which another search does not find again.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from absl import logging
from jaxtyping import Array, Float

from anchor_opt.methods import bootstrap, starts
from anchor_opt.methods.bootstrap import Data, State
from anchor_opt.problem import Problem, Result, Run
from common.linear import unit
from common.retrieval import top_k

Maps = tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]  # as the first of a `State`


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the method."""

    start_rows: int = 10_000  # rows of each space that are matched at first
    group_rows: int = 500  # rows of a group at first; they are doubled
    last_group_rows: int = 8_000  # at most
    step_rows: int = 8_000  # rows of each space in a step
    steps: int = 40  # for each size of the groups
    last_steps: int = 10  # on all rows
    neighbours: int = 10  # of CSLS
    agreement_rows: int = 2_000  # source rows of which the two maps are compared, at most
    min_agreement: float = 0.5  # of a success; development searches have .001 or 1


def run(problem: Problem, run: Run) -> Result:
    """The method: anchors are mapped by the orthogonal map that it finds; known pairs take part.

    The notes are `agreement` (see `agreement`) of two searches, of which the one with the better
    matches is fitted to all rows, and `failed`, whether it is below `min_agreement`.
    """
    settings = run.settings.disjoint
    data = Data(
        source=problem.source,
        target=problem.target,
        source_pairs=problem.source_pairs,
        target_pairs=problem.target_pairs,
    )
    found = [_search(data, run, number) for number in range(2)]
    agreed = float(agreement(found, data.source[: settings.agreement_rows]))
    failed = agreed < settings.min_agreement
    if failed:
        logging.warning(
            f"{run.part} has failed: two searches map {agreed:.0%} of the rows alike; use more "
            "vectors or more similar spaces."
        )
    best = max(found, key=lambda state: state.best)
    smallest = min(len(data.source), len(data.target))
    rows = min(settings.last_group_rows, smallest)
    steps, draw = settings.last_steps, int(best.draw)
    maps = _loop(data, run, best[:2], draw, rows, smallest, steps, "all")[:2]
    notes = {"agreement": agreed, "failed": failed}
    return Result(unit(problem.source_anchors @ maps[0] @ maps[1].T), maps, notes)


@jax.jit
def agreement(found: Sequence[State], source: Float[Array, "n d_source"]) -> Float[Array, ""]:
    """The fraction of rows of which the images under two maps choose each other.

    Args:
      found: two states, whose maps map `source` into the target space.
      source: rows.
    """
    first, second = (unit(source @ state.source_map @ state.target_map.T) for state in found)
    own = jnp.arange(len(source))
    both = [top_k(x, y, 1)[1][:, 0] == own for x, y in ((first, second), (second, first))]
    return (both[0] & both[1]).mean()


def _search(data: Data, run: Run, number: int) -> State:
    """The loop in groups of a step's rows, from matched cluster centres; `number` of the draws."""
    settings = run.settings.disjoint
    smallest = min(len(data.source), len(data.target))
    rows = min(settings.group_rows, smallest)
    draw = ((run.random_seed << 16) + (number << 15)) % 2**31

    def loop(maps: Maps, draw: int, rows: int, stage: str) -> State:
        count = min(settings.step_rows, smallest)
        return _loop(data, run, maps, draw, rows, count, settings.steps, f"{number}-{stage}")

    # Of the two kinds of starts the one with the better matches is followed.
    found = [
        loop(maps, draw, rows, f"start-{kind}-")
        for kind, maps in enumerate(_starts(data, run, number))
    ]
    state = max(found, key=lambda state: state.best)
    while 2 * rows <= min(settings.last_group_rows, smallest):
        rows *= 2
        state = loop(state[:2], int(state.draw), rows, "")
    return state


def _loop(
    data: Data, run: Run, maps: Maps, draw: int, rows: int, step_rows: int, steps: int, stage: str
) -> State:
    """Steps with groups of `rows`, which together hold `step_rows` rows of each space."""
    values = bootstrap.Grouped(
        groups=max(1, step_rows // rows),
        group_rows=rows,
        reweight=0.0,
        neighbours=run.settings.disjoint.neighbours,
        patience=steps,
    )
    # The loop may overwrite the maps that it is given.
    state = bootstrap.from_maps(*map(jnp.array, maps), draw=draw)
    options = {"stage": f"{stage}{rows}-rows", "num_steps": steps, "chunk": 5}
    return run.train(bootstrap.grouped_step, state, data, values, **options)


def _starts(data: Data, run: Run, number: int) -> list[Maps]:
    """Maps of the first rows, matched by the centres of `starts.cluster_modes`."""
    count = run.settings.disjoint.start_rows
    key = jax.random.fold_in(jax.random.key(run.random_seed), number)
    rows = data.source[:count], data.target[:count]
    return [
        bootstrap.common_maps(starts.centre_covariance(rows, centres), 0.0)
        for centres in starts.cluster_modes(key, data.source, data.target, run.settings.start)
    ]
