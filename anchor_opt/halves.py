"""Two samples without a common item, such as the vectors of two models over different texts.

The source space has one half of the items and the target space the other. A method sees the two
halves alone; its map is judged on a third set of items, of which both vectors are known.

Labels of the rows: `representation` is 'mapped', the method's own map.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import runner
from anchor_opt.methods import METHODS
from anchor_opt.problem import Problem, Result, Run
from common.linear import procrustes, unit
from common.metrics import foscttm, precision_at_k
from common.retrieval import top_k
from common.run import results
from common.run.results import Row, joined, pivot, select
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs

TRUTH = "orthogonal_truth"  # the reference's name in the tables
NOTES = (
    "FOSCTTM: the fraction of wrong items that are closer than the true one (0 best, .5 chance). "
    "Top-1: the true item is the nearest by cosine. Both are of a third set, whose vectors are "
    "mapped into the common coordinates of the method. orthogonal_truth: the orthogonal map fitted "
    "to the true pairs of all items of both halves, which no other method sees. A search has "
    "succeeded in truth if its top-1 is at least half of that of orthogonal_truth."
)


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


def halves(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The experiment: a table of each pair of spaces."""
    rows, failed = [], []
    for pair in config.pairs:
        found, broken = _pair(config, work, cache, pair)
        rows += found
        failed += broken
    text = joined(tables(rows) | runner.failures(failed))
    return results.finish(work, rows, f"{text}\n\n{NOTES}")


def _pair(config: ConfigDict, work: Workdir, cache: Path, pair: str) -> tuple[list[Row], list[str]]:
    """Every method and the reference on one pair of spaces, and the parts that report a failure."""
    names = space_pairs.names(pair)
    grid = runner.grid(config, source=names[0], target=names[1])
    needed = 2 * config.num_rows + config.num_test
    data = paired_spaces.load(
        *names, num_words=needed, cache=cache, max_rows=max(needed, config.max_rows)
    )

    def drawn(random_seed: int) -> Halves:
        return split(data.source, data.target, config.num_rows, random_seed)

    def reference(random_seed: int) -> list[dict]:
        halves = drawn(random_seed)
        return _measured(fitted_to_the_truth(halves), halves.test)

    def measure(problem: Problem, role: str, run: Run, method: str) -> dict:
        found = METHODS[method](problem, run)
        rows = _measured(found, drawn(run.random_seed).test)
        if "failed" in found.notes:
            rows += _report(found.notes, rows, reference(run.random_seed))
        return {"rows": rows, "notes": found.notes}

    prefix = f"{space_pairs.file_name(*names)}-"
    found, failed = runner.collect(
        grid, work, lambda role, seed: drawn(seed).problem, measure, prefix
    )
    for seed in grid.random_seeds:
        known = work.part(f"{prefix}run{seed}-{TRUTH}", partial(reference, seed))
        found += [row | {"method": TRUTH, "random_seed": seed} for row in known]
    fields = {"dataset": " -> ".join(names), "num_items": config.num_rows, "num_pairs": 0}
    return results.summarise(found, experiment=config.experiment, **fields), failed


def split(
    source: Float[Array, "N d_source"],
    target: Float[Array, "N d_target"],
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

    def normalised(x, seen):
        x = unit(jnp.asarray(x))
        return unit(x - x[seen].mean(axis=0))

    x, y = normalised(source, first), normalised(target, second)
    empty = np.zeros(0, int)
    problem = Problem(source=x[first], target=y[second], anchors=empty, target_pairs=empty)
    return Halves(problem, (y[first], x[second]), (x[test], y[test]))


def fitted_to_the_truth(halves: Halves) -> Result:
    """The orthogonal map fitted to the true pairs of both halves."""
    problem, other = halves.problem, halves.other
    source = jnp.concatenate([problem.source, other[1]])
    target = jnp.concatenate([other[0], problem.target])
    maps = procrustes(source, target), jnp.eye(target.shape[1])
    return Result(jnp.zeros((0, target.shape[1])), maps)


def _measured(result: Result, test) -> list[dict]:
    """FOSCTTM and top-1 of the third set in both directions: fields of `Row`."""
    both = result.coordinates(*test)
    found = []
    for direction in (1, -1):
        (source, target), (x, y) = runner.ROLES[::direction], both[::direction]
        first = precision_at_k(top_k(x, y, 1)[1], jnp.arange(len(x)), 1)
        for metric, value in (("foscttm", foscttm(x, y)), ("top_1", first)):
            row = {"source": source, "target": target, "metric": metric, "value": float(value)}
            found.append(row | {"labels": {"representation": "mapped"}})
    return found


def _report(notes: Mapping, reached: list[dict], reference: list[dict]) -> list[dict]:
    """What a method says about itself beside what is true: fields of `Row`.

    Args:
      notes: agreement and failed, of the method.
      reached: its results by `_measured`.
      reference: those of the map fitted to the truth.
    """
    top_1, best = (
        np.mean([row["value"] for row in rows if row["metric"] == "top_1"])
        for rows in (reached, reference)
    )
    values = {"agreement": notes["agreement"]}
    values |= runner.false_reports(top_1 >= runner.SUCCESS * best, notes["failed"])
    return runner.report_rows(values)


def tables(rows: list[Row]) -> dict[str, str]:
    """Title -> Markdown: a table of each pair of spaces and direction, and the reports."""
    found = {}
    titles = {"foscttm": "FOSCTTM", "top_1": "Top-1"}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for source, target in (runner.ROLES, runner.ROLES[::-1]):
            shown = select(rows, dataset=dataset, source=source, target=target)
            names = dict(zip(runner.ROLES, dataset.split(" -> "), strict=True))
            title = f"{names[source]} -> {names[target]}, {shown[0].num_items:,} items in each half"
            shown = [row for row in shown if row.metric in titles]
            found[title] = pivot(shown, lines={"method": "Method"}, digits=4, titles=titles)
    return found | runner.rates(rows)
