"""Tables and figures of natural language inference.

Labels of its rows: `test` (the part that was measured: 'test', 'matched', 'mismatched' or
'validation') and `split` ('test' or 'validation').
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from matplotlib.figure import Figure

from common.run.figures import error_bars
from common.run.records import Record
from common.run.results import Published, Row, frame, markdown, pivot, points
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
PAPER = {  # (method, training pairs) -> accuracy
    ("baseline", 1_000): SNLI_GAIN / SNLI_RELATIVE_GAIN,
    ("mse_lpl", 1_000): SNLI_GAIN / SNLI_RELATIVE_GAIN + SNLI_GAIN,
}


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The paper's number beside a row."""
    del config
    number = PAPER.get((row.method, row.num_pairs))
    return Published(number, dataset="SNLI") if number and row.metric == "accuracy" else None


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


def nearest_tables(nearest: Mapping[str, Mapping[str, list]]) -> dict[str, str]:
    """Table 3 of the paper for each data set, of method -> nearest pairs."""
    return {
        f"{dataset}: nearest pairs, as in Table 3": _nearest(methods)
        for dataset, methods in nearest.items()
        if methods
    }


def tables(record: Record) -> dict[str, str]:
    """Title -> table: accuracy (Figures 3 to 5), agreement with neighbours (Table 3), gains."""
    rows = frame(record.rows)
    figure_3 = {
        "The paper's Figure 3": f"On SNLI with 1,000 training pairs, the accuracy of MSE + LPL is "
        f"{100 * SNLI_GAIN:.1f} points above the baseline ({100 * SNLI_RELATIVE_GAIN:.1f}% "
        f"relative, which gives {PAPER['baseline', 1_000]:.2f} and "
        f"{PAPER['mse_lpl', 1_000]:.2f}). The figures print no other number. Proxy data "
        "are other texts, on which accuracies can't be compared with these."
    }
    by_title = {} if rows.quick.any() else figure_3
    rows["method"] = rows.method.map(NAMES)
    for name, part in rows.groupby(_part(rows), sort=False):
        for metric, title in METRICS.items():
            by_title[f"{name}: {title}, by number of training pairs"] = pivot(
                part[part.metric == metric],
                lines={"method": "Method"},
                columns="num_pairs",
                published=partial(published, config=record.config),
            )
        gained = part[part.metric.str.endswith("_gain")]
        if len(gained):
            metrics = gained.metric.str.removesuffix("_gain").map(METRICS)
            by_title[f"{name}: gain in the same random run, by number of training pairs"] = pivot(
                gained.assign(metric=metrics, over=gained.over.map(NAMES)),
                lines={"metric": "Gain in", "method": "Method", "over": "Over"},
                columns="num_pairs",
            )
    return by_title


def figures(record: Record) -> dict[str, Figure]:
    """File name -> accuracy over training pairs, as in Figure 3, and the gain over the baseline."""
    rows, by_file = frame(record.rows), {}
    rows["name"] = rows.method.map(NAMES)
    for name, part in rows.groupby(_part(rows), sort=False):
        panels = {"accuracy": points(part[part.metric == "accuracy"], "name", "num_pairs")}
        gained = part[[x.get("over") == "baseline" for x in part.row]]
        gained = gained[gained.metric == "accuracy_gain"]
        if len(gained):
            panels["gain over the baseline"] = points(gained, "name", "num_pairs")
        first = part.row.iloc[0]
        title = f"Inference, {name}: mean ± std of {first.num_runs} random runs"
        file = f"{first.dataset}_{first.get('test')}".lower().replace(" ", "_")
        by_file[file] = error_bars(panels, "training pairs", title, NAMES.values())
    return by_file


def _part(rows: pd.DataFrame) -> pd.Series:
    """The title of the part that each row was measured on."""
    return rows.dataset + ", " + rows.test + rows.proxy.map({True: " (proxy data)", False: ""})


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
