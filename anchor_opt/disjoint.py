"""A map between two samples that have no item in common.

The rows have no partners, only neighbours: rows of like items. As in the search without known pairs
(starts.py, `bootstrap.grouped_step`), the first matching is by the cosines with matched cluster
centres, and rows are then matched within random groups, which grow. Two things differ. The map
is orthogonal: weights of the axes by their singular values follow the errors of such matches. And
each step draws other rows, so that their errors do not repeat.
"""

import dataclasses

import jax
from jaxtyping import Array, Float

from anchor_opt import bootstrap, starts
from anchor_opt.bootstrap import Data, State
from anchor_opt.relative import Problem, Result, Run
from common.linear import unit

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


def run(problem: Problem, run: Run) -> Result:
    """The method: anchors are mapped by the orthogonal map that it finds; known pairs take part."""
    settings = run.settings.disjoint
    data = Data(
        source=problem.source,
        target=problem.target,
        source_pairs=problem.source_pairs,
        target_pairs=problem.target_pairs,
    )
    smallest = min(len(data.source), len(data.target))
    rows = min(settings.group_rows, smallest)
    draw = (run.random_seed << 16) % 2**31

    def loop(maps: Maps, rows: int, step_rows: int, steps: int, stage: str) -> State:
        values = bootstrap.Grouped(
            groups=max(1, min(step_rows, smallest) // rows),
            group_rows=rows,
            reweight=0.0,
            neighbours=settings.neighbours,
            patience=steps,
        )
        state = bootstrap.from_maps(*maps, draw=draw + rows)
        options = {"stage": f"{stage}{rows}-rows", "num_steps": steps, "chunk": 5}
        return run.train(bootstrap.grouped_step, state, data, values, **options)

    # Of the two kinds of starts the one with the better matches is followed.
    found = [
        loop(maps, rows, settings.step_rows, settings.steps, f"start-{number}-")
        for number, maps in enumerate(_starts(data, run))
    ]
    maps = max(found, key=lambda state: state.best)[:2]
    while 2 * rows <= min(settings.last_group_rows, smallest):
        rows *= 2
        maps = loop(maps, rows, settings.step_rows, settings.steps, "")[:2]
    maps = loop(maps, rows, smallest, settings.last_steps, "all-")[:2]
    return Result(unit(problem.source_anchors @ maps[0] @ maps[1].T), maps)


def _starts(data: Data, run: Run) -> list[Maps]:
    """Maps of the first rows, matched by the centres of `starts.cluster_modes`."""
    count = run.settings.disjoint.start_rows
    key = jax.random.key(run.random_seed)
    rows = data.source[:count], data.target[:count]
    return [
        bootstrap.common_maps(starts.centre_covariance(rows, centres), 0.0)
        for centres in starts.cluster_modes(key, data.source, data.target, run.settings.start)
    ]
