"""When does Algorithm 1 as printed succeed? The ratio of `first_match`, and what comes of it.

Numbers of anchors, of known pairs and of dimensions and the norm of the random anchors are varied
one at a time. For each run the ratio is computed before it, without the true pairing.
"""

import dataclasses
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.methods import algorithm1, chosen
from anchor_opt.runner import Grid
from anchor_opt.two_spaces import Pair
from common.errors import UserError
from common.linear import preprocess
from common.run import records, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.methods import first_match
from frontier.reports import boundary as report


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Each pair of spaces at each value of config.vary: tables, and boundary.png."""
    rows = []
    for case, grid, start in cases_of(config, cache):
        evaluate = partial(two_spaces.evaluate_mrr, k=config.k)
        rows += runner.run([case], grid, evaluate, work, title=case.name).rows
        of_first = tasks.grid([case], ["first_match"], grid.random_seeds)
        rows += tasks.run(of_first, partial(measure, start=start), work).rows
    return records.finish(work, rows, report)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[tuple[Case, Grid, algorithm1.Settings]]:
    """The cases, the base once for each pair of spaces, with grid and start of Algorithm 1."""
    for text in (*config.pairs, *config.check_pairs):
        names = space_pairs.names(text)
        load = lru_cache(maxsize=1)(partial(_load, names, cache))
        points = {
            point.base or (point.name, point.value): point for point in runner.points_of(config)
        }
        for point in points.values():
            # The base has the config's methods, whichever name it is listed under.
            given = config if point.base else point.config
            grid = runner.grid(given)
            pair = load(given.num_words)
            pair = pair._replace(target=changed(pair.target, given.dimensions))
            start = grid.settings.algorithm1
            if "algorithm1" not in grid.methods:
                start = algorithm1.as_printed(start)
            grid = dataclasses.replace(grid, methods=chosen(("gt",), 0) | grid.methods)
            over, value = ("base", None) if point.base else (point.name, point.value)
            labels = {"num_anchors": grid.num_anchors, "init_norm": start.init_norm}
            fields = {"sweep_over": over, "sweep_value": value, "experiment": config.experiment}
            fields["labels"] = labels | {"check": text in config.check_pairs}
            name = f"{space_pairs.file_name(*names)}-{over}-{value}"
            yield two_spaces.mrr_case(pair, grid, name, fields), grid, start


def _load(names: tuple[str, str], cache: Path, num_words: int) -> Pair:
    return Pair.of(names, paired_spaces.load(*names, num_words=num_words, cache=cache), preprocess)


def changed(x: Float[Array, "n d"], dimensions: str) -> Float[Array, "n e"]:
    """Preprocessed rows in another number of dimensions, or as they are: 'all'.

    Otherwise 'leading', 'random' or 'padded' and a number: the leading principal components, a
    random projection, or columns of zeros besides. UserError: none of these, or too many or few.
    """
    match dimensions.split():
        case ["all"]:
            return x
        case [how, number] if number.isdigit():
            d = int(number)
            if how == "padded" and d >= x.shape[1]:
                return jnp.pad(x, ((0, 0), (0, d - x.shape[1])))
            if how in ("leading", "random") and d <= x.shape[1]:
                axes = jax.random.orthogonal(jax.random.key(0), x.shape[1])
                if how == "leading":
                    axes = jnp.linalg.eigh(x.T @ x).eigenvectors[:, ::-1]
                return preprocess(x @ axes[:, :d])
    raise UserError(
        f"dimensions='{dimensions}' does not fit a space of {x.shape[1]}: write all, leading or "
        "random and a smaller number, or padded and a larger one."
    )


def measure(task: Task, start: algorithm1.Settings) -> tuple[list[Row], dict[str, Any]]:
    """The ratios, and the fraction of target rows whose first match is right."""
    problem = task.case.problem(task.random_seed)
    known = first_match.expected(problem, start.init_norm)
    unknown = np.delete(first_match.true_similarities(problem), problem.source_pairs)
    x, y, _ = first_match.begun(problem, start, task.seed)
    values = {
        "ratio": known.ratio,
        "true_ratio": known._replace(signal=jnp.asarray(unknown.mean())).ratio,
        "closed_form": first_match.closed_form(problem, start.init_norm),
        "first_match": first_match.right(problem, x, y, start),
    }
    return [task.row(metric, value) for metric, value in values.items()], {}
