"""Tables and figures of spaces that share a part of their items.

Labels of the rows: `representation` is 'relative', 'mapped' (the method's own map) or 'search' (the
report of a search); `optimised` is the space whose anchors are sought; `sweep_over` is 'shared',
the fraction of the items that both spaces have, 'known pairs', their number, or 'noise', that of a
noisy copy of one space.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.evaluation import SUCCESS
from anchor_opt.reports.searches import counted, failures, rates
from common.run.figures import legend_below, small_multiples, styles, within
from common.run.records import Record
from common.run.results import Row, frame, pivot, points, select
from frontier.reports.searches import TITLES
from isthmus.search import success_probability

METRICS = ("gain", "relative_p_at_1")  # of the detector's figure
SWEEP_TITLES = {"shared": "shared fraction"}  # of what is varied, below the panels
NOTES = (
    "MRR of the shared items, whose partners are sought among all rows of the target. Least "
    "squares on the truth: anchors fitted to the true pairs. A search has succeeded in truth if "
    "by its own map it finds at least half as many of the shared items (P@1 by CSLS) as the "
    "orthogonal map of all true pairs does. False success: a search that has not succeeded and "
    "does not say so. False failure: one that has succeeded and is reported as failed."
)
OF_COORDINATES = (
    "P@1 (CSLS) and MRR (cosine) of the items that are in no known pair, whose partners are sought "
    "among all rows in the coordinates of each method. Spectral embedding and CCA: the first two "
    "of the three steps of SUE. Searches are judged by all items."
)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: results over each varied value, and what searches report."""
    tables = {}
    for over, rows in frame(record.rows).groupby("sweep_over", sort=False):
        lines = {"dataset": "Spaces", "sweep_value": str(over).capitalize()}
        for metric, title in (("mrr", "MRR"), ("p_at_1", "P@1 of the method's own map")):
            shown = rows.loc[rows["metric"] == metric, "row"]
            if len(shown):
                table = pivot(shown, lines=lines, columns="method", titles=TITLES)
                tables[f"{title} over {over}"] = table
    notes = NOTES if record.config["num_anchors"] else OF_COORDINATES
    return tables | rates(record.rows) | failures(record.failed) | {"Notes": notes}


def figures(record: Record) -> dict[str, Figure]:
    """`mrr`, and `detector` if a search has reported about itself."""
    rows = record.rows
    figures = {"mrr": curve_figure(rows, record.config["k"])}
    if select(rows, metric="gain"):
        least = record.config["bootstrap"]["min_gain"]
        figures["detector"] = detector_figure(rows, len(record.failed), least)
    return figures


def curve_figure(rows: Sequence[Row], k: int) -> Figure:
    """MRR of each method over the shared fraction or the noise, with a panel for each pair."""
    mrr = frame(select(rows, metric="mrr"))
    mrr["method"] = mrr["method"].map(lambda method: TITLES.get(method, method))
    panels = {
        f"{SWEEP_TITLES.get(over, over)}\n{dataset}".replace("classes_", ""): points(
            shown, "method", "sweep_value"
        )
        for (over, dataset), shown in mrr.groupby(["sweep_over", "dataset"], sort=False)
    }
    title = f"MRR with items in unknown order, {rows[0].num_items:,} of each space"
    return small_multiples(panels, {}, f"MRR (K = {k})", title, TITLES.values())


def detector_figure(rows: Sequence[Row], num_failed: int, min_gain: float) -> Figure:
    """What searches find, relative to the truth, over their gain; and how many report wrongly.

    `num_failed` searches report a failure; their threshold is `min_gain`.
    """
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axis = figure.subplots()
    looks = styles(dict.fromkeys(row.dataset for row in rows))
    for dataset, look in looks.items():
        gains, reached = (select(rows, dataset=dataset, metric=metric) for metric in METRICS)
        x, y = ([row.mean for row in shown] for shown in (gains, reached))
        bars = within(y, [row.std for row in reached], (0, max(1, *y)))
        x_bars = within(x, [row.std for row in gains], (min(0, *x), 1))
        marks = {"color": look.colour, "marker": look.marker, "ms": 6, "lw": 0.7}
        axis.errorbar(x, y, bars, x_bars, ls="", label=dataset, **marks)
    axis.axvline(min_gain, color="0.4", ls="--", lw=1, label="threshold of the search")
    x = np.linspace(0, 1, 200)
    axis.plot(x, success_probability(x, min_gain), color="0.6", lw=1, label="its probability")
    axis.axhline(SUCCESS, color="0.4", ls=":", lw=1, label="success in truth")
    runs = select(rows, metric="gain")[0].num_runs
    axis.set_xlabel(f"gain: from wrong pairs (0) to full agreement (1); {runs} searches a point")
    axis.set_ylabel("P@1, relative to the true orthogonal map")
    axis.spines[["top", "right"]].set_visible(False)
    searches, successes, wrong = counted(rows).sum().round().astype(int)
    of_successes = f"{successes} of {searches - num_failed} reported successes"
    of_failures = f"{wrong} of {num_failed} reported failures"
    figure.suptitle(f"{searches} searches: {of_successes} and {of_failures} are wrong")
    legend_below(figure, 3)
    return figure
