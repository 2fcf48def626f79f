"""Tables and figure of the phase diagram.

Labels of the rows: `noise` of a noisy isometry, or `pair`, the number of a real pair in table and
figure.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.isotonic import isotonic_regression

from anchor_opt.reports.searches import METHOD_TITLES, failures
from common.run.figures import styles
from common.run.results import Row, markdown, mean_and_deviation, select

LEGEND = METHOD_TITLES | {
    "seed": "Seed: known pairs alone",
    "gt": "GT: 300 true anchors",
    "algorithm1": "Algorithm 1, small start",
    "bootstrap": "Bootstrap (ours)",
}
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


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: the MRR of each method, and the first match of Algorithm 1."""
    methods = [row.method for row in select(rows, metric="mrr")]
    of_method = {(method, "mrr"): method for method in dict.fromkeys(methods)}
    first = rows[0]
    runs = f"{first.num_runs} random runs" if first.num_runs > 1 else "one random run"
    caption = (
        f"{first.num_items:,} items, {first.num_pairs} known pairs, {runs}; noise: a noisy "
        "isometry, a rotated copy with Gaussian noise of the given multiple of the space's own "
        "standard deviation in each direction. CKA: of all true pairs."
    )
    return {
        "MRR of each method": f"{_table(rows, of_method)}\n\n{caption}",
        "The first match of Algorithm 1": f"{_table(rows, FIRST_MATCH)}\n\n{FIRST_MATCH_NOTES}",
        **failures(failed),
    }


def _table(rows: Sequence[Row], columns: Mapping[tuple[str, str], str]) -> str:
    """A line for each pair with its CKA and these (method, metric), by title of the column."""
    columns = {("truth", "linear_cka"): "CKA"} | columns
    body = []
    for of_pair in _by_pair(rows):
        first, cells = of_pair[0], []
        for method, metric in columns:
            cell = "-"
            for row in select(of_pair, method=method, metric=metric):
                large = row.mean >= 10
                cell = f"{row.mean:,.0f}" if large else mean_and_deviation(row)
            cells.append(cell)
        body.append([str(first.get("pair") or ""), first.source, first.target, *cells])
    return markdown(("No.", "Source", "Target", *columns.values()), body)


def _by_pair(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each pair; real pairs with the same spaces are told apart by their number."""
    pairs: dict[tuple, list[Row]] = {}
    for row in rows:
        pairs.setdefault((row.get("pair"), row.get("noise")), []).append(row)
    return list(pairs.values())


def figure(rows: Sequence[Row]) -> Figure:
    """MRR of each method over the CKA: noisy isometries as lines, real pairs as numbered points."""
    figure = Figure(figsize=(10.5, 5.2), layout="constrained")
    axis = figure.subplots()
    pairs = _by_pair(rows)
    cka = [select(of_pair, metric="linear_cka")[0].mean for of_pair in pairs]
    methods = dict.fromkeys(row.method for row in select(rows, metric="mrr"))
    looks = styles(methods, METHOD_TITLES)
    for method in methods:
        line, points, label, look = [], [], LEGEND.get(method, method), looks[method]
        for x, of_pair in zip(cka, pairs, strict=True):
            for row in select(of_pair, method=method, metric="mrr"):
                (points if row.get("pair") else line).append((x, row.mean))
        if line:
            style = {"color": look.colour, "marker": look.marker, "ls": look.dashes, "ms": 4}
            axis.plot(*zip(*sorted(line), strict=True), **style, label=label)
        if points:
            style = {"color": look.colour, "marker": look.marker, "zorder": 3}
            style |= {"edgecolors": "white", "linewidths": 0.7}
            axis.scatter(*zip(*points, strict=True), s=52, **style, label=None if line else label)
    names = _number(axis, {row.mean: row for row in select(rows, metric="linear_cka")})
    axis.set(xlabel="linear CKA of the true pairs", ylabel="MRR (K = 10)", ylim=(-0.02, 1.14))
    axis.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    axis.spines[["top", "right"]].set_visible(False)
    handles, _ = axis.get_legend_handles_labels()
    blank = [Line2D([], [], ls="", label=name) for name in names]
    legend = {"loc": "outside right center", "frameon": False, "fontsize": 9, "handlelength": 2.6}
    figure.legend(handles=[*handles, Line2D([], [], ls=""), *blank], **legend)
    figure.suptitle("Which methods find the pairs, over how alike the spaces are")
    return figure


def _number(axis: Axes, pairs: Mapping[float, Row]) -> list[str]:
    """Numbers the real pairs above the axis, at their CKA, and gives the lines of the legend."""
    noisy = [row for row in pairs.values() if not row.get("pair")]
    real = sorted(((x, r) for x, r in pairs.items() if r.get("pair")), key=lambda pair: pair[0])
    names = [f"lines: noisy isometries of {row.source}" for row in noisy[:1]]
    if not real:
        return names
    # Numbers are at least `gap` apart and otherwise as near to their pairs as possible.
    low, high = min(pairs), max(pairs)
    gaps = 0.024 * (high - low) * np.arange(len(real))
    places = isotonic_regression(np.array([x for x, _ in real]) - gaps) + gaps
    for (x, row), place in zip(real, places, strict=True):
        axis.plot([x, x, place], [0, 1.03, 1.07], color="0.85", lw=0.8, zorder=0)
        axis.text(place, 1.08, str(row.get("pair")), ha="center", fontsize=8)
    numbered = sorted((row for _, row in real), key=lambda row: row.get("pair"))
    names += ["points: pairs of spaces"]
    return names + [f"{row.get('pair')}  {row.source} -> {row.target}" for row in numbered]
