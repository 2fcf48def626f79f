"""The experiments: data, method, metrics, report. Each returns the table for the terminal."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from anchor_opt import bootstrap, figures, paper, tables, vision
from anchor_opt.measure import ROLES, check, collect, fixed_role, forms
from anchor_opt.methods import METHODS, Run
from anchor_opt.problem import Problem, sample
from anchor_opt.relative import preprocess
from anchor_opt.stitching import stitching
from common import report, sweeps
from common.data import pairs, words
from common.metrics import correspondence
from common.workdir import Workdir, write_atomically, write_json


def retrieval(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Retrieval across two word spaces (Tables 1, 4, 5): every method, both directions."""
    check(config)
    data = _load(config, cache)
    return _across(config, work, data, figures.word_groups(config.figure_words, data))


def across_images(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Retrieval across two encoders of the same images (Table 7)."""
    check(config)
    seen = vision.load(config, work, cache)
    named = ConfigDict(config)  # the table names the file of one's own features or weights
    named.source, named.target = seen.encoders
    known = seen.labels is not None
    groups = figures.class_groups(seen.labels, seen.pair) if known else {}
    return _across(named, work, seen.pair, groups, seen.notes)


def _across(
    config: ConfigDict, work: Workdir, data: pairs.Pair, groups: dict, notes: str = ""
) -> str:
    """Retrieval across two spaces: every method, both directions; tables and figures.

    Args:
      config: of the experiment.
      work: the run's folder.
      data: the spaces.
      groups: label -> rows coloured in the figure.
      notes: on the data, to stand below the tables.
    """
    rows, failed = _collect(config, work, data)
    full, short = tables.retrieval(config, rows, failed, notes)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", full.encode())
    figures.retrieval(config, work, data.names, _spaces(data), groups, rows)
    return short


def sweep(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The same with one value of the config varied: config.sweep_over through config.sweep_values.

    Ends with a table and the figure sweep.png: MRR and Jaccard of each method over the values.
    """
    points = sweeps.points(config, check)
    most = max(point.num_words for _, point in points)
    with_most = ConfigDict(config)
    with_most.num_words = most
    data = _load(with_most, cache)
    rows, failed = [], []
    for value, point in points:
        first = pairs.Pair(*(part[: point.num_words] for part in data))
        found, broken = _collect(point, work, first, f"{config.sweep_over}={value}-")
        swept = {"sweep_over": config.sweep_over, "sweep_value": value}
        rows += [row | swept for row in found]
        failed += broken
    table = tables.sweep(config, rows, failed)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    figures.sweep(config, work, rows)
    return table


def _spaces(data: pairs.Pair) -> dict:
    return {role: preprocess(jnp.asarray(getattr(data, role))) for role in ROLES}


def _collect(
    config: ConfigDict, work: Workdir, data: pairs.Pair, prefix: str = ""
) -> tuple[list[dict], list[str]]:
    """Measures every method, direction and random seed: the rows, and the parts that failed."""
    spaces = _spaces(data)
    absolute = work.part(f"{prefix}absolute", lambda: _absolute(spaces, config.k))

    def pose(role, random_seed):
        return sample(
            spaces[fixed_role(role)],
            spaces[role],
            num_anchors=config.num_anchors,
            num_seeds=config.num_seeds,
            random_seed=random_seed,
            noise=config.seed_noise,
        )

    def measure(problem, role, run, method):
        return _measure(problem, role, run, method, data.names)

    measured, failed = collect(config, work, pose, measure, prefix)
    # The same for every method, shown beside each as the paper does.
    for run in dict.fromkeys((r["method"], r["optimised"], r["random_seed"]) for r in measured):
        shared = dict(zip(("method", "optimised", "random_seed"), run, strict=True))
        measured += [shared | row for row in absolute]
    return [_row(row, config, spaces) for row in report.summarise(measured)], failed


def _load(config: ConfigDict, cache: Path) -> pairs.Pair:
    return pairs.load(
        config.source,
        config.target,
        num_words=config.num_words,
        cache=cache,
        source_words=config.source_words,
        target_words=config.target_words,
        drop_first=config.drop_first,
        min_letters=config.min_letters,
        max_rows=config.max_rows,
    )


def _measure(problem: Problem, role: str, run: Run, method: str, names: list[str]) -> dict:
    """Runs one method and measures its anchors."""
    found = METHODS[method](problem, run)
    rows = []
    for kind, anchors in forms(problem, found, method, run, names):
        rows += _compare(problem, anchors, role, run.config.k, kind)
    if found.coordinates:
        rows += _own_precision(problem, found.coordinates, role, run.config.k)
    notes = dict(found.notes)
    if "disbelieved" in notes:  # seeds by number: by name
        notes["disbelieved"] = [names[problem.anchors[i]] for i in notes["disbelieved"]]
    return {"rows": rows, "notes": notes}


def _own_precision(problem: Problem, coordinates: tuple, role: str, k: int) -> list[dict]:
    """P@1 under CSLS in the method's own coordinates, both ways: two passes give no more."""
    found = jax.device_get(bootstrap.match(*coordinates, neighbours=k))
    shares = _by_role(
        role,
        (found.to_fixed[problem.truth] == np.arange(len(problem.truth))).mean(),
        (found.to_moving == problem.truth).mean(),
    )
    shared = {"metric": "p_at_1", "representation": "mapped", "anchors": None}
    return [
        shared | {"source": source, "target": target, "value": float(shares[source])}
        for source, target in (ROLES, ROLES[::-1])
    ]


def _compare(problem: Problem, moving_anchors, role: str, k: int, anchors: str | None) -> list:
    """All metrics between the relative spaces, each also against itself."""
    fixed, moving = problem.relative(moving_anchors)
    spaces = _by_role(role, moving, fixed)
    return [row | {"representation": "relative", "anchors": anchors} for row in _metrics(spaces, k)]


def _by_role(role: str, moving, fixed) -> dict:
    """Source first: the order of the table."""
    return {name: moving if name == role else fixed for name in ROLES}


def _metrics(spaces: dict, k: int) -> list[dict]:
    return [
        {"source": source, "target": target, "metric": name, "value": float(value)}
        for (source, target), values in correspondence(spaces, k).items()
        for name, value in values.items()
    ]


def _absolute(spaces: dict, k: int) -> list[dict]:
    """The same metrics without anchors."""
    return [row | {"representation": "absolute", "anchors": None} for row in _metrics(spaces, k)]


def _row(row: dict, config: ConfigDict, spaces: dict) -> dict:
    """A summarised row in the form of results.json, the paper's value beside it."""
    names = {role: getattr(config, role) for role in ROLES}
    standins = (*words.SPACES, *config.get("encoders", ()))
    table = tables.published(config)
    published = None
    if row["representation"] == "relative" and config.experiment in ("retrieval", "vision"):
        published = paper.value(
            table, row["method"], row["optimised"], row["source"], row["target"], row["metric"]
        )
    return row | {
        "experiment": config.experiment,
        "dataset": f"{config.source} -> {config.target}",
        "source": names[row["source"]],
        "target": names[row["target"]],
        "optimised": names[row["optimised"]],
        "paper_value": published[0] if published else None,
        "paper_std": published[1] if published else None,
        "paper_dataset": table.dataset if published else None,
        "standin": any(name in standins for name in (config.source, config.target)),
        f"num_{table.items}": len(spaces["source"]),
        "num_pairs": config.num_seeds,
        "dim": spaces[row["source"]].shape[1],
    }


EXPERIMENTS = {
    "retrieval": retrieval,
    "vision": across_images,
    "sweep_seeds": sweep,
    "sweep_anchors": sweep,
    "sweep_words": sweep,
    "sweep_noise": sweep,
    "starts": sweep,
    "stitching": stitching,
}
