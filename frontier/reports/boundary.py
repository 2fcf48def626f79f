"""Tables and figure of the boundary of Algorithm 1 as printed.

Labels of the rows: `num_anchors` k, `init_norm` s, and `check`, whether the pair of spaces is one
to which nothing is fitted. `sweep_over` is 'base' for the values of the config.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from anchor_opt.evaluation import SUCCESS
from anchor_opt.reports.ablation import SWEEP_TITLES
from common.metrics import spearman
from common.run.figures import legend_below, styles
from common.run.results import Row, markdown, plus_minus, select

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
NOTES = (
    "n: items; k: anchors; p: known pairs; d: dimensions of the target; s: norm of the random "
    "anchors at first. Ratio: of signal and noise of the first match, computed from both spaces "
    "and the known pairs, without the true pairing. True ratio: with the signal measured on all "
    "true pairs. First match: fraction of target rows whose first match is right. MRR: of "
    "Algorithm 1 as printed; s below 1: with anchors that are kept at unit norm from the step "
    "sphere_from of the config. Successes: runs "
    f"whose MRR is at least {SUCCESS:g} of that of GT."
)


class Runs(NamedTuple):
    """Single random runs: the rows of their MRR, and columns of what is measured of each."""

    rows: list[Row]
    columns: dict[str, Float[np.ndarray, " r"]]

    @property
    def success(self) -> Bool[np.ndarray, " r"]:
        """Whether a run has at least a half of the MRR of GT."""
        return self.columns["mrr"] >= SUCCESS * self.columns["gt"]

    def where(self, **wanted: Any) -> "Runs":
        """The runs whose row has the given fields and labels."""
        mask = np.array([row.matches(**wanted) for row in self.rows], bool)
        columns = {name: values[mask] for name, values in self.columns.items()}
        return Runs([row for row, taken in zip(self.rows, mask, strict=True) if taken], columns)


def runs_of(rows: Sequence[Row]) -> Runs:
    """The single runs of an experiment's rows."""

    def key(row: Row) -> tuple:
        return row.dataset, row.sweep_over, row.sweep_value, row.random_seed

    ours = [row for row in select(rows, metric="mrr") if row.method != "gt"]
    columns = {"mrr": {key(row): row.mean for row in ours}}
    columns["gt"] = {key(row): row.mean for row in select(rows, method="gt", metric="mrr")}
    columns |= {name: {key(r): r.mean for r in select(rows, metric=name)} for name in FIRST}
    arrays = {name: np.array([of[key(row)] for row in ours]) for name, of in columns.items()}
    p, d, k, s = (
        np.array([row.get(name) for row in ours])
        for name in ("num_pairs", "dim", "num_anchors", "init_norm")
    )
    arrays |= {"d / (k - p)": d / (k - p), "p d / ((k - p) s^2)": p * d / ((k - p) * s**2)}
    return Runs(ours, arrays)


class Law(NamedTuple):
    """The probability of success 1 / (1 + exp(-slope log(value / boundary)))."""

    boundary: float
    slope: float

    def probability(self, value: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
        """Of success at each value, a ratio of signal and noise for instance."""
        return expit(self.slope * np.log(np.maximum(value, LEAST) / self.boundary))


def fitted(runs: Runs, name: str) -> Law:
    """The logistic regression of success on the log of a column; NaN if all runs end alike."""
    if len(set(runs.success)) == 1:
        return Law(np.nan, np.nan)
    values = np.log(np.maximum(runs.columns[name], LEAST))
    model = LogisticRegression(C=100).fit(values[:, None], runs.success)
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    return Law(float(np.exp(-intercept / slope)), slope)


def parts(rows: Sequence[Row]) -> dict[str, Runs]:
    """Title -> runs: those to which a law is fitted, and those of other spaces."""
    runs = runs_of([row for row in rows if row.sweep_over != OUTSIDE])
    return {"fitted": runs.where(check=False), "other spaces": runs.where(check=True)}


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: each setting, and how well quantities known before a run predict it."""
    del failed  # no method here reports a failure
    shown = parts(rows)
    made = shown["fitted"]
    first = [name for name in made.columns if name not in ("mrr", "gt")]
    header, body = ["Predictor", "Boundary", "Slope"], []
    for title, runs in shown.items():
        count = f"{len(runs.rows)} runs, {runs.success.sum()} successes"
        header += [f"Right, {title} ({count})", f"Spearman, {title}"]
    for name in first:
        law = fitted(made, name)
        line = [MEASURED.get(name, name).replace("_", " "), f"{law.boundary:.3g}"]
        line.append(f"{law.slope:.3g}")
        for runs in shown.values():
            values = runs.columns[name]
            right = (law.probability(values) >= 0.5) == runs.success
            correlation = spearman(values, runs.columns["mrr"])
            line += [plus_minus(float(right.mean()), None), plus_minus(correlation, None)]
        body.append(line)
    return {
        "How well the outcome of a run is predicted": markdown(header, body),
        "Each setting": f"{_settings(rows)}\n\n{NOTES}",
    }


def _settings(rows: Sequence[Row]) -> str:
    runs, body = runs_of(rows), []
    names = ("dataset", "sweep_over", "sweep_value")
    for line in dict.fromkeys(tuple(row.get(name) for name in names) for row in runs.rows):
        own = runs.where(**dict(zip(names, line, strict=True)))
        row = own.rows[0]
        varied = SWEEP_TITLES.get(row.sweep_over or "", row.sweep_over)
        varied = varied if row.sweep_value is None else f"{varied}: {row.sweep_value}"
        cells = [row.dataset, varied, *(str(row.get(name)) for name in SIZES)]
        for name in MEASURED:
            values = own.columns[name]
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            cells.append(plus_minus(float(values.mean()), deviation))
        body.append([*cells, f"{own.success.sum()} of {len(own.rows)}"])
    return markdown(("Spaces", "Varied", *SIZES.values(), *MEASURED.values(), "Successes"), body)


def figure(rows: Sequence[Row]) -> Figure:
    """MRR over the ratio, known before the run and true, with the fitted probability of success."""
    shown = parts(rows)
    figure = Figure(figsize=(10.5, 4.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    datasets = {row.dataset: runs for runs in shown.values() for row in runs.rows}
    looks = styles(datasets)
    titles = {RATIO: "known before the run", "true_ratio": "with the signal of all true pairs"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        law = fitted(shown["fitted"], name)
        for dataset, look in looks.items():
            runs = datasets[dataset].where(dataset=dataset)
            share = runs.columns["mrr"] / runs.columns["gt"]
            faces = "none" if runs.rows[0].get("check") else look.colour
            label = f"{dataset}{' (nothing fitted)' if runs.rows[0].get('check') else ''}"
            marks = {"marker": look.marker, "edgecolors": look.colour, "facecolors": faces}
            axis.set_xscale("log")
            axis.scatter(runs.columns[name], share, s=30, label=label, **marks)
        x = np.geomspace(*axis.get_xlim(), 200)
        axis.plot(x, law.probability(x), color="0.4", label="fitted probability of success")
        axis.axvline(law.boundary, color="0.4", ls="--", lw=1, label="boundary: probability 1/2")
        axis.axhline(SUCCESS, color="0.7", ls=":", lw=1, label="a success")
        axis.set(xlabel=f"signal / noise of the first match, {title}")
        ticks = [0.5, 0.7, 1, 1.4, 2]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("MRR of Algorithm 1 as printed / MRR of GT")
    figure.suptitle("When the published algorithm works: one point is one random run")
    legend_below(figure, 3)
    return figure
