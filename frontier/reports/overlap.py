"""Tables and figures of spaces that share a part of their items.

Labels of the rows: `representation` is 'relative', 'mapped' (the method's own map) or 'search' (the
report of a search); `optimised` is the space whose anchors are sought; `sweep_over` is 'shared',
the fraction of the items that both spaces have, 'known pairs', their number, or 'noise', that of a
noisy copy of one space.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binomtest

from anchor_opt.evaluation import REPORTS, SUCCESS
from anchor_opt.reports.searches import METHOD_TITLES, failures, rates
from common.run.figures import legend_below, small_multiples, styles
from common.run.results import Row, pivot, select
from frontier.methods import METHODS
from isthmus.search import success_probability

METRICS = ("gain", "relative_p_at_1")  # of the detector's figure
COUNTED: dict[str, Any] = {"color": "black", "marker": "o", "capsize": 4}  # its intervals
SWEEP_TITLES = {"shared": "shared fraction"}  # of what is varied, below the panels
NOTES = (
    "MRR of the shared items, whose partners are sought among all rows of the target. Least "
    "squares on the truth: anchors fitted to the true pairs. A search has succeeded in truth if "
    "by its own map it finds at least half as many of the shared items (P@1 by CSLS) as the "
    "orthogonal map of all true pairs does. False success: a search that has not succeeded and "
    "does not say so. False failure: one that has succeeded and is reported as failed."
)


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: results over each varied value, and what searches report."""
    tables = {}
    titles = {method: METHOD_TITLES.get(method, method) for method in METHODS}
    for over in dict.fromkeys(row.sweep_over for row in rows):
        lines = {"dataset": "Spaces", "sweep_value": over.capitalize()}
        for metric, title in (("mrr", "MRR"), ("p_at_1", "P@1 of the method's own map")):
            if shown := select(rows, metric=metric, sweep_over=over):
                table = pivot(shown, lines=lines, columns="method", titles=titles)
                tables[f"{title} over {over}"] = table
    return tables | rates(rows) | failures(failed)


def figures(
    rows: Sequence[Row], failed: Sequence[str], k: int, min_gain: float
) -> dict[str, Figure]:
    """`mrr`, and `detector` if a search has reported about itself.

    Args:
      rows: averages over random runs.
      failed: names of the searches that report a failure.
      k: length of the lists of the MRR.
      min_gain: threshold of the search.
    """
    figures = {"mrr": curve_figure(rows, k)}
    if select(rows, metric="gain"):
        figures["detector"] = detector_figure(rows, len(failed), min_gain)
    return figures


def curve_figure(rows: Sequence[Row], k: int) -> Figure:
    """MRR of each method over the shared fraction or the noise, with a panel for each pair."""
    panels: dict[str, dict[str, list]] = {}
    for row in select(rows, metric="mrr"):
        varied = SWEEP_TITLES.get(row.sweep_over, row.sweep_over)
        panel = panels.setdefault(f"{varied}\n{row.dataset}", {})
        points = panel.setdefault(METHOD_TITLES.get(row.method, row.method), [])
        points.append((row.sweep_value, row.mean, row.std))
    title = f"Items in unknown order, {rows[0].num_items:,} of each space"
    return small_multiples(panels, {}, f"MRR (K = {k})", title, METHOD_TITLES.values())


def detector_figure(rows: Sequence[Row], num_failed: int, min_gain: float) -> Figure:
    """What searches find, relative to the truth, over their gain; and how many report wrongly.

    Args:
      rows: of `gain`, `relative_p_at_1` and what searches report, averaged over random runs.
      num_failed: number of searches that report a failure.
      min_gain: threshold of the search.
    """
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    axis, wrong = figure.subplots(1, 2, width_ratios=(3, 2))
    looks = styles(dict.fromkeys(row.dataset for row in rows))
    for dataset, look in looks.items():
        gains, reached = (select(rows, dataset=dataset, metric=metric) for metric in METRICS)
        if gains:
            (x, x_std), (y, y_std) = (
                zip(*((row.mean, row.std) for row in points), strict=True)
                for points in (gains, reached)
            )
            marks = {"color": look.colour, "marker": look.marker, "ms": 6, "lw": 0.7}
            axis.errorbar(x, y, y_std, x_std, ls="", label=dataset, **marks)
    axis.axvline(min_gain, color="0.4", ls="--", lw=1, label="threshold of the search")
    x = np.linspace(0, 1, 200)
    axis.plot(x, success_probability(x, min_gain), color="0.6", lw=1, label="its probability")
    axis.axhline(SUCCESS, color="0.4", ls=":", lw=1, label="success in truth")
    runs = select(rows, metric="gain")[0].num_runs
    axis.set(
        xlabel=f"gain: from wrong pairs (0) to full agreement (1); {runs} searches a point",
        ylabel="P@1, relative to the true orthogonal map",
    )
    searches = sum(row.num_runs for row in select(rows, metric="gain"))
    reported = {"a success": searches - num_failed, "a failure": num_failed}
    for place, (total, metric) in enumerate(zip(reported.values(), REPORTS, strict=True)):
        count = round(sum(row.mean * row.num_runs for row in select(rows, metric=metric)))
        if total:
            low, high = binomtest(count, total).proportion_ci(method="wilson")
            share = count / total
            wrong.errorbar(share, place, xerr=[[share - low], [high - share]], **COUNTED)
            text = f"{count} of {total}: {low:.1%} to {high:.1%}"
            wrong.annotate(text, (0.02, place + 0.16), xycoords=("axes fraction", "data"))
    wrong.set_yticks(range(2), [f"report {name}" for name in reported])
    wrong.set(xlabel="fraction that is wrong, 95% interval (Wilson)", xlim=(-0.02, 1.02))
    wrong.set_ylim(1.5, -0.5)
    for panel in (axis, wrong):
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"What {searches} searches report of themselves, and what is true")
    legend_below(figure, 4)
    return figure
