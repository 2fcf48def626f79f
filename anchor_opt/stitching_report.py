"""Tables and figures of zero-shot stitching; the paper's numbers have columns of their own."""

from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from anchor_opt import paper_stitching
from anchor_opt.figures import NEIGHBOURS, relative_panels
from anchor_opt.tables import failures
from common.report import bars, markdown, measured, plus_minus, save_figure, scatter_grid
from common.retrieval import top_k
from common.workdir import Workdir

HEADER = ("Head", "Method", "Anchors", "Decoder", "Encoder", "F1", "MAE", "Paper: F1", "MAE")
MEANS_HEADER = ("Head", "Method", "Anchors", "F1", "MAE", "MRR of the training texts")
NOTES = (
    "Decoder: the encoder on whose vectors the head was trained; Encoder: the one that gives the "
    "test vectors. F1 is weighted by class size, MAE is of the class index (with two classes the "
    "share of errors). published: the head of the paper's code, whose feature norm looks at the "
    "whole test set; inductive: the same with LayerNorm there, so that each text is classified by "
    "itself. absolute: without anchors, only where dimensions agree. oracle: least squares on the "
    "true pairing. discrete: each anchor replaced by its nearest training text (Algorithm 1, line "
    "10). The paper's AO line stands beside algorithm1, which is the published method, and beside "
    "bootstrap, which is ours.\n"
)


def tables(config: ConfigDict, rows: list[dict], failed: list[str]) -> tuple[str, str]:
    """Returns table.md whole, and the means over the stitched combinations for the terminal."""
    full, short = [], []
    for role in config.optimise:
        name = getattr(config, role)
        mine = [row for row in rows if row["optimised"] in (name, None)]
        title = (
            f"## Anchors of {name} optimised\n\n"
            f"Ours: {config.source} and {config.target}, {rows[0]['dataset']}, "
            f"{rows[0]['num_train']:,} training and {rows[0]['num_test']:,} test texts, "
            f"{config.num_seeds} seeds, {config.num_anchors} anchors, mean ± std over "
            f"{len(config.random_seeds)} random seeds"
            f"{_standin(rows)}. Paper: {paper_stitching.DATASET}, with English in the place of "
            f"{name}.\n"
        )
        means = [title, "Mean of the two stitched combinations:\n", _means(config, mine), ""]
        full += [*means, "Each combination:\n", _lines(mine), ""]
        short += means
    notes = f"Failed by their own objective: {failures(failed)}.\n" if failed else ""
    return "\n".join([*full, NOTES + notes]), "\n".join([*short, notes])


def figures(config: ConfigDict, work: Workdir, spaces: dict, rows: list[dict]) -> None:
    """Writes f1.png, and relative_spaces.png where both spaces hold the same texts."""
    role = config.optimise[0]
    name = getattr(config, role)
    title = " and ".join(Path(getattr(config, r)).stem for r in ("source", "target"))
    title += f", anchors of the {role} sought"
    groups = {  # the stitched combinations first; of a file its name alone
        f"{Path(decoder).stem}\n→ {Path(encoder).stem}": (encoder, decoder)
        for decoder, encoder in (
            (config.source, config.target),
            (config.target, config.source),
            (config.source, config.source),
            (config.target, config.target),
        )
    }
    panels = {}
    for form in config.heads:
        lines = panels.setdefault(f"weighted F1, head {form}", {})
        for method in config.methods:
            found = {
                (row["source"], row["target"]): (row["mean"], row["std"])
                for row in _chosen(rows, name, method, "f1", form)
            }
            lines[method] = [found[pair] for pair in groups.values()]
    figure = bars(panels, list(groups), f"Trained on → tested on: {title}")
    save_figure(figure, work.path / "f1.png")
    if spaces["source"].anchors is None:
        _relative_spaces(config, work, spaces, role, title)


def _relative_spaces(config, work, spaces, role, title) -> None:
    """The test texts of the first random seed; colours: the neighbours of a few of them."""
    anchored = {name: space.texts.train for name, space in spaces.items()}
    shown = {name: space.texts.test for name, space in spaces.items()}
    panels = relative_panels(config, work, role, anchored, shown)
    if not panels:
        return
    test = shown["source"]
    near = np.asarray(top_k(test[:6], test, min(NEIGHBOURS, len(test)))[1])
    groups = {f"near text {row}": list(members) for row, members in enumerate(near)}
    figure = scatter_grid(
        panels, (config.source, config.target), groups, f"Relative spaces of test texts: {title}"
    )
    save_figure(figure, work.path / "relative_spaces.png")


def _chosen(rows, optimised, method, metric, form):
    """Rows of one method's anchors that may be any vector, or are texts already."""
    return [
        row
        for row in rows
        if row["method"] == method
        and row["optimised"] == optimised
        and (row["metric"], row["head"]) == (metric, form)
        and row["anchors"] != "discrete"
    ]


def _means(config: ConfigDict, rows: list[dict]) -> str:
    crossed = [r for r in rows if r["source"] != r["target"] and r["representation"] == "relative"]
    cells = []
    for form in config.heads:
        lines = {}
        for row in crossed:
            if row["head"] in (form, None):
                key = row["method"], row["anchors"] or "-"
                lines.setdefault(key, {}).setdefault(row["metric"], []).append(row["mean"])
        for (method, anchors), metrics in lines.items():
            values = [metrics.get(name) for name in ("f1", "mae", "mrr")]
            shown = [f"{np.mean(v):.3f}".removeprefix("0") if v else "-" for v in values]
            cells.append([form, method, anchors, *shown])
    return markdown(MEANS_HEADER, cells)


def _lines(rows: list[dict]) -> str:
    lines = {}
    for row in rows:
        if row["head"]:
            key = row["head"], row["method"], row["anchors"] or "-", row["target"], row["source"]
            lines.setdefault(key, {})[row["metric"]] = row
    cells = [
        [
            *key,
            *(measured(metrics[m]) for m in ("f1", "mae")),
            *(
                plus_minus(metrics[m]["paper_value"], metrics[m]["paper_std"], 2)
                for m in ("f1", "mae")
            ),
        ]
        for key, metrics in sorted(lines.items(), key=lambda line: line[0][0] != "published")
    ]
    return markdown(HEADER, cells)


def _standin(rows: list[dict]) -> str:
    return " (stand-ins for Amazon reviews and two RoBERTas)" if rows[0]["standin"] else ""
