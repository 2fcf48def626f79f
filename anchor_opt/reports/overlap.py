"""Tables and figures of spaces that share a part of their items.

Labels of the rows: `representation` is 'relative', 'mapped' (the method's own map) or 'search' (the
report of a search); `optimised` is the space whose anchors are sought; `sweep_over` is 'shared',
the fraction of the items that both spaces have, 'known pairs', their number, or 'noise', that of a
noisy copy of one space.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score, roc_curve

from anchor_opt.evaluation import SUCCESS
from anchor_opt.methods import METHODS
from anchor_opt.methods.agreement import success_probability
from anchor_opt.reports.searches import METHOD_TITLES, failures, rates
from common.run.figures import COLOURS, small_multiples
from common.run.results import Row, pivot, select

METRICS = ("gain", "relative_p_at_1")  # of the detector's figure
NOTES = (
    "MRR of the shared items, whose partners are sought among all rows of the target. lstsq_truth: "
    "least squares on the true pairs. A search has succeeded in truth if by its own map it finds "
    "at least half as many of the shared items (P@1 by CSLS) as the orthogonal map of all true "
    "pairs does. False success: a search that has not succeeded and does not say so. False "
    "failure: one that has succeeded and is reported as failed."
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
    rows: Sequence[Row], searches: Sequence[Row], k: int, min_gain: float
) -> dict[str, Figure]:
    """`mrr`, and `detector` if a search has reported about itself.

    Args:
      rows: averages over random runs.
      searches: the rows of each random run.
      k: length of the lists of the MRR.
      min_gain: threshold of the search.
    """
    figures = {"mrr": curve_figure(rows, k)}
    if select(searches, metric="gain"):
        figures["detector"] = detector_figure(searches, min_gain)
    return figures


def curve_figure(rows: Sequence[Row], k: int) -> Figure:
    """MRR of each method over the shared fraction or the noise, with a panel for each pair."""
    panels: dict[str, dict[str, list]] = {}
    for row in select(rows, metric="mrr"):
        panel = panels.setdefault(f"{row.sweep_over}\n{row.dataset}", {})
        points = panel.setdefault(METHOD_TITLES.get(row.method, row.method), [])
        points.append((row.sweep_value, row.mean, row.std))
    return small_multiples(panels, {}, f"MRR (K = {k})", "")


def detector_figure(searches: Sequence[Row], min_gain: float) -> Figure:
    """Each search: what it finds, relative to the truth, over its gain; and the ROC of the gain.

    Args:
      searches: rows of `gain` and `relative_p_at_1`, each of one search.
      min_gain: threshold of the search.
    """
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    axis, roc = figure.subplots(1, 2, width_ratios=(3, 2))
    for colour, dataset in zip(
        COLOURS, dict.fromkeys(row.dataset for row in searches), strict=False
    ):
        gain, reached = (_values(select(searches, dataset=dataset), metric) for metric in METRICS)
        axis.scatter(gain, reached, s=18, color=colour, label=dataset, alpha=0.8, linewidths=0)
    axis.axvline(min_gain, color="0.4", ls="--", lw=1, label="threshold of the search")
    x = np.linspace(0, 1, 200)
    axis.plot(x, success_probability(x, min_gain), color="0.7", lw=1, label="its probability")
    axis.axhline(SUCCESS, color="0.4", ls=":", lw=1, label="success in truth")
    axis.set(
        xlabel="gain: from wrong pairs (0) to full agreement (1)",
        ylabel="P@1, relative to the true orthogonal map",
    )
    gains, reached = (_values(searches, metric) for metric in METRICS)
    succeeded = reached >= SUCCESS
    title = f"{succeeded.sum()} of {len(succeeded)} searches succeed"
    if 0 < succeeded.sum() < len(succeeded):
        false, true, _ = roc_curve(succeeded, gains)
        roc.plot(false, true, color=COLOURS[0], drawstyle="steps-post")
        title += f"\narea under the curve {roc_auc_score(succeeded, gains):.3f}"
    roc.set(
        xlabel="failed searches with a higher gain",
        ylabel="successful searches",
        title=title,
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
    )
    for panel in (axis, roc):
        panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _values(rows: Sequence[Row], metric: str) -> Float[np.ndarray, " n"]:
    return np.array([row.mean for row in select(rows, metric=metric)])
