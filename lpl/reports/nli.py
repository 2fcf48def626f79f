"""Tables and figures of natural language inference.

Labels of its rows: `test` (the part that was measured: 'test', 'matched', 'mismatched' or
'validation') and `split` ('test' or 'validation').
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from common.run.figures import error_bars
from common.run.results import Row, markdown, pivot, select
from lpl.nli import LABELS
from lpl.nli_data import SentencePairs
from lpl.reports.gains import over

NAMES = {
    "hypothesis_only": "hypothesis only",
    "baseline": "baseline",
    "map_only": "baseline + f",
    "mse": "baseline + MSE",
    "mse_lpl": "baseline + MSE + LPL",
}
# The paper's baseline may be either: a perceptron without f (4.1), or its whole network "optimized
# with a standard cross-entropy loss" (4.1, of the figures).
BASELINES = ("baseline", "map_only")
METRICS = {
    "accuracy": "accuracy",
    "neighbour_agreement": "fraction of nearest pairs predicted to have its label (Table 3)",
}
# Section 1: the gain of LPL over the baseline on SNLI with 1,000 pairs, and that gain relative to
# the baseline. Figures 3 to 5 print no numbers; these accuracies follow from the two.
SNLI_GAIN, SNLI_RELATIVE_GAIN = 0.089, 0.193
PAPER = {
    ("SNLI", "baseline", 1_000): SNLI_GAIN / SNLI_RELATIVE_GAIN,
    ("SNLI", "mse_lpl", 1_000): SNLI_GAIN / SNLI_RELATIVE_GAIN + SNLI_GAIN,
}


def with_published(rows: Iterable[Row]) -> list[Row]:
    """The rows, with the paper's number where it has one."""

    def paper_value(row: Row) -> float | None:
        number = PAPER.get((row.dataset, row.method, row.num_pairs))
        return number if row.metric == "accuracy" else None

    return [
        dataclasses.replace(row, paper_value=value, paper_dataset=row.dataset) if value else row
        for row, value in ((row, paper_value(row)) for row in rows)
    ]


def nearest_pairs(
    texts: SentencePairs, predicted: Int[np.ndarray, " t"], nearest: Int[np.ndarray, "t k"]
) -> list[dict]:
    """The first pair with label 0, and the pairs with the nearest representations (Table 3)."""
    row = int(np.argmax(texts.labels == 0))
    return [
        {
            "premise": texts.premises[i],
            "hypothesis": texts.hypotheses[i],
            "label": LABELS[texts.labels[i]],
            "predicted": LABELS[predicted[i]],
        }
        for i in (row, *nearest[row].tolist())
    ]


def table(rows: Sequence[Row], nearest: Mapping[str, Mapping[str, list]]) -> str:
    """table.md of a run: results, and data set -> method -> nearest pairs."""
    parts = tables(rows)
    for dataset, methods in nearest.items():
        if methods:
            parts[f"{dataset}: nearest pairs, as in Table 3"] = _nearest(methods)
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table: accuracy (Figures 3 to 5), agreement with neighbours (Table 3), gains."""
    figure_3 = {
        "The paper's Figure 3": f"On SNLI with 1,000 training pairs, the accuracy of MSE + LPL is "
        f"{100 * SNLI_GAIN:.1f} points above the baseline ({100 * SNLI_RELATIVE_GAIN:.1f}% "
        f"relative, which gives {PAPER['SNLI', 'baseline', 1_000]:.2f} and "
        f"{PAPER['SNLI', 'mse_lpl', 1_000]:.2f}). The figures print no other number. Proxy data "
        "are other texts, on which accuracies can't be compared with these."
    }
    by_title = {} if any(row.quick for row in rows) else figure_3
    for name, of_part in _by_part(rows).items():
        for metric, title in METRICS.items():
            shown = [
                dataclasses.replace(row, method=NAMES[row.method])
                for row in select(of_part, metric=metric)
            ]
            by_title[f"{name}: {title}, by number of training pairs"] = pivot(
                shown, lines={"method": "Method"}, columns="num_pairs", paper=True
            )
        gained = [
            dataclasses.replace(
                row,
                method=NAMES[row.method],
                metric=METRICS[row.metric.removesuffix("_gain")],
                labels={"over": NAMES[row.get("over")]},
            )
            for row in of_part
            if row.get("over")
        ]
        if gained:
            by_title[f"{name}: gain in the same random run, by number of training pairs"] = pivot(
                gained,
                lines={"metric": "Gain in", "method": "Method", "over": "Over"},
                columns="num_pairs",
            )
    return by_title


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """File name -> accuracy and its standard deviation over training pairs, as in Figure 3."""
    by_file = {}
    for name, of_part in _by_part(rows).items():
        panels = {"accuracy, mean": {}, "accuracy, standard deviation": {}}
        for row in select(of_part, metric="accuracy"):
            for panel, value in zip(panels.values(), (row.mean, row.std), strict=True):
                panel.setdefault(NAMES[row.method], []).append((row.num_pairs, value, 0.0))
        file = f"{of_part[0].dataset}_{of_part[0].get('test')}".lower().replace(" ", "_")
        title = f"{name}: {of_part[0].num_runs} random runs"
        by_file[file] = error_bars(panels, "training pairs", title, NAMES.values())
    return by_file


def _by_part(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Title -> rows of each part that was measured."""
    by_title: dict[str, list[Row]] = {}
    for row in rows:
        proxy = " (proxy data)" if row.proxy else ""
        by_title.setdefault(f"{row.dataset}, {row.get('test')}{proxy}", []).append(row)
    return by_title


def gains(rows: Sequence[Row]) -> list[Row]:
    """What the methods with losses gain over each baseline in the same random run."""
    return [
        dataclasses.replace(
            row, metric=f"{row.metric}_gain", labels={**row.labels, "over": baseline}
        )
        for baseline in BASELINES
        for row in over(baseline, rows)
        if row.method in ("mse", "mse_lpl")
    ]


def _nearest(methods: Mapping[str, list]) -> str:
    lines = []
    for method, (pair, *nearest) in methods.items():
        if not lines:
            lines.append(["(the pair)", pair["premise"], pair["hypothesis"], pair["label"], ""])
        for near in nearest:
            texts = near["premise"], near["hypothesis"]
            lines.append([NAMES[method], *texts, near["label"], near["predicted"]])
    cells = [[cell.replace("|", "/") for cell in line] for line in lines]
    return markdown(("Nearest by", "Premise", "Hypothesis", "Label", "Predicted"), cells)
