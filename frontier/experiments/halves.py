"""Two samples of items, one in each space, such as the vectors of two models over different texts.

The source space has one half of the items and the target space the other; the known pairs, if there
are any, are items that both have. With `config.shared` both have further items, or all of them, in
an order that tells nothing. A method sees the two halves alone; its map is judged on a third set of
items, of which both vectors are known.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import evaluation
from anchor_opt.methods import chosen
from anchor_opt.problem import Problem, Result, Run
from common.arrays import AnyArray
from common.errors import check_count, check_fraction
from common.linear import preprocess, procrustes
from common.metrics import foscttm, precision_at_k
from common.retrieval import top_k
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.methods import METHODS, Settings
from frontier.reports import halves as report
from frontier.reports.halves import TRUTH


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every method and the reference at each number of rows and of known pairs."""
    values = settings(Settings, config)

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        halves = task.case.problem(task.random_seed)
        if task.method == TRUTH:
            return _rows(task, scores(fitted_to_the_truth(halves), halves.test)), {}
        part = Run(values, work, task.name, task.seed)
        result = METHODS[task.method].run(halves.problem, part)
        return evaluate(task, halves, result), dict(result.notes)

    todo = []
    for case in cases_of(config, cache):
        methods = chosen(config.methods, case.fields["num_pairs"], METHODS)
        todo += tasks.grid([case], [*methods, TRUTH], config.random_seeds)
    measured = tasks.run(todo, measure, work, title="disjoint halves")
    rows = results.averaged(measured.rows)
    text = results.joined(report.tables(rows, measured.failed))
    figures = report.figures(rows)
    return records.finish(work, rows, f"{text}\n\n{report.NOTES}", figures)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each pair of spaces with each number of rows and of known pairs."""
    check_count("half_rows", min(config.half_rows, default=0))
    check_count("num_test", config.num_test)
    check_fraction("shared", config.shared)
    for pair in config.pairs:
        names = space_pairs.names(pair)
        needed = 2 * max(config.half_rows) + config.num_test
        data = paired_spaces.load(
            *names, num_words=needed, cache=cache, max_rows=max(needed, config.max_rows)
        )
        sweep = {"sweep_over": "shared", "sweep_value": config.shared} if config.shared else {}
        for num_rows in config.half_rows:
            count = 2 * num_rows + config.num_test
            spaces = data.source[:count], data.target[:count]
            for num_pairs in config.known_pairs:
                check_count("known_pairs", num_pairs, num_rows, "rows of each half", least=0)
                fields = {
                    "experiment": config.experiment,
                    "dataset": " -> ".join(names),
                    "num_items": num_rows,
                    "num_pairs": num_pairs,
                    **sweep,
                }
                name = f"{space_pairs.file_name(*names)}-{num_rows}-rows-{num_pairs}-pairs"
                draw = partial(split, *spaces, num_rows, num_pairs, shared=config.shared)
                yield Case(name, fields, draw)


class Halves(NamedTuple):
    """A problem whose spaces have the known pairs in common, and what the methods do not see.

    Attributes:
      problem: whose anchors are the known pairs, without ranks and truth.
      other: the vectors of the problem's items in the other space: of the source's items in the
        target space, and of the target's in the source space.
      test: the vectors of the third set in both spaces.
    """

    problem: Problem
    other: tuple[Float[Array, "n d_target"], Float[Array, "n d_source"]]
    test: tuple[Float[Array, "t d_source"], Float[Array, "t d_target"]]


def split(
    source: Float[AnyArray, "N d_source"],
    target: Float[AnyArray, "N d_target"],
    num_rows: int,
    num_pairs: int,
    random_seed: int,
    *,
    shared: float = 0.0,
) -> Halves:
    """Draws `num_rows` items for each space and takes all others as the third set.

    Vectors are scaled to unit norm, centred by the mean of those that the methods see, and scaled
    to unit norm again.

    Args:
      source: raw vectors; row i of both is the same item.
      target: raw vectors.
      num_rows: items of each half; 2 num_rows < N.
      num_pairs: the first items of the source's half stand in the place of as many items of the
        target's half, which are then in neither.
      random_seed: of the draw.
      shared: fraction of the items of each half, rounded, that the other half has too, known pairs
        included; those that are not known pairs are in an order that tells nothing.
    """
    rng = np.random.default_rng(random_seed)
    order = rng.permutation(len(source))
    first, second, test = np.split(order, [num_rows, 2 * num_rows])
    both = max(num_pairs, round(shared * num_rows))
    second = np.concatenate([first[:both], second[both:]])
    if both > num_pairs:
        rng.shuffle(second[num_pairs:])

    x, y = (preprocess(z, z[rows]) for z, rows in ((source, first), (target, second)))
    of_x, of_y = ([jnp.take(z, rows, axis=0) for rows in (first, second, test)] for z in (x, y))
    known = np.arange(num_pairs)
    problem = Problem(source=of_x[0], target=of_y[1], anchors=known, target_pairs=known)
    return Halves(problem, (of_y[0], of_x[1]), (of_x[2], of_y[2]))


def fitted_to_the_truth(halves: Halves) -> Result:
    """The orthogonal map fitted to the true pairs of both halves."""
    problem, other = halves.problem, halves.other
    source = jnp.concatenate([problem.source, other[1]])
    target = jnp.concatenate([other[0], problem.target])
    maps = procrustes(source, target), jnp.eye(target.shape[1])
    return Result(jnp.zeros((0, target.shape[1])), maps)


class Score(NamedTuple):
    """What a map keeps of the third set in one direction; `reverse` is from target to source."""

    reverse: bool
    foscttm: float
    top_1: float


def scores(result: Result, test: tuple[Array, Array]) -> list[Score]:
    """FOSCTTM and top-1 of the third set in both directions."""
    source, target = result.coordinates(*test)

    def score(x: Array, y: Array, reverse: bool) -> Score:
        first = precision_at_k(top_k(x, y, 1)[1], jnp.arange(len(x)), 1)
        return Score(reverse, float(foscttm(x, y)), float(first))

    return [score(source, target, False), score(target, source, True)]


def evaluate(task: Task, halves: Halves, result: Result) -> list[Row]:
    """Rows of both directions, and what the method says about itself beside what is true."""
    of_method = scores(result, halves.test)
    rows = _rows(task, of_method)
    if "failed" in result.notes:
        best = np.mean([score.top_1 for score in scores(fitted_to_the_truth(halves), halves.test)])
        reached = np.mean([score.top_1 for score in of_method])
        reports = evaluation.false_reports(
            reached >= evaluation.SUCCESS * best, result.notes["failed"]
        )
        source, target = _names(task)
        fields = {"source": source, "target": target, "labels": {"representation": "search"}}
        for metric, value in {"agreement": result.notes["agreement"], **reports}.items():
            rows.append(task.row(metric, value, **fields))
    return rows


def _names(task: Task) -> list[str]:
    """Source and target of a task's case."""
    return task.case.fields["dataset"].split(" -> ")


def _rows(task: Task, of_map: list[Score]) -> list[Row]:
    names, rows = _names(task), []
    for score in of_map:
        source, target = names[::-1] if score.reverse else names
        fields = {"source": source, "target": target, "labels": {"representation": "mapped"}}
        rows.append(task.row("foscttm", score.foscttm, **fields))
        rows.append(task.row("top_1", score.top_1, **fields))
    return rows
