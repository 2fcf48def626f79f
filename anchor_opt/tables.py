"""The tables of the experiments, the paper's numbers beside ours, never in one column."""

import itertools
import re
from collections import Counter

from ml_collections import ConfigDict

from anchor_opt import paper
from common.report import markdown, measured, plus_minus

METRICS = ("jaccard", "mrr", "cosine")
HEADER = ("Method", "Anchors", "Source", "Target", "Jaccard", "MRR", "Cosine", "P@1")
PAPER_HEADER = ("Paper: Jaccard", "MRR", "Cosine")


def published(config: ConfigDict) -> paper.Table:
    """The paper's table whose place the experiment's takes."""
    return paper.IMAGES if config.experiment == "vision" else paper.WORDS


def retrieval(
    config: ConfigDict, rows: list[dict], failed: list[str], notes: str = ""
) -> tuple[str, str]:
    """Returns table.md whole, and its part between different spaces for the terminal."""
    full, short = [], []
    table = published(config)
    count = rows[0][f"num_{table.items}"]
    for role in config.optimise:
        name = getattr(config, role)
        title = (
            f"## Anchors of {name} optimised\n\n"
            f"Ours: {config.source} -> {config.target}, {count:,} {table.items}, "
            f"{config.num_seeds} seeds, {config.num_anchors} anchors, mean ± std over "
            f"{len(config.random_seeds)} random seeds{_standin(config, rows)}. "
            f"Paper: {table.dataset}, with {table.source} in the place of {config.source} and "
            f"{table.target} in that of {config.target}.\n"
        )
        mine = [row for row in rows if row["optimised"] == name]
        full += [title, _lines(mine, "relative"), "", "Without anchors (absolute vectors):", ""]
        full += [_lines([r for r in mine if r["method"] == mine[0]["method"]], "absolute"), ""]
        short += [title, _lines([r for r in mine if r["source"] != r["target"]], "relative"), ""]
    for lines in (full, short):
        lines.append(_notes(table.items, failed, notes))
    return "\n".join(full), "\n".join(short)


def sweep(config: ConfigDict, rows: list[dict], failed: list[str]) -> str:
    """One line a method and value: the retrieval between the two spaces, source to target."""
    cells = []
    for value, method, metrics in sweep_points(config, rows):
        shown = [measured(metrics[name]) for name in (*METRICS, "p_at_1")]
        cells.append([f"{value}", method, *shown])
    title = (
        f"## {config.source} -> {config.target} over {config.sweep_over}\n\n"
        f"{config.num_words:,} words, {config.num_seeds} seeds, {config.num_anchors} anchors but "
        f"for the value varied; anchors of the {config.optimise[0]} sought, continuous; mean ± std "
        f"over {len(config.random_seeds)} random seeds{_standin(config, rows)}.\n\n"
    )
    header = (config.sweep_over, "Method", "Jaccard", "MRR", "Cosine", "P@1")
    notes = f"\n\nFailed by their own objective: {failures(failed)}." if failed else ""
    return f"{title}{markdown(header, cells)}{notes}\n"


def sweep_points(config: ConfigDict, rows: list[dict]):
    """Yields (value, method, metric -> row), source to target, relative, continuous anchors."""
    for value, method in itertools.product(config.sweep_values, config.methods):
        metrics = {
            row["metric"]: row
            for row in rows
            if row["sweep_value"] == value
            and row["method"] == method
            and row["representation"] == "relative"
            and row["anchors"] != "discrete"
            and (row["source"], row["target"]) == (config.source, config.target)
            and row["optimised"] == getattr(config, config.optimise[0])
        }
        if metrics:  # without seeds some methods have nothing
            yield value, method, metrics


def failures(failed: list[str]) -> str:
    """The parts that failed; those that differ in the random seed alone as one, counted."""
    alike = Counter(re.sub(r"seed\d+-", "", part) for part in failed)
    return ", ".join(f"{part} ({count} of its random seeds)" for part, count in alike.items())


def _standin(config: ConfigDict, rows: list[dict]) -> str:
    table = published(config)
    return f" (stand-ins for {table.source} and {table.target})" if rows[0]["standin"] else ""


def _lines(rows: list[dict], representation: str) -> str:
    lines = {}
    mapped = {}
    for row in rows:
        key = row["method"], row["source"], row["target"]
        if row["representation"] == "mapped":
            mapped[key] = row
        elif row["representation"] == representation:
            lines.setdefault((*key, row["anchors"]), {})[row["metric"]] = row
    cells = []
    for (method, source, target, anchors), metrics in lines.items():
        precision = metrics.get("p_at_1")
        cells.append(
            [
                method if representation == "relative" else "-",
                anchors or "-",
                source,
                target,
                *(measured(metrics[name]) for name in METRICS),
                measured(precision) if precision else "-",
                *(_paper(metrics[name]) for name in METRICS),
            ]
        )
        own = mapped.pop((method, source, target), None)
        if own:
            blank = ["-"] * 3
            cells.append([method, "own map", source, target, *blank, measured(own), *blank])
    return markdown(HEADER + PAPER_HEADER, cells)


def _paper(row: dict) -> str:
    return plus_minus(row["paper_value"], row["paper_std"], 2)


def _notes(items: str, failed: list[str], data: str) -> str:
    notes = (
        "oracle: least squares on the true pairing, the ceiling of anchors that may be any vector. "
        f"P@1: under CSLS. discrete: each anchor replaced by its nearest {items[:-1]} (Algorithm "
        "1, line 10). own map: P@1 in the method's own common coordinates, without anchors. The "
        "paper's AO line stands beside algorithm1, which is the published method, and beside "
        "bootstrap, which is ours."
    )
    if data:
        notes += f" {data}"
    if failed:
        notes += (
            "\n\nFailed by their own objective (no better than from wrong seeds): "
            f"{failures(failed)}."
        )
    return notes + "\n"
