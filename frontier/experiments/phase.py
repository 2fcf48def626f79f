"""A phase diagram: the MRR of each method over the CKA of the spaces.

It also tests an explanation of why Algorithm 1 needs a small initialization: rows are first matched
by their products with the anchors, and the contribution of random anchors of unit norm to a
similarity is noise about as large as the contribution of the known pairs.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.methods import algorithm1
from anchor_opt.problem import Problem
from anchor_opt.runner import Grid
from anchor_opt.two_spaces import Pair
from common.errors import check_count
from common.linear import preprocess
from common.metrics import linear_cka
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.methods import first_match
from frontier.reports import phase as report


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Noisy isometries and real pairs of spaces: two tables, and phase.png."""
    grid, rows = runner.grid(config), []
    for case in cases_of(config, cache):
        matches = partial(first_matches, settings=grid.settings.algorithm1)
        mrr = runner.run([case], grid, partial(two_spaces.evaluate_mrr, k=config.k), work)
        of_first = tasks.grid([case], ["first_match"], grid.random_seeds)
        measured = tasks.run(of_first, matches, work, title="first match")
        rows += results.averaged(mrr.rows) + results.averaged(measured.rows)
    return records.finish(work, rows, report)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Noisy isometries of one space at each noise, and the real pairs of spaces, numbered."""
    grid, fields = runner.grid(config), {"experiment": config.experiment}
    fields |= {"num_pairs": config.num_pairs, "num_items": config.num_words}

    def case(names: tuple[str, str], draw, **labels: float) -> Case:
        of_pair = {**fields, **space_pairs.fields(names), "labels": labels}
        return Case(space_pairs.file_name(*names), of_pair, draw)

    load, name = lru_cache(maxsize=1)(partial(_load, config, cache)), config.isometries_of
    for noise in config.noise:
        draw = partial(_isometry, load((name, name)), grid, noise)
        yield case((name, f"noise {noise:g}"), draw, noise=noise)
    for number, text in enumerate(config.pairs, start=1):
        pair = load(space_pairs.names(text))
        yield case(pair.names, partial(two_spaces.problem, pair, grid, "target"), pair=number)


def _load(config: ConfigDict, cache: Path, names: tuple[str, str]) -> Pair:
    data = paired_spaces.load(*names, num_words=None, cache=cache, max_rows=config.max_rows)
    check_count("num_words", config.num_words, len(data.names), f"words of {':'.join(names)}")
    return Pair.of(names, data.take(slice(config.num_words)), preprocess)


def _isometry(pair: Pair, grid: Grid, noise: float, random_seed: int) -> Problem:
    copy = space_pairs.noisy_isometry(jax.random.key(random_seed), pair.source, noise)
    return two_spaces.problem(pair._replace(target=copy), grid, "target", random_seed)


def first_matches(task: Task, settings: algorithm1.Settings) -> tuple[list[Row], dict[str, Any]]:
    """The CKA, and the first match from both initializations of Algorithm 1."""
    problem = task.case.problem(task.random_seed)
    cka = linear_cka(problem.source, problem.target[problem.known_truth])
    rows = [task.row("linear_cka", cka, method="truth")]
    starts = {"algorithm1_printed": algorithm1.as_printed(settings), "algorithm1": settings}
    for method, start in starts.items():
        values = first_match.taken_apart(problem, start, task.seed)
        rows += [task.row(metric, value, method=method) for metric, value in values.items()]
    return rows, {}
