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
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.methods import algorithm1
from anchor_opt.problem import Problem
from anchor_opt.relative import relative
from anchor_opt.two_spaces import Pair
from common import ot
from common.errors import check_count
from common.linear import preprocess
from common.metrics import linear_cka
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.reports import phase as report


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Noisy isometries and real pairs of spaces: two tables, and phase.png."""
    grid, rows, failed = runner.grid(config), [], []
    for case in cases_of(config, cache):
        matches = partial(first_matches, settings=grid.settings.algorithm1)
        mrr = runner.run([case], grid, partial(two_spaces.evaluate_mrr, k=config.k), work)
        of_first = tasks.grid([case], ["first_match"], grid.random_seeds)
        measured = tasks.run(of_first, matches, work, title="first match")
        rows += results.averaged(mrr.rows) + results.averaged(measured.rows)
        failed += mrr.failed
    text = results.joined(report.tables(rows, failed))
    return records.finish(work, rows, text, {"phase": report.figure(rows)})


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Noisy isometries of one space at each noise, and the real pairs of spaces, numbered."""

    @lru_cache(maxsize=1)
    def load(source: str, target: str) -> Pair:
        options = {"num_words": None, "max_rows": config.max_rows}
        data = paired_spaces.load(source, target, cache=cache, **options)
        check_count("num_words", config.num_words, len(data.names), f"words of {source}:{target}")
        return Pair.of((source, target), data.take(slice(config.num_words)), preprocess)

    def isometry(noise: float, random_seed: int) -> Pair:
        pair = load(config.isometries_of, config.isometries_of)
        copy = space_pairs.noisy_isometry(jax.random.key(random_seed), pair.source, noise)
        return pair._replace(target=copy)

    grid = runner.grid(config)

    def case(names: tuple[str, str], labels: dict[str, Any], drawn) -> Case:
        def problem(random_seed: int) -> Problem:
            return two_spaces.problem(drawn(random_seed), grid, "target", random_seed)

        fields = {
            "experiment": config.experiment,
            **space_pairs.fields(names),
            "num_pairs": config.num_pairs,
            "num_items": config.num_words,
            "labels": labels,
        }
        return Case(space_pairs.file_name(*names), fields, problem)

    for noise in config.noise:
        names = config.isometries_of, f"noise {noise:g}"
        yield case(names, {"noise": noise}, partial(isometry, noise))
    for number, text in enumerate(config.pairs, start=1):
        names = space_pairs.names(text)
        yield case(names, {"pair": number}, lambda random_seed, names=names: load(*names))


def first_matches(task: Task, settings: algorithm1.Settings) -> tuple[list[Row], dict[str, Any]]:
    """The CKA, and the first match from both initializations of Algorithm 1."""
    problem = task.case.problem(task.random_seed)
    truth = jnp.take(problem.target, problem.truth, axis=0)
    scores = {
        "truth": {"linear_cka": float(linear_cka(problem.source, truth))},
        "algorithm1_printed": first_match(
            problem, algorithm1.as_printed(settings), task.random_seed
        ),
        "algorithm1": first_match(problem, settings, task.random_seed),
    }
    return [
        task.row(metric, value, method=method)
        for method, of_method in scores.items()
        for metric, value in of_method.items()
    ], {}


def first_match(
    problem: Problem, settings: algorithm1.Settings, random_seed: int
) -> dict[str, float]:
    """The first match of Algorithm 1, and what its random anchors add to the similarities.

    The relative rows of source and target are R_X = X A_X' and R_Y = Y A_Y'. Their first p columns
    are of the known pairs. Of the other k - p, the random columns, A_X has rows of X, and A_Y
    random directions of length s, `settings.init_norm`. The similarity of x and y over these
    columns is y v with v = sum_j (x a_j) a'_j. For unit rows y of d dimensions it has a standard
    deviation of about s |x A_X'| / sqrt(d), where A_X has the rows of these columns alone.

    Args:
      problem: whose `truth` is known.
      settings: of the start and the match.
      random_seed: of the random anchors.

    Returns:
      first_match: fraction of target rows whose match is the right source row.
      first_match_known: the same by the known pairs' columns alone.
      first_match_noise: the same if the random columns of R_Y are replaced by independent normal
        numbers with standard deviation s / sqrt(d).
      signal_to_noise: mean squared length of R_Y over the known columns, divided by that over the
        random ones.
      signal: mean similarity of true pairs over the known columns.
      noise: similarity of all pairs over the random columns, root mean square of its standard
        deviation over the target's rows.
      estimated_noise: its estimate by the formula above.
    """
    p, dimensions = len(problem.target_pairs), problem.target.shape[1]
    start_key, noise_key = jax.random.key(random_seed), jax.random.key(random_seed + 1)
    k = len(problem.anchors)
    start = algorithm1.init(start_key, problem.target, problem.target_pairs, k, settings.init_norm)
    anchors = start.anchors
    x = relative(problem.source, problem.source_anchors)
    y = relative(problem.target, anchors)
    scale = settings.init_norm / np.sqrt(dimensions)
    normal = scale * jax.random.normal(noise_key, y[:, p:].shape)

    def right(x: Float[Array, "n c"], y: Float[Array, "m c"]) -> float:
        iterations = settings.sinkhorn_iterations
        matches = ot.match(x, y, settings.sinkhorn_epsilon, iterations=iterations)
        return float(jnp.mean(problem.truth[matches.to_x] == jnp.arange(len(y))))

    partner = jnp.take(y, problem.truth, axis=0)
    directions = x[:, p:] @ anchors[p:]
    spread = problem.target - problem.target.mean(axis=0)
    covariance = spread.T @ spread / len(spread)
    variance = jnp.sum(directions @ covariance * directions, axis=1)
    values = {
        "signal_to_noise": jnp.sum(y[:, :p] ** 2) / jnp.sum(y[:, p:] ** 2),
        "signal": jnp.sum(x[:, :p] * partner[:, :p], axis=1).mean(),
        "noise": jnp.sqrt(variance.mean()),
        "estimated_noise": scale * jnp.sqrt(jnp.sum(x[:, p:] ** 2, axis=1).mean()),
    }
    return {
        "first_match": right(x, y),
        "first_match_known": right(x[:, :p], y[:, :p]),
        "first_match_noise": right(x, jnp.concatenate([y[:, :p], normal], axis=1)),
    } | {name: float(value) for name, value in values.items()}
