"""Tables and the figure of `correlate`.

Labels of its correlations: `low` and `high`, the ends of the 95% interval.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from common.run.figures import legend_below, styles
from common.run.results import Row, markdown, mean_and_deviation, pivot, plus_minus, select
from embed_match.reports.pairs import PAIR
from embed_match.reports.texts import classification

GROUPS = ("both trained here", "one of them pretrained", "both pretrained")


def tables(rows: Sequence[Row], text: str) -> dict[str, str]:
    """Tables of the experiment by title; `text` is the sentence of `texts.trained_on`."""
    accuracy = {(row.dataset, row.method): row for row in select(rows, metric="accuracy")}
    tasks = list(dict.fromkeys(task for task, _ in accuracy))
    l2 = select(rows, metric="l2")
    correlations = [
        [row.dataset, str(len(l2)), mean_and_deviation(row, 2), _interval(row)]
        for row in select(rows, metric="spearman")
    ]
    pairs = []
    for row in l2:
        members = [(accuracy[task, row.source], accuracy[task, row.target]) for task in tasks]
        differences = [plus_minus(abs(a.mean - b.mean), None) for a, b in members]
        pairs.append([row.source, row.target, mean_and_deviation(row), *differences])
    header = (*PAIR.values(), "Mean l2", *(f"Difference, {task}" for task in tasks))
    return {
        "Similarity and downstream performance (Figure 5)": (
            f"{text} Spearman correlation, over pairs of embeddings, of the mean l2 distance after "
            "rotation with the difference in accuracy, in each random run, and the 95% bootstrap "
            "interval over embeddings of that of the means. The poster shows a scatter plot "
            "without a number and calls it inconclusive.\n\n"
            + markdown(("Task", "Pairs", "Spearman", "95% interval"), correlations)
        ),
        "Accuracy": f"{classification(rows)}\n\n"
        + pivot(accuracy.values(), lines={"method": "Embedding"}, columns="dataset"),
        "Pairs": markdown(header, pairs),
    }


def figures(rows: Sequence[Row], trained: Sequence[str]) -> dict[str, Figure]:
    """Difference in accuracy over distance, a point per pair; `trained` embeddings and others."""
    correlations = select(rows, metric="spearman")
    figure = Figure(figsize=(6.5 * len(correlations), 5), layout="constrained")
    axes = figure.subplots(1, len(correlations), squeeze=False, sharey=True)[0]
    for axis, row in zip(axes, correlations, strict=True):
        of_task = select(rows, dataset=row.dataset, metric="accuracy")
        accuracy = {score.method: score.mean for score in of_task}
        points = [[], [], []]
        for pair in select(rows, metric="l2"):
            pretrained = sum(name not in trained for name in (pair.source, pair.target))
            difference = abs(accuracy[pair.source] - accuracy[pair.target])
            points[pretrained].append((pair.mean, difference))
        for group, (label, look) in zip(points, styles(GROUPS).items(), strict=True):
            marks = {"s": 30, "color": look.colour, "marker": look.marker, "label": label}
            axis.scatter(*np.reshape(group, (-1, 2)).T, **marks)
        axis.set(xlabel="mean l2 distance after rotation", ylabel="difference in accuracy")
        correlation = plus_minus(row.mean, None, 2)
        axis.set_title(f"{row.dataset}: Spearman {correlation} (95% interval {_interval(row)})")
        axis.spines[["top", "right"]].set_visible(False)
    legend_below(figure, 3)
    figure.suptitle("Pairs of embeddings: similarity and downstream performance")
    return {"correlate": figure}


def _interval(row: Row) -> str:
    return " to ".join(plus_minus(row.get(end), None, 2) for end in ("low", "high"))
