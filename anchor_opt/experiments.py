"""The experiments: data, method, metrics, report. Each returns the table for the terminal."""

import io
import itertools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import algorithm1, figures, paper, tables
from anchor_opt.methods import METHODS, Found, Run
from anchor_opt.problem import Problem, sample
from anchor_opt.relative import preprocess, unit_relative
from common import cli, report, train
from common.data import pairs, words
from common.metrics import correspondence
from common.workdir import Workdir, write_atomically, write_json

ROLES = ("source", "target")


def retrieval(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Retrieval across two word spaces (Tables 1, 4, 5): every method, both directions.

    A part of the run is one random seed, one optimised space, one method. Its result is kept in
    parts/, its anchors in anchors/.
    """
    _check(config)
    data = _load(config, cache)
    spaces = {role: preprocess(jnp.asarray(getattr(data, role))) for role in ROLES}
    names = dict(zip(ROLES, (config.source, config.target), strict=True))
    absolute = work.part("absolute", lambda: _absolute(spaces, config.k))

    measured, notes = [], {}
    tasks = list(itertools.product(config.random_seeds, config.optimise, config.methods))
    bar = tqdm(tasks, desc="anchor optimisation", unit="part")
    for random_seed, role, method in bar:
        bar.set_postfix_str(f"{method}, random seed {random_seed}, optimising the {role}")
        fixed = ROLES[1 - ROLES.index(role)]
        problem = sample(
            spaces[fixed],
            spaces[role],
            num_anchors=config.num_anchors,
            num_seeds=config.num_seeds,
            random_seed=random_seed,
        )
        part = f"seed{random_seed}-{role}-{method}"
        run = Run(config, work, part, random_seed)
        result = work.part(part, lambda: _measure(problem, run, method, role, data.words))  # noqa: B023
        train.forget_checkpoints(work, part)
        notes[part] = result["notes"]
        shared = {"method": method, "optimised": role, "random_seed": random_seed}
        measured += [shared | row for row in result["rows"] + absolute]

    rows = [_row(row, config, names, spaces) for row in report.summarise(measured)]
    failed = [part for part, note in notes.items() if note.get("failed")]
    full, short = tables.retrieval(config, rows, failed)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", full.encode())
    figures.retrieval(config, work, data.words, spaces, rows)
    return short


def _check(config: ConfigDict) -> None:
    """Names that are wrong are said at the start, not when their method comes up."""
    for method in config.methods:
        cli.choose(METHODS, method, "method")
    for role in config.optimise:
        cli.choose(dict.fromkeys(ROLES), role, "space to optimise")
    cli.choose(dict.fromkeys(("fixed", "moving")), config.algorithm1.permute, "algorithm1.permute")
    cli.choose(dict.fromkeys(("hard", "soft")), config.algorithm1.plan, "algorithm1.plan")


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


def _measure(problem: Problem, run: Run, method: str, role: str, vocabulary: list[str]) -> dict:
    """Runs one method and measures its anchors; also as real words, line 10 of Algorithm 1."""
    found = METHODS[method](problem, run)
    nearest = np.asarray(algorithm1.discretise(found.anchors, problem.moving))
    rows = []
    if method in ("gt", "seed"):  # words already
        rows += _compare(problem, found.anchors, role, run.config.k, anchors=None)
    else:
        for kind, anchors in (
            ("continuous", found.anchors),
            ("discrete", problem.moving[nearest]),
        ):
            rows += _compare(problem, anchors, role, run.config.k, anchors=kind)
    if found.coordinates:
        fixed, moving = found.coordinates
        own = _by_role(role, moving[problem.truth], fixed)
        rows += [
            row | {"representation": "mapped", "anchors": None}
            for row in _metrics(own, run.config.k)
            if row["metric"] == "p_at_1"
        ]
    _save_anchors(run, problem, found, nearest, vocabulary)
    return {"rows": rows, "notes": found.notes}


def _compare(problem: Problem, moving_anchors, role: str, k: int, anchors: str | None) -> list:
    """All metrics between the relative spaces, each also against itself."""
    fixed_anchors = problem.fixed[problem.anchors[: len(moving_anchors)]]
    moving = unit_relative(problem.moving[problem.truth], moving_anchors)
    spaces = _by_role(role, moving, unit_relative(problem.fixed, fixed_anchors))
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
    """The same metrics without anchors; the same for every method, shown as the paper does."""
    return [row | {"representation": "absolute", "anchors": None} for row in _metrics(spaces, k)]


def _save_anchors(run: Run, problem: Problem, found: Found, nearest, vocabulary: list[str]) -> None:
    """Keeps the anchors: the fixed space's words, the found vectors and their nearest words."""
    word_of_row = np.asarray(vocabulary)[np.argsort(problem.truth)]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        fixed_words=np.asarray(vocabulary)[problem.anchors[: len(nearest)]],
        moving_vectors=np.asarray(found.anchors),
        moving_words=word_of_row[nearest],
    )
    write_atomically(run.work.path / "anchors" / f"{run.part}.npz", buffer.getvalue())


def _row(row: dict, config: ConfigDict, names: dict, spaces: dict) -> dict:
    """A summarised row in the form of results.json, the paper's value beside it."""
    published = None
    if row["representation"] == "relative":
        published = paper.value(
            row["method"], row["optimised"], row["source"], row["target"], row["metric"]
        )
    return row | {
        "experiment": "retrieval",
        "dataset": f"{config.source} -> {config.target}",
        "source": names[row["source"]],
        "target": names[row["target"]],
        "optimised": names[row["optimised"]],
        "paper_value": published[0] if published else None,
        "paper_std": published[1] if published else None,
        "paper_dataset": paper.DATASET if published else None,
        "standin": config.source in words.SPACES or config.target in words.SPACES,
        "num_words": config.num_words,
        "num_pairs": config.num_seeds,
        "dim": spaces[row["source"]].shape[1],
    }


EXPERIMENTS = {"retrieval": retrieval}
