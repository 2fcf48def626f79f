"""The experiments: data, methods, metrics, report. Each returns the table for the terminal."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import (
    bridge,
    comparison,
    halves,
    new_model,
    overlap,
    retrieval_report,
    runner,
    stitching,
    stitching_report,
    vision,
)
from anchor_opt.methods import METHODS
from anchor_opt.problem import Problem, Run, sample
from anchor_opt.runner import ROLES, Grid, other
from common import csls
from common.linear import preprocess
from common.metrics import correspondence
from common.run import results
from common.run.results import Row, joined
from common.run.settings import settings
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from common.spaces.paired_spaces import PairedSpaces

Spaces = Mapping[str, Float[Array, "n d"]]  # role -> preprocessed rows


def retrieval(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Retrieval across two word spaces (Tables 1, 4, 5): every method, both directions."""
    data = _words(config, config.num_words, cache)
    groups = retrieval_report.word_groups(config.figure_words, data.names, data.source)
    grid, proxies = runner.grid(config), paired_spaces.SPACES
    found = _retrieval(config.experiment, grid, work, data, groups, proxies)
    return _report(work, *found, num_anchors=grid.num_anchors)


def across_images(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Retrieval across pairs of encoders of the same images (Table 7)."""
    encoders = {name: settings(vision.Encoder, one) for name, one in config.encoders.items()}
    values = settings(vision.Settings, config, encoders=encoders)
    proxies = [*encoders, *paired_spaces.SPACES]
    rows, failed, figures, notes = [], [], {}, {}
    for pair in config.pairs:
        source, target = space_pairs.names(pair)
        grid = runner.grid(config, source=source, target=target)
        encoded = vision.load((source, target), values, work, cache)
        space, labels = encoded.pair.source, encoded.labels
        groups = {} if labels is None else retrieval_report.class_groups(labels, space)
        prefix = f"{space_pairs.file_name(source, target)}-"
        found, broken, drawn = _retrieval(
            config.experiment, grid, work, encoded.pair, groups, proxies, prefix
        )
        rows += found
        failed += broken
        figures |= drawn
        notes |= dict.fromkeys(encoded.notes)
    return _report(work, rows, failed, figures, num_anchors=config.num_anchors, notes=notes)


def stitch(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Zero-shot stitching of two text encoders (Tables 2 and 6)."""
    values = settings(stitching.Settings, config)
    rows, failed = [], []
    for pair in config.pairs:
        source, target = space_pairs.names(pair)
        grid = runner.grid(config, source=source, target=target)
        prefix = f"{space_pairs.file_name(source, target)}-"
        spaces, found, broken = stitching.run(grid, values, work, cache, prefix)
        rows += [stitching_report.named(row, grid, spaces) for row in found]
        failed += broken
    tables = stitching_report.tables(rows, num_anchors=config.num_anchors, failed=failed)
    text = f"{joined(tables)}\n\n{stitching_report.NOTES}"
    return results.finish(work, rows, text, stitching_report.figures(rows))


def describe_spaces(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """What is known of pairs of spaces before any method runs: a table and the figure cka.png."""
    rows = []
    for number, pair in enumerate(tqdm(config.pairs, unit="pair"), start=1):
        source, target = space_pairs.names(pair)

        def compute(source: str = source, target: str = target) -> dict:
            data = paired_spaces.load(
                source, target, num_words=None, cache=cache, max_rows=config.max_rows
            )
            chosen = slice(config.num_words)
            x, y = (preprocess(jnp.asarray(side[chosen])) for side in (data.source, data.target))
            options = {name: config[name] for name in ("num_anchors", "k", "random_seeds")}
            labels = {"source_dim": x.shape[1], "shared": len(data.names)}
            fields = {"dim": y.shape[1], "num_items": len(x), "labels": labels}
            return {"fields": fields, "rows": space_pairs.measure(x, y, **options)}

        found = work.part(f"{source}-{target}".replace("/", "_"), compute)
        shared = found["fields"] | {"source": source, "target": target}
        shared["labels"] = {"pair": number} | shared["labels"]
        rows += results.summarise(
            found["rows"], experiment=config.experiment, dataset=f"{source} -> {target}", **shared
        )
    notes = space_pairs.NOTES.format(num_anchors=config.num_anchors, k=config.k)
    text = f"{space_pairs.table(rows)}\n\n{notes}"
    return results.finish(work, rows, text, {"cka": space_pairs.figure(rows)})


def _words(config: ConfigDict, num_words: int, cache: Path) -> PairedSpaces:
    files = ("source", "target", "source_words", "target_words", "max_rows")
    given = {name: config[name] for name in (*files, "drop_first", "min_letters")}
    return paired_spaces.load(**given, num_words=num_words, cache=cache)


def _retrieval(
    experiment: str,
    grid: Grid,
    work: Workdir,
    data: PairedSpaces,
    groups: Mapping[str, list[int]],
    proxies: Collection[str],
    prefix: str = "",
) -> tuple[list[Row], list[str], dict[str, Figure]]:
    """The rows of one pair of spaces, the parts that failed, and the figures.

    `groups` of items are coloured; `prefix` is that of the names of parts and figures.
    """
    spaces, rows, failed = _measured(grid, work, data, proxies, experiment, prefix)
    figures = retrieval_report.retrieval_figures(grid, work, spaces, groups, rows, prefix)
    return rows, failed, {prefix + name: figure for name, figure in figures.items()}


def _report(
    work: Workdir,
    rows: Sequence[Row],
    failed: Sequence[str],
    figures: Mapping[str, Figure],
    *,
    num_anchors: int,
    notes: Iterable[str] = (),
) -> str:
    """Writes the results, with notes that say what the data are; returns the main tables."""
    across = retrieval_report.tables(rows, num_anchors=num_anchors, failed=failed)
    end = "\n\n" + " ".join([retrieval_report.NOTES, *notes])
    results.finish(work, rows, joined(across | retrieval_report.tables_within(rows)) + end, figures)
    return joined(across) + end


def _measured(
    grid: Grid,
    work: Workdir,
    data: PairedSpaces,
    proxies: Collection[str],
    experiment: str,
    prefix: str,
) -> tuple[Spaces, list[Row], list[str]]:
    """The preprocessed spaces, the rows of results.json, and the parts that failed.

    `proxies` are names of spaces that take the place of the paper's.
    """
    spaces = {role: preprocess(getattr(data, role)) for role in ROLES}
    measured, failed = _collect(grid, work, spaces, data, prefix)
    rows = results.summarise(
        measured,
        dataset=f"{grid.source} -> {grid.target}",
        num_items=len(data.names),
        num_pairs=grid.num_pairs,
        proxy=any(name in proxies for name in (grid.source, grid.target)),
        experiment=experiment,
    )
    return spaces, [_named(row, grid, spaces) for row in rows], failed


def _collect(
    grid: Grid, work: Workdir, spaces: Spaces, data: PairedSpaces, prefix: str
) -> tuple[list[dict], list[str]]:
    """Measurements, whose spaces are named by their roles, and the parts that failed."""
    k, names = grid.settings.k, data.names
    absolute = work.part(f"{prefix}absolute", lambda: _metrics(spaces, k, "absolute"))

    def problem(role: str, random_seed: int) -> Problem:
        ranks = data.ranks if role == "target" or data.ranks is None else data.ranks[::-1]
        return sample(
            spaces[other(role)],
            spaces[role],
            num_anchors=grid.num_anchors,
            num_pairs=grid.num_pairs,
            random_seed=random_seed,
            wrong_pair_fraction=grid.wrong_pair_fraction,
            ranks=ranks,
        )

    def measure(problem: Problem, role: str, run: Run, method: str) -> dict:
        result = METHODS[method](problem, run)
        rows = []
        for form, anchors in runner.keep_anchors(problem, result, method, run, names):
            relative = dict(zip((other(role), role), problem.relative(anchors), strict=True))
            in_order = {name: relative[name] for name in ROLES}
            rows += [row | {"anchors": form} for row in _metrics(in_order, k, "relative")]
        if result.maps is not None:
            both = result.coordinates(problem.source, problem.target)
            found = jax.device_get(csls.matches(*both, neighbours=k))
            rows += _mapped_precision(problem, found, role)
            if "failed" in result.notes:
                roles = {"source": other(role), "target": role}
                right = np.mean(found.to_target == problem.truth)
                reported = runner.search_report(problem, result.notes, right, k)
                rows += [row | roles for row in reported]
        notes = dict(result.notes)
        if "rejected_pairs" in notes:
            pairs = problem.source_pairs[notes["rejected_pairs"]]
            notes["rejected_pairs"] = [names[row] for row in pairs]
        return {"rows": rows, "notes": notes}

    measured, failed = runner.collect(grid, work, problem, measure, prefix)
    # The metrics of the absolute vectors stand beside every method's, as in the paper.
    runs = {(r["method"], r["labels"]["optimised"], r["random_seed"]): None for r in measured}
    for method, role, random_seed in runs:
        for row in absolute:
            labels = {"optimised": role} | row["labels"]
            measured.append(row | {"method": method, "random_seed": random_seed, "labels": labels})
    return measured, failed


def _metrics(spaces: Spaces, k: int, representation: str) -> list[dict]:
    """All metrics of each space with each, itself included."""
    return [
        _measurement(source, target, metric, value, representation)
        for (source, target), values in correspondence(spaces, k).items()
        for metric, value in values.items()
    ]


def _mapped_precision(problem: Problem, found: csls.Matches, role: str) -> list[dict]:
    """P@1 of the matches in the method's own common coordinates, in both directions."""
    to_source = (found.to_source[problem.truth] == np.arange(len(problem.truth))).mean()
    right = {role: to_source, other(role): (found.to_target == problem.truth).mean()}
    return [_measurement(one, other(one), "p_at_1", right[one], "mapped") for one in ROLES]


def _measurement(source: str, target: str, metric: str, value, representation: str) -> dict:
    row = {"source": source, "target": target, "metric": metric, "value": float(value)}
    return row | {"anchors": None, "labels": {"representation": representation}}


def _named(row: Row, grid: Grid, spaces: Spaces) -> Row:
    """A row with names of spaces in the place of roles, and the paper's value beside it."""
    paper, optimised, value = retrieval_report.published(row.experiment), row.get("optimised"), None
    if row.matches(representation="relative"):
        value = paper.value(row.method, optimised, row.source, row.target, row.metric)
    mean, std = value or (None, None)
    return dataclasses.replace(
        row,
        source=grid.name(row.source),
        target=grid.name(row.target),
        dim=spaces[row.source].shape[1],
        paper_value=mean,
        paper_std=std,
        paper_dataset=paper.dataset if value else None,
        labels=row.labels | {"optimised": grid.name(optimised)},
    )


EXPERIMENTS = {
    "retrieval": retrieval,
    "vision": across_images,
    "ablation": comparison.ablation,
    "phase": comparison.phase,
    "stitching": stitch,
    "spaces": describe_spaces,
    "overlap": overlap.overlap,
    "halves": halves.halves,
    "new_model": new_model.new_model,
    "bridge": bridge.bridge,
}
