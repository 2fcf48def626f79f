"""Spaces that share a part of their items in unknown order, and how often failures are reported.

A share of the rows of both spaces are the same items, the other rows have no partner, and neither
space has an order that the methods could use. Each search of the bootstrap says whether it has
failed; here that is compared with whether it has.
"""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
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


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """MRR and P@1 over the shared fraction, the known pairs and the noise, and false reports."""
    cases, grid = list(cases_of(config, cache)), runner.grid(config, METHODS, Settings)
    measure = partial(evaluate, k=grid.settings.k)
    measured = runner.run(cases, grid, measure, work)
    rows = results.averaged(measured.rows)
    figures = report.figures(rows, measured.failed, config.k, config.bootstrap.min_gain)
    text = results.joined(report.tables(rows, measured.failed))
    return records.finish(work, rows, f"{text}\n\n{report.NOTES}", figures)


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
            yield _case(config, names, spaces, "shared", shared, shared=shared)
        for count in config.known_pairs:
            yield _case(config, names, spaces, "known pairs", count, num_pairs=count)
    for noise in config.noise:
        vectors = paired_spaces.load_space(config.noisy_space, cache).vectors
        check_count("num_rows", config.num_rows, len(vectors), f"rows of {config.noisy_space}")
        source = preprocess(vectors[: config.num_rows])
        copy = space_pairs.noisy_isometry(jax.random.key(0), source, noise)
        yield _case(config, (config.noisy_space, "noisy copy"), (source, copy), "noise", noise)


def _case(
    config: ConfigDict, names: tuple[str, str], spaces, over: str, value: float, **sizes: float
) -> Case:
    """Rows of two spaces, of which all or a share are the same items, as one value is varied."""
    drawn = {"num_rows": config.num_rows, "num_anchors": config.num_anchors}
    drawn |= {"num_pairs": config.num_pairs, "shared": 1.0} | sizes

    def problem(random_seed: int) -> Problem:
        return partly_shared(*spaces, **drawn, random_seed=random_seed)

    fields = {
        "experiment": config.experiment,
        **space_pairs.fields(names),
        "num_items": config.num_rows,
        "num_pairs": drawn["num_pairs"],
        "sweep_over": over,
        "sweep_value": value,
        "labels": {"optimised": names[1]},
    }
    return Case(f"{space_pairs.file_name(*names)}-{over}-{value:g}", fields, problem)


def evaluate(task: Task, problem: Problem, result: Result, *, k: int) -> list[Row]:
    """MRR by relative vectors, P@1 by the method's own map, and what a search says of itself."""
    relative = evaluation.relative_mrr(problem, result.anchors, k)
    rows = [task.row("mrr", relative, labels={"representation": "relative"})]
    if result.maps is not None:
        reached = evaluation.precision_of_maps(problem, result, k).to_target
        rows.append(task.row("p_at_1", reached, labels={"representation": "mapped"}))
        if "failed" in result.notes:
            rows += evaluation.search_rows(task, problem, result.notes, reached, k)
    return rows
