"""Spaces that share a part of their items in unknown order, and how often failures are reported.

A share of the rows of both spaces are the same items, the other rows have no partner, and neither
space has an order that the methods could use. Each search of self-learning says whether it has
failed; here that is compared with whether it has. If no anchors are sought (`num_anchors` 0), as
between classes of images and their names, it is the methods' own coordinates that are measured.
"""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import evaluation, runner
from anchor_opt.problem import Problem, Result, partly_shared
from common.errors import check_count, check_fraction
from common.linear import preprocess
from common.run import records, results
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.methods import METHODS, Settings
from frontier.reports import overlap as report

Scores = Iterator[tuple[str, float, str]]  # metric, value, and the rows' `representation`


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """MRR and P@1 over the shared fraction, the known pairs and the noise, and false reports."""
    cases, grid = list(cases_of(config, cache)), runner.grid(config, METHODS, Settings)
    scores = by_anchors if config.num_anchors else by_coordinates

    def evaluate(task: Task, problem: Problem, result: Result) -> list[Row]:
        return [
            task.row(metric, value, labels={"representation": of})
            for metric, value, of in scores(problem, result, config.k)
        ]

    measured = runner.run(cases, grid, evaluate, work)
    return records.finish(work, results.averaged(measured.rows), report)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each pair of spaces at each shared fraction and number of known pairs; noisy copies."""
    for shared in config.shared:
        check_fraction("shared", shared)
    for pair in config.pairs:
        names = space_pairs.names(pair)
        needed = math.ceil((2 - min(config.shared, default=1.0)) * config.num_rows)
        data = paired_spaces.load(*names, num_words=needed, cache=cache)
        spaces = preprocess(data.source), preprocess(data.target)
        for shared in config.shared:
            yield _case(config, names, spaces, "shared", shared, config.num_pairs, shared)
        for count in config.known_pairs:
            yield _case(config, names, spaces, "known pairs", count, count)
    for noise in config.noise:
        vectors = paired_spaces.load_space(config.noisy_space, cache).vectors
        check_count("num_rows", config.num_rows, len(vectors), f"rows of {config.noisy_space}")
        source = preprocess(vectors[: config.num_rows])
        copy = space_pairs.noisy_isometry(jax.random.key(0), source, noise)
        names = config.noisy_space, "noisy copy"
        yield _case(config, names, (source, copy), "noise", noise, config.num_pairs)


def _case(
    config: ConfigDict,
    names: tuple[str, str],
    spaces: tuple[Float[Array, "n d"], Float[Array, "n e"]],
    over: str,
    value: float,
    num_pairs: int,
    shared: float = 1.0,
) -> Case:
    """Rows of two spaces, of which all or a share are the same items, as one value is varied."""
    sizes = {"num_rows": config.num_rows, "num_pairs": num_pairs, "shared": shared}
    sizes["num_anchors"] = max(config.num_anchors, num_pairs)
    fields = {
        "experiment": config.experiment,
        **space_pairs.fields(names),
        "num_items": config.num_rows,
        "num_pairs": num_pairs,
        "sweep_over": over,
        "sweep_value": value,
        "labels": {"optimised": names[1]},
    }
    name = f"{space_pairs.file_name(*names)}-{over}-{value:g}"
    return Case(name, fields, partial(partly_shared, *spaces, **sizes))


def by_anchors(problem: Problem, result: Result, k: int) -> Scores:
    """MRR by relative vectors, P@1 by the method's own map, and what a search says of itself."""
    yield "mrr", evaluation.relative_mrr(problem, result.anchors, k), "relative"
    if result.maps is not None:
        reached = evaluation.precision_of_maps(problem, result, k).to_target
        yield "p_at_1", reached, "mapped"
        yield from _said(problem, result, reached, k)


def by_coordinates(problem: Problem, result: Result, k: int) -> Scores:
    """P@1 and MRR in the method's own coordinates, of the items that are in no known pair.

    Their partners are sought among all rows. What a search says of itself is judged by all items.
    """
    spaces = result.coordinates(problem.source, problem.target)
    asked = problem.known_truth.copy()
    asked[problem.source_pairs] = -1
    yield "p_at_1", evaluation.precision(*spaces, asked, k).to_target, "mapped"
    yield "mrr", evaluation.mrr_of(*spaces, asked, k), "mapped"
    reached = evaluation.precision(*spaces, problem.known_truth, k).to_target
    yield from _said(problem, result, reached, k)


def _said(problem: Problem, result: Result, reached: float, k: int) -> Scores:
    if "failed" in result.notes:
        scores = evaluation.search_scores(problem, result.notes, reached, k)
        yield from ((metric, value, "search") for metric, value in scores.items())
