"""Runs methods on the cases of an experiment and evaluates what they return."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt.methods import METHODS, Method, Settings, algorithm1, chosen
from anchor_opt.problem import Problem, Result, Run
from common.errors import check_choice, check_count
from common.files import write_arrays
from common.run import tasks
from common.run.results import Row
from common.run.settings import flat, settings, varied, with_value
from common.run.tasks import Case, Measured, Task
from common.run.workdir import Workdir

ROLES = ("source", "target")  # of the two spaces of an experiment
ITEMS = ("gt", "seed")  # methods whose anchors are items
Evaluate = Callable[[Task, Problem, Result], list[Row]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """What all experiments share; configs/anchor_opt/shared.py explains the values."""

    num_anchors: int = 0
    num_pairs: int = 0
    wrong_pair_fraction: float = 0.0
    random_seeds: tuple[int, ...]
    optimise: tuple[str, ...] = ("target",)  # roles of the spaces whose anchors are sought in turn
    methods: dict[str, Method]
    settings: Settings


def grid(
    config: ConfigDict, known: Mapping[str, Method] = METHODS, values: type[Settings] = Settings
) -> Grid:
    """The grid of a config. Without known pairs, methods that need them are left out.

    `known` has all methods by name, and `values` is the class of their settings. UserError: an
    unknown method or role, or no pair of spaces.
    """
    for name in config.get("optimise", ()):
        check_choice("role", name, ROLES)
    if "pairs" in config:
        check_count("The number of pairs", len(config.pairs))
    methods = chosen(config.methods, config.get("num_pairs", True), known)
    return settings(Grid, config, methods=methods, settings=settings(values, config))


class Point(NamedTuple):
    """One value of a name in config.vary, and the config with it; `base` if it is unchanged."""

    name: str
    value: float | str
    base: bool
    config: ConfigDict


def points_of(config: ConfigDict) -> Iterator[Point]:
    """The config's own value of each name and those in config.vary; numbers in order.

    The methods are those of config.methods, or the one that the name begins with. UserError: as
    `varied` and `with_value`.
    """
    now: dict[str, Any] = flat(config.to_dict())
    for name, others in varied(config):
        values = list(dict.fromkeys((now[name], *others)))
        changed = {value: with_value(config, name, value) for value in values}
        method = name.split(".")[0]
        for value in values if isinstance(now[name], str) else sorted(values):
            if method in METHODS:
                changed[value].methods = (method,)
            shown = str(value) if isinstance(value, bool) else value
            yield Point(name, shown, value == now[name], changed[value])


def run(
    cases: Sequence[Case],
    grid: Grid,
    evaluate: Evaluate,
    work: Workdir,
    *,
    title: str = "anchor optimisation",
) -> Measured:
    """Every method of the grid on every case and random seed.

    The true pairing is given to those methods alone that read it; those that need known pairs are
    left out of cases that have none.

    The problems of the cases are of type `Problem`, or have its `seen`. `evaluate` may read the
    truth.
    """

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        problem = task.case.problem(task.random_seed)
        method, part = grid.methods[task.method], Run(grid.settings, work, task.name, task.seed)
        result = method.run(problem.seen(method.reads_truth), part)
        return evaluate(task, problem, result), dict(result.notes)

    todo = [
        task
        for task in tasks.grid(cases, grid.methods, grid.random_seeds)
        if task.case.fields.get("num_pairs", True) or not grid.methods[task.method].needs_pairs
    ]
    return tasks.run(todo, measure, work, title=title, arrays=anchors_file)


def other(role: str) -> str:
    """The role of the other space."""
    return ROLES[1 - ROLES.index(role)]


def anchors_file(task: Task) -> str:
    """Where a task keeps its anchors, below the run's folder, see `keep_anchors`."""
    return f"anchors/{task.name}.npz"


def keep_anchors(
    task: Task,
    problem: Problem,
    result: Result,
    work: Workdir,
    names: Sequence[str] | None = None,
) -> dict[str | None, Float[Array, "k d_target"]]:
    """Writes the anchors of a task, and gives the forms of them that are measured.

    The file holds source_rows [k], target_vectors [k, d] and target_rows [k], the rows nearest to
    the vectors (line 10 of Algorithm 1), and names of both rows if they are given. All rows are
    numbered as those of the source; -1 is a row of the target whose item the source lacks.

    Returns the `continuous` anchors and the `discrete` ones, which are their nearest rows; or the
    anchors by the name None, if these are rows already.
    """
    nearest = np.asarray(algorithm1.discretise(result.anchors, problem.target))
    items, rows = problem.shared
    item = np.full(len(problem.target), -1)
    item[rows] = items
    arrays = {
        "source_rows": problem.anchors[: len(nearest)],
        "target_vectors": np.asarray(result.anchors),
        "target_rows": item[nearest],
    }
    if names is not None:
        for role in ROLES:
            arrays[f"{role}_names"] = np.asarray(names)[arrays[f"{role}_rows"]]
    write_arrays(work.path / anchors_file(task), arrays)
    if task.method in ITEMS:
        return {None: result.anchors}
    discrete = jnp.take(problem.target, nearest, axis=0)
    return {"continuous": result.anchors, "discrete": discrete}
