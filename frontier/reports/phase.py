"""Tables and figure of the phase diagram.

Labels of the rows: `noise` of a noisy isometry, or `pair`, the number of a real pair in table and
figure.
"""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.isotonic import isotonic_regression

from anchor_opt.reports.searches import METHOD_TITLES, failures
from common.run.figures import styles
from common.run.records import Record
from common.run.results import frame
from frontier.reports.searches import side_by_side

if TYPE_CHECKING:
    import pandas as pd

LEGEND = METHOD_TITLES | {
    "seed": "Seed: known pairs alone",
    "gt": "GT: 300 true anchors",
}
LINES = {"pair": "No.", "source": "Source", "target": "Target"}  # the target has the noise
FIRST_MATCH = {  # (method, metric) -> title of the column
    ("algorithm1", "first_match_known"): "Known anchors alone",
    ("algorithm1", "first_match"): "Small start",
    ("algorithm1_printed", "first_match"): "Printed start",
    ("algorithm1_printed", "first_match_noise"): "the same, random columns replaced",
    ("algorithm1", "signal_to_noise"): "Known / random, small start",
    ("algorithm1_printed", "signal_to_noise"): "printed",
    ("algorithm1_printed", "signal"): "Similarity of true pairs: known",
    ("algorithm1_printed", "noise"): "random: measured",
    ("algorithm1_printed", "estimated_noise"): "estimated",
}
FIRST_MATCH_NOTES = (
    "Fractions of target rows whose first match in Algorithm 1 is right: by the products with the "
    "known anchors alone; by those with all anchors, of which the random ones begin with the norm "
    "init_norm (small start) or 1 (printed start); and with the latter's products with random "
    "anchors replaced by independent normal numbers of the same variance. Known / random: squared "
    "length of a row's products with the known anchors over that with the random ones. Similarity: "
    "the mean contribution of the known anchors to the similarity of a true pair, and the standard "
    "deviation of the contribution of the random anchors over all rows, which is estimated as "
    "|x A'| / sqrt(d) from the products of a source row with its true anchors."
)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: the MRR of each method, and the first match of Algorithm 1."""
    rows, first, cka = _numbered(record), record.rows[0], {("truth", "linear_cka"): "CKA"}
    methods = rows.loc[rows["metric"] == "mrr", "method"].unique()
    of_method = cka | {(method, "mrr"): method for method in methods}
    runs = f"{first.num_runs} random runs" if first.num_runs > 1 else "one random run"
    caption = (
        f"{first.num_items:,} items, {first.num_pairs} known pairs, {runs}; noise: a noisy "
        "isometry, a rotated copy with Gaussian noise of the given multiple of the space's own "
        "standard deviation in each direction. CKA: of all true pairs."
    )
    return {
        "MRR of each method": f"{side_by_side(rows, LINES, of_method)}\n\n{caption}",
        "The first match of Algorithm 1": (
            f"{side_by_side(rows, LINES, cka | FIRST_MATCH)}\n\n{FIRST_MATCH_NOTES}"
        ),
        **failures(record.failed),
    }


def figures(record: Record) -> dict[str, Figure]:
    """`phase`: MRR over the CKA, noisy isometries as lines, real pairs as numbered points."""
    figure = Figure(figsize=(10.5, 5.2), layout="constrained")
    axis = figure.subplots()
    rows = _numbered(record).fillna({"pair": 0, "noise": 0})
    cka = rows[rows["metric"] == "linear_cka"].rename(columns={"mean": "cka"})
    mrr = rows[rows["metric"] == "mrr"].merge(cka[["pair", "noise", "cka"]])
    looks = styles(mrr["method"], METHOD_TITLES)
    for method, shown in mrr.groupby("method", sort=False):
        look, label = looks[method], LEGEND.get(method, method)
        style = {"color": look.colour, "marker": look.marker}
        line, real = shown[shown["pair"] == 0].sort_values("cka"), shown[shown["pair"] > 0]
        if len(line):
            axis.plot(line["cka"], line["mean"], ls=look.dashes, ms=4, label=label, **style)
        if len(real):
            style |= {"edgecolors": "white", "linewidths": 0.7, "s": 52, "zorder": 3}
            label = None if len(line) else label
            axis.scatter(real["cka"].tolist(), real["mean"].tolist(), label=label, **style)
    names = _number(axis, cka)
    axis.set(xlabel="linear CKA of the true pairs", ylabel="MRR (K = 10)", ylim=(-0.02, 1.14))
    axis.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    axis.spines[["top", "right"]].set_visible(False)
    handles, _ = axis.get_legend_handles_labels()
    blank = [Line2D([], [], ls="", label=name) for name in names]
    legend = {"loc": "outside right center", "frameon": False, "fontsize": 9, "handlelength": 2.6}
    figure.legend(handles=[*handles, Line2D([], [], ls=""), *blank], **legend)
    figure.suptitle("MRR of each method from few known pairs, over the CKA of the spaces")
    return {"phase": figure}


def _numbered(record: Record) -> "pd.DataFrame":
    """The rows, of which real pairs have a `pair`, and noisy isometries a `noise`."""
    rows = frame(record.rows)
    return rows.reindex(columns=[*{"pair": None, "noise": None} | dict.fromkeys(rows)])


def _number(axis: Axes, cka: "pd.DataFrame") -> list[str]:
    """Numbers the real pairs above the axis, at their CKA, and gives the lines of the legend."""
    noisy, real = cka[cka["pair"] == 0], cka[cka["pair"] > 0].sort_values("cka")
    names = [f"lines: noisy isometries of {source}" for source in noisy["source"].head(1)]
    if real.empty:
        return names
    # Numbers are at least `gap` apart and otherwise as near to their pairs as possible.
    gaps = 0.024 * (cka["cka"].max() - cka["cka"].min()) * np.arange(len(real))
    places = isotonic_regression(real["cka"].to_numpy(float) - gaps) + gaps
    for x, pair, place in zip(real["cka"], real["pair"], places, strict=True):
        axis.plot([x, x, place], [0, 1.03, 1.07], color="0.85", lw=0.8, zorder=0)
        axis.text(place, 1.08, str(pair), ha="center", fontsize=8)
    numbered = real.sort_values("pair")[["pair", "source", "target"]]
    lines = [f"{pair}  {source} -> {target}" for _, pair, source, target in numbered.itertuples()]
    return [*names, "points: pairs of spaces", *lines]
