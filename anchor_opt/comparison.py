"""Two experiments over several pairs of spaces: an ablation, and a phase diagram.

The ablation varies values of the config one at a time. The phase diagram shows the MRR of each
method over the CKA of the spaces. It also tests an explanation of why Algorithm 1 needs a small
start: rows are first matched by their products with the anchors, and the contribution of random
anchors of unit norm to a similarity is noise about as large as the contribution of the known pairs.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict
from jaxtyping import Array, Float
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import comparison_report, runner
from anchor_opt.methods import METHODS, algorithm1
from anchor_opt.problem import Problem, Run, sample
from anchor_opt.relative import relative
from anchor_opt.runner import Grid
from common import ot
from common.errors import UserError
from common.linear import preprocess, unit
from common.metrics import linear_cka, mrr
from common.retrieval import top_k
from common.run import results
from common.run.results import Row, joined
from common.run.settings import with_value
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from common.spaces.paired_spaces import PairedSpaces

Drawn = Callable[[int], PairedSpaces]  # random seed -> both spaces, preprocessed


def ablation(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """MRR of each pair of spaces at each value of config.vary: tables, and ablation.png."""
    rows, failed = [], []
    points = list(_points(config))
    for pair in config.pairs:
        source, target = space_pairs.names(pair)
        load = partial(paired_spaces.load, source, target, num_words=None, cache=cache)
        load = lru_cache(maxsize=1)(load)
        for point in tqdm(points, desc=pair, unit="value"):
            given = point.config
            data = load(**{name: given[name] for name in ("drop_first", "min_letters", "max_rows")})
            if given.num_words > len(data.names):
                if point.name == "num_words" and not point.base:
                    continue
                raise UserError(
                    f"'{source}' and '{target}' share {len(data.names)} items, fewer than "
                    f"num_words={given.num_words}: ask for at most that many."
                )
            data = _normalised(data, given.num_words, preprocess if given.centre else unit)
            # The base is one part of the run, whichever name it is listed under.
            changed = "base" if point.base else f"{point.name}-{point.value}"
            found, broken = _mrr(
                runner.grid(given, source=source, target=target),
                work,
                lambda random_seed: data,  # noqa: B023
                f"{space_pairs.file_name(source, target)}-{changed}-",
                experiment=config.experiment,
                sweep_over=point.name,
                sweep_value=point.value,
                num_items=given.num_words,
                num_pairs=given.num_pairs,
                dim=data.target.shape[1],
                labels={"base": point.base},
            )
            rows += found
            failed += [part for part in broken if part not in failed]
    text = joined(comparison_report.ablation_tables(rows) | runner.failures(failed))
    return results.finish(work, rows, text, {"ablation": comparison_report.ablation_figure(rows)})


class _Point(NamedTuple):
    """One value of a name in config.vary, and the config with it; `base` if it is unchanged."""

    name: str
    value: float | str
    base: bool
    config: ConfigDict


def _points(config: ConfigDict) -> Iterator[_Point]:
    """The config's own value of each name and those in config.vary; numbers in order.

    The methods are those of config.methods, or the one that the name begins with.

    Raises:
      UserError: config.vary is not a list of names and values, or as `with_value`.
    """
    own = flatten_dict(config.to_dict(), sep=".")
    for line in config.vary:
        match line:
            case (str(name), tuple() | list() as values) if name in own:
                values = list(dict.fromkeys((own[name], *values)))
            case _:
                raise UserError(
                    f"config.vary has {line!r}: write the name of a value of the config and the "
                    "values that it takes, [('num_pairs', (5, 10))] for instance."
                )
        changed = {value: with_value(config, name, value) for value in values}
        method = name.split(".")[0]
        for value in values if isinstance(own[name], str) else sorted(values):
            if method in METHODS:
                changed[value].methods = (method,)
            shown = str(value) if isinstance(value, bool) else value
            yield _Point(name, shown, value == own[name], changed[value])


def phase(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """MRR of each method over the CKA of two spaces: two tables, and phase.png."""

    @lru_cache(maxsize=1)
    def load(source: str, target: str) -> PairedSpaces:
        options = {"num_words": None, "max_rows": config.max_rows}
        data = paired_spaces.load(source, target, cache=cache, **options)
        return _normalised(data, config.num_words, preprocess)

    def isometry(noise: float, random_seed: int) -> PairedSpaces:
        data = load(config.isometries_of, config.isometries_of)
        key = jax.random.key(random_seed)
        return data._replace(target=space_pairs.noisy_isometry(key, data.source, noise))

    def real(pair: tuple[str, str], random_seed: int) -> PairedSpaces:
        return load(*pair)

    tasks = [
        ((config.isometries_of, f"noise {noise:g}"), {"noise": noise}, partial(isometry, noise))
        for noise in config.noise
    ]
    for number, text in enumerate(config.pairs, start=1):
        pair = space_pairs.names(text)
        tasks.append((pair, {"pair": number}, partial(real, pair)))
    rows, failed = [], []
    for (source, target), labels, drawn in tqdm(tasks, unit="pair"):
        grid = runner.grid(config, source=source, target=target)
        prefix = f"{space_pairs.file_name(source, target)}-"
        shared = {"experiment": config.experiment, "labels": labels}
        shared |= {"num_pairs": config.num_pairs, "num_items": config.num_words}
        found, broken = _mrr(grid, work, drawn, prefix, **shared)
        failed += broken
        measured = []
        for random_seed in config.random_seeds:
            compute = partial(_first_matches, grid, drawn, random_seed)
            measured += work.part(f"{prefix}run{random_seed}-first_match", compute)
        shared |= {"dataset": f"{source} -> {target}", "source": source, "target": target}
        rows += found + results.summarise(measured, **shared)
    text = joined(comparison_report.phase_tables(rows) | runner.failures(failed))
    return results.finish(work, rows, text, {"phase": comparison_report.phase_figure(rows)})


def _normalised(data: PairedSpaces, num_words: int, normalise: Callable) -> PairedSpaces:
    """The first items, with normalised vectors."""
    data = data.take(slice(num_words))
    source, target = (normalise(jnp.asarray(side)) for side in (data.source, data.target))
    return data._replace(source=source, target=target)


def _problem(grid: Grid, drawn: Drawn, random_seed: int) -> Problem:
    """The anchors of the target are sought."""
    data = drawn(random_seed)
    return sample(
        data.source,
        data.target,
        num_anchors=grid.num_anchors,
        num_pairs=grid.num_pairs,
        random_seed=random_seed,
        wrong_pair_fraction=grid.wrong_pair_fraction,
        ranks=data.ranks,
    )


def _mrr(
    grid: Grid, work: Workdir, drawn: Drawn, prefix: str, *, labels: dict, **shared
) -> tuple[list[Row], list[str]]:
    """Rows of the MRR from source to target, and the parts that failed.

    `labels` and `shared` are fields of the rows, `prefix` is that of the parts' names.
    """

    def problem(role: str, random_seed: int) -> Problem:
        return _problem(grid, drawn, random_seed)

    def measure(problem: Problem, role: str, run: Run, method: str) -> dict:
        result = METHODS[method](problem, run)
        source, target = problem.relative(result.anchors)
        _, found = top_k(source, target, grid.settings.k)
        value = float(mrr(found, jnp.arange(len(source))))
        return {"rows": [{"metric": "mrr", "value": value}], "notes": dict(result.notes)}

    measured, failed = runner.collect(grid, work, problem, measure, prefix)
    labels = labels | {"representation": "relative", "optimised": grid.target}
    names = {"dataset": f"{grid.source} -> {grid.target}", "source": grid.source}
    names |= {"target": grid.target, "anchors": "continuous"}
    rows = [one | {"labels": labels} for one in measured]
    return results.summarise(rows, **names, **shared), failed


def _first_matches(grid: Grid, drawn: Drawn, random_seed: int) -> list[dict]:
    """Measurements of the CKA, and of the first match from both starts of Algorithm 1."""
    data, problem = drawn(random_seed), _problem(grid, drawn, random_seed)
    settings = grid.settings.algorithm1
    found = {
        "truth": {"linear_cka": float(linear_cka(data.source, data.target))},
        "algorithm1_printed": first_match(problem, algorithm1.printed(settings), random_seed),
        "algorithm1": first_match(problem, settings, random_seed),
    }
    return [
        {"method": method, "metric": metric, "value": value, "random_seed": random_seed}
        for method, values in found.items()
        for metric, value in values.items()
    ]


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
    anchors = algorithm1.init(start_key, problem.target, problem.target_pairs, k, settings).anchors
    x = relative(problem.source, problem.source_anchors)
    y = relative(problem.target, anchors)
    scale = settings.init_norm / np.sqrt(dimensions)
    normal = scale * jax.random.normal(noise_key, y[:, p:].shape)

    def right(x: Float[Array, "n c"], y: Float[Array, "m c"]) -> float:
        iterations = settings.sinkhorn_iterations
        found = ot.match(x, y, settings.sinkhorn_epsilon, iterations=iterations)
        return float(jnp.mean(problem.truth[found.to_x] == jnp.arange(len(y))))

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
