"""Tables and figure of the boundary of Algorithm 1, in the form that the config names.

Labels of the rows: `num_anchors` k, `init_norm` s, and `check`, whether the pair of spaces is one
to which nothing is fitted. `sweep_over` is 'base' for the values of the config.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from anchor_opt.evaluation import SUCCESS
from anchor_opt.reports.ablation import SWEEP_TITLES
from anchor_opt.reports.searches import METHOD_TITLES
from common.metrics import spearman
from common.run.figures import legend_below, styles
from common.run.records import Record
from common.run.results import Row, frame, markdown, plus_minus

RATIO = "ratio"
OUTSIDE = "num_words"  # varied without being in the law
LEAST = 1e-3  # of a quantity whose logarithm is taken: a first match may have no right row
MEASURED = {  # metrics of a run -> title of the column
    RATIO: "Ratio",
    "true_ratio": "True ratio",
    "first_match": "First match",
    "mrr": "MRR",
    "gt": "GT",
}
SIZES = {"num_items": "n", "num_anchors": "k", "num_pairs": "p", "dim": "d", "init_norm": "s"}
FIRST = (RATIO, "true_ratio", "closed_form", "first_match")
PREDICTORS = (*FIRST, "d / (k - p)", "p d / ((k - p) s^2)")
SETTING = ["dataset", "sweep_over", "sweep_value"]
NOTES = (
    "n: items; k: anchors; p: known pairs; d: dimensions of the target; s: norm of the random "
    "anchors at first. Ratio: of signal and noise of the first match, computed from both spaces "
    "and the known pairs, without the true pairing. True ratio: with the signal measured on all "
    "true pairs. First match: fraction of target rows whose first match is right. MRR: of "
    "{}; s below 1: with anchors that are kept at unit norm from the step "
    "sphere_from of the config. Successes: runs "
    f"whose MRR is at least {SUCCESS:g} of that of GT."
)


def runs_of(rows: Sequence[Row]) -> pd.DataFrame:
    """A line for each random run: fields, labels, `MEASURED`, `PREDICTORS`, and its `success`."""
    table = frame(rows).fillna({"sweep_value": ""}).astype({"mean": float})
    table["metric"] = table["metric"].mask(table["method"] == "gt", "gt")
    about = [*SETTING, *SIZES, "check", "random_seed"]
    order = pd.MultiIndex.from_frame(table[about].drop_duplicates())
    runs = table.pivot_table("mean", about, "metric").reindex(order).reset_index()
    p, d, k, s = (runs[name] for name in ("num_pairs", "dim", "num_anchors", "init_norm"))
    runs["d / (k - p)"], runs["p d / ((k - p) s^2)"] = d / (k - p), p * d / ((k - p) * s**2)
    runs["success"] = runs["mrr"] >= SUCCESS * runs["gt"]
    return runs


class Law(NamedTuple):
    """The probability of success 1 / (1 + exp(-slope log(value / boundary)))."""

    boundary: float
    slope: float

    def probability(self, value: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
        """Of success at each value, a ratio of signal and noise for instance."""
        return expit(self.slope * np.log(np.maximum(value, LEAST) / self.boundary))


def fitted(runs: pd.DataFrame, name: str) -> Law:
    """The logistic regression of success on the log of a column; NaN if all runs end alike."""
    if runs["success"].nunique() == 1:
        return Law(np.nan, np.nan)
    values = np.log(np.maximum(runs[name].to_numpy(), LEAST))
    model = LogisticRegression(C=100).fit(values[:, None], runs["success"])
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    return Law(float(np.exp(-intercept / slope)), slope)


def parts(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Title -> runs: those to which a law is fitted, and those of other spaces."""
    runs = runs[runs["sweep_over"] != OUTSIDE]
    return {"fitted": runs[~runs["check"]], "other spaces": runs[runs["check"]]}


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: each setting, and how well quantities known before a run predict it."""
    all_runs = runs_of(record.rows)
    shown = parts(all_runs)
    header, body = ["Predictor", "Boundary", "Slope"], []
    for title, runs in shown.items():
        count = f"{len(runs)} runs, {runs['success'].sum()} successes"
        header += [f"Right, {title} ({count})", f"Spearman, {title}"]
    for name in PREDICTORS:
        law = fitted(shown["fitted"], name)
        line = [MEASURED.get(name, name).replace("_", " "), f"{law.boundary:.3g}"]
        line.append(f"{law.slope:.3g}")
        for runs in shown.values():
            values = runs[name].to_numpy()
            right = (law.probability(values) >= 0.5) == runs["success"]
            correlation = spearman(values, runs["mrr"].to_numpy())
            line += [plus_minus(float(right.mean()), None), plus_minus(correlation, None)]
        body.append(line)
    return {
        "How well the outcome of a run is predicted": markdown(header, body),
        "Each setting": f"{_settings(all_runs)}\n\n{NOTES.format(_method(record))}",
    }


def _method(record: Record) -> str:
    """The title of the one method that is measured."""
    measured = (row.method for row in record.rows if row.metric == "mrr" and row.method != "gt")
    return METHOD_TITLES[next(measured)]


def _settings(all_runs: pd.DataFrame) -> str:
    body = []
    for (dataset, over, value), runs in all_runs.groupby(SETTING, sort=False):
        varied = SWEEP_TITLES.get(over, over) + (f": {value}" if value != "" else "")
        deviations = runs[[*MEASURED]].std() if len(runs) > 1 else [None] * len(MEASURED)
        cells = list(map(plus_minus, runs[[*MEASURED]].mean(), deviations))
        sizes = [str(runs[name].iloc[0]) for name in SIZES]
        body.append([dataset, varied, *sizes, *cells, f"{runs['success'].sum()} of {len(runs)}"])
    return markdown(("Spaces", "Varied", *SIZES.values(), *MEASURED.values(), "Successes"), body)


def figures(record: Record) -> dict[str, Figure]:
    """`boundary`: MRR over the ratio, known and true, with the fitted probability of success."""
    shown = parts(runs_of(record.rows))
    datasets = dict(list(pd.concat(shown.values()).groupby("dataset", sort=False)))
    figure = Figure(figsize=(10.5, 4.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    looks = styles(datasets)
    titles = {RATIO: "known before the run", "true_ratio": "with the signal of all true pairs"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        law = fitted(shown["fitted"], name)
        for dataset, look in looks.items():
            runs = datasets[dataset]
            checked = runs["check"].any()
            label = f"{dataset}{' (nothing fitted)' if checked else ''}"
            faces = "none" if checked else look.colour
            marks = {"marker": look.marker, "edgecolors": look.colour, "facecolors": faces}
            axis.set_xscale("log")
            axis.scatter(runs[name], runs["mrr"] / runs["gt"], s=30, label=label, **marks)
        x = np.geomspace(*axis.get_xlim(), 200)
        axis.plot(x, law.probability(x), color="0.4", label="fitted probability of success")
        axis.axvline(law.boundary, color="0.4", ls="--", lw=1, label="boundary: probability 1/2")
        axis.axhline(SUCCESS, color="0.7", ls=":", lw=1, label="a success")
        axis.set(xlabel=f"signal / noise of the first match, {title}")
        ticks = [0.5, 0.7, 1, 1.4, 2]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(f"MRR of {_method(record)} / MRR of GT")
    figure.suptitle("MRR of Algorithm 1 over the ratio of its first match; a point: a random run")
    legend_below(figure, 3)
    return {"boundary": figure}
