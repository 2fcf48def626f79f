"""Two samples without a common item, such as the vectors of two models over different texts.

The source space has one half of the items and the target space the other. A method sees the two
halves alone; its map is judged on a third set of items, of which both vectors are known.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import evaluation, runner
from anchor_opt.problem import Problem, Result
from anchor_opt.reports import halves as report
from common.arrays import AnyArray
from common.errors import check_count
from common.linear import preprocess, procrustes
from common.metrics import foscttm, precision_at_k
from common.retrieval import top_k
from common.run import results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs

TRUTH = "orthogonal_truth"  # the reference's name in the tables


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every method and the reference on each pair of spaces: a table of each direction."""
    grid, rows, failed = runner.grid(config), [], []
    for pair in config.pairs:
        names = space_pairs.names(pair)
        check_count("num_test", config.num_test)
        needed = 2 * config.num_rows + config.num_test
        data = paired_spaces.load(
            *names, num_words=needed, cache=cache, max_rows=max(needed, config.max_rows)
        )
        draw = lru_cache(maxsize=1)(partial(split, data.source, data.target, config.num_rows))
        case = Case(
            name=space_pairs.file_name(*names),
            fields={
                "experiment": config.experiment,
                "dataset": " -> ".join(names),
                "num_items": config.num_rows,
                "num_pairs": 0,
                "labels": {"optimised": names[1]},
            },
            problem=lambda random_seed, draw=draw: draw(random_seed).problem,
        )
        measured = runner.run([case], grid, partial(evaluate, names=names, draw=draw), work)
        reference = partial(measure_truth, names=names, draw=draw)
        unsought = case._replace(fields={**case.fields, "labels": {}})
        true = tasks.run(tasks.grid([unsought], [TRUTH], grid.random_seeds), reference, work)
        rows += results.averaged(measured.rows) + results.averaged(true.rows)
        failed += measured.failed
    text = results.joined(report.tables(rows, failed))
    return results.finish(work, rows, f"{text}\n\n{report.NOTES}")


class Halves(NamedTuple):
    """A problem whose spaces have no item in common, and what the methods do not see.

    Attributes:
      problem: without anchors, known pairs, ranks and truth.
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
    random_seed: int,
) -> Halves:
    """Draws `num_rows` items for each space and takes all others as the third set.

    Vectors are scaled to unit norm, centred by the mean of those that the methods see, and scaled
    to unit norm again.

    Args:
      source: raw vectors; row i of both is the same item.
      target: raw vectors.
      num_rows: items of each half; 2 num_rows < N.
      random_seed: of the draw.
    """
    order = np.random.default_rng(random_seed).permutation(len(source))
    first, second, test = np.split(order, [num_rows, 2 * num_rows])

    x, y = (preprocess(jnp.asarray(z), z[rows]) for z, rows in ((source, first), (target, second)))
    empty = np.zeros(0, int)
    of_x, of_y = ([jnp.take(z, rows, axis=0) for rows in (first, second, test)] for z in (x, y))
    problem = Problem(source=of_x[0], target=of_y[1], anchors=empty, target_pairs=empty)
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


def evaluate(task: Task, problem: Problem, result: Result, *, names, draw) -> list[Row]:
    """Rows of both directions, and what the method says about itself beside what is true."""
    halves = draw(task.random_seed)
    of_method = scores(result, halves.test)
    rows = _rows(task, of_method, names)
    if "failed" in result.notes:
        best = np.mean([score.top_1 for score in scores(fitted_to_the_truth(halves), halves.test)])
        reached = np.mean([score.top_1 for score in of_method])
        reports = evaluation.false_reports(
            reached >= evaluation.SUCCESS * best, result.notes["failed"]
        )
        for metric, value in {"agreement": result.notes["agreement"], **reports}.items():
            labels = {"representation": "search"}
            row = task.row(metric, value, source=names[0], target=names[1], labels=labels)
            rows.append(row)
    return rows


def measure_truth(task: Task, *, names, draw) -> tuple[list[Row], dict[str, Any]]:
    """Rows of the map fitted to the truth, whose anchors nothing seeks."""
    halves = draw(task.random_seed)
    return _rows(task, scores(fitted_to_the_truth(halves), halves.test), names), {}


def _rows(task: Task, of_map: list[Score], names: tuple[str, str]) -> list[Row]:
    rows = []
    for score in of_map:
        source, target = names[::-1] if score.reverse else names
        fields = {"source": source, "target": target, "labels": {"representation": "mapped"}}
        rows.append(task.row("foscttm", score.foscttm, **fields))
        rows.append(task.row("top_1", score.top_1, **fields))
    return rows
