"""What tables and figures of pairs of embeddings share."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from common.run import figures
from common.run.results import Row

METRICS = ("l2", "p_at_1", "p_at_5", "ot")  # of the poster's Table 1
TITLES = {
    "l2": "Mean l2",
    "gain": "Gain",
    "ot": "Transport",
    "ot_entropic": "Entropic transport",
    "ot_entropic_error": "Marginal error",
    "ot_cost": "Cost",
    "ot_seconds": "Seconds",
    "ot_entropic_seconds": "Seconds, entropic",
}
PAIR = {"source": "Source", "target": "Target"}


def bars(panels: Mapping[str, Mapping[str, Sequence[Row]]], title: str) -> Figure:
    """Bars of each pair, one panel per measure; black marks are the poster's numbers."""
    heights = {
        ylabel: {label: [(row.mean, row.std) for row in rows] for label, rows in methods.items()}
        for ylabel, methods in panels.items()
    }
    rows, *_ = next(iter(panels.values())).values()
    pairs = [f"{row.source}-{row.target}" for row in rows]
    figure = figures.bars(heights, pairs, title)
    figure.set_size_inches(max(6, 0.8 * len(pairs)) * len(panels), 4.6)
    for axis, methods in zip(figure.axes, panels.values(), strict=True):
        width = 0.8 / len(methods)
        for i, rows in enumerate(methods.values()):
            for place, row in enumerate(rows):
                if row.paper_value is not None:
                    x = place + (i + 0.5) * width - 0.4
                    axis.scatter(x, row.paper_value, s=260 * width, c="black", marker="_", zorder=3)
        axis.axhline(0, color="0.3", lw=0.8)
        for label in axis.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
    return figure
