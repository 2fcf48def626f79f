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
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.methods import algorithm1, chosen
from anchor_opt.runner import Grid, Point
from anchor_opt.two_spaces import Pair
from common.errors import UserError
from common.linear import preprocess
from common.run import records, results, tasks
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
    text = results.joined(report.tables(rows, ()))
    return records.finish(work, rows, text, {"boundary": report.figure(rows)})


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
            labels = {"init_norm": start.init_norm, "check": text in config.check_pairs}
            yield _case(config, pair, point, grid, labels), grid, start


def _load(names: tuple[str, str], cache: Path, num_words: int) -> Pair:
    return Pair.of(names, paired_spaces.load(*names, num_words=num_words, cache=cache), preprocess)


def _case(config: ConfigDict, pair: Pair, point: Point, grid: Grid, labels: dict[str, Any]) -> Case:
    name, value = ("base", None) if point.base else (point.name, point.value)
    fields = {
        "experiment": config.experiment,
        **space_pairs.fields(pair.names),
        "num_items": len(pair.items),
        "num_pairs": grid.num_pairs,
        "dim": pair.target.shape[1],
        "sweep_over": name,
        "sweep_value": value,
        "labels": {"num_anchors": grid.num_anchors, **labels},
    }
    of_seed = partial(two_spaces.problem, pair, grid, "target")
    return Case(f"{space_pairs.file_name(*pair.names)}-{name}-{value}", fields, of_seed)


def changed(x: Float[Array, "n d"], dimensions: str) -> Float[Array, "n e"]:
    """A space in another number of dimensions.

    Args:
      x: preprocessed rows.
      dimensions: 'all'; or 'leading', 'random' or 'padded' and a number: the leading principal
        components, a random projection, or x and columns of zeros.

    Raises:
      UserError: dimensions is none of these, or too many or few.
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
    key, anchors = jax.random.key(task.seed), problem.source_anchors
    pairs, norm = problem.target_pairs, start.init_norm
    begun = algorithm1.init(key, problem.target, pairs, len(anchors), norm)
    data = algorithm1.prepare(problem.source, anchors, problem.target)
    matches = algorithm1.sinkhorn_matching(data, begun.anchors, start)
    right = jnp.asarray(problem.known_truth)[matches.to_x] == jnp.arange(len(problem.target))
    known = first_match.expected(problem, start.init_norm)
    values = {
        "ratio": known.ratio,
        "true_ratio": known._replace(signal=first_match.true_signal(problem)).ratio,
        "closed_form": first_match.closed_form(problem, start.init_norm),
        "first_match": jnp.mean(right),
    }
    return [task.row(metric, value) for metric, value in values.items()], {}
