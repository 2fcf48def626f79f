"""Tables and the figure of `correlate`.

Labels of its correlations: `low` and `high`, the ends of the 95% interval.
"""

import pandas as pd
from matplotlib.figure import Figure

from common.metrics import spearman
from common.run.figures import legend_below, styles
from common.run.records import Record
from common.run.results import frame, markdown, mean_and_deviation, pivot, plus_minus
from embed_match.reports.shared import PAIR, classification, trained_on

GROUPS = ("both trained here", "one of them pretrained", "both pretrained")
MIN_PAIRS = 5  # of a group whose correlation is stated


def _pairs(record: Record) -> pd.DataFrame:
    """The rows of distances, with the group of each pair and its difference in each task."""
    rows = frame(record.rows)
    accuracies = rows[rows.metric == "accuracy"].pivot(
        index="method", columns="dataset", values="mean"
    )
    pairs = rows[rows.metric == "l2"].reset_index(drop=True)
    pretrained = ~pairs[[*PAIR]].isin([*record.config["models"]])
    pairs["group"] = pretrained.sum(axis=1).map(dict(enumerate(GROUPS)))
    for task, accuracy in accuracies.items():
        pairs[task] = (pairs.source.map(accuracy) - pairs.target.map(accuracy)).abs()
    return pairs


def _within(pairs: pd.DataFrame, task: str) -> dict[str, str]:
    """Group of `MIN_PAIRS` or more -> the correlation of the means within it."""
    return {
        str(group): plus_minus(spearman(*part[["mean", task]].to_numpy(float).T), None, 2)
        for group, part in pairs.groupby("group", sort=False)
        if len(part) >= MIN_PAIRS
    }


def tables(record: Record) -> dict[str, str]:
    """Title -> table."""
    rows, pairs = frame(record.rows), _pairs(record)
    correlations, within = [], {}
    for row in rows[rows.metric == "spearman"].row:
        interval = " to ".join(plus_minus(row.get(end), None, 2) for end in ("low", "high"))
        within = _within(pairs, row.dataset)
        line = [row.dataset, str(len(pairs)), mean_and_deviation(row, 2), interval]
        correlations.append([*line, *within.values()])
    tasks = [task for task, *_ in correlations]
    differences = [
        [x.source, x.target, mean_and_deviation(x.row)]
        + [plus_minus(getattr(x, task), None) for task in tasks]
        for x in pairs.itertuples()
    ]
    header = (*PAIR.values(), "Mean l2", *(f"Difference, {task}" for task in tasks))
    columns = ("Task", "Pairs", "Spearman", "95% interval", *(f"Within: {x}" for x in within))
    return {
        "Similarity and downstream performance (Figure 5)": (
            f"{trained_on(record.config)} Spearman correlation, over pairs of embeddings, of the "
            "mean l2 distance after rotation with the difference in accuracy, in each random run, "
            "and the 95% bootstrap interval over embeddings of that of the means. Pairs form "
            "clusters, by how many of the two are pretrained; within a cluster the correlation is "
            "that of the means. The poster shows a scatter plot without a number and calls it "
            "inconclusive.\n\n" + markdown(columns, correlations)
        ),
        "Accuracy": f"{classification(rows)}\n\n"
        + pivot(rows[rows.metric == "accuracy"], lines={"method": "Embedding"}, columns="dataset"),
        "Pairs": markdown(header, differences),
    }


def figures(record: Record) -> dict[str, Figure]:
    """Difference in accuracy over distance, a point per pair; correlations within groups."""
    pairs = _pairs(record)
    tasks = [row.dataset for row in record.rows if row.metric == "spearman"]
    figure = Figure(figsize=(6.5 * len(tasks), 5), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
    for axis, task in zip(axes, tasks, strict=True):
        within = _within(pairs, task)
        for group, look in styles(GROUPS).items():
            part = pairs[pairs.group == group]
            marks = {"s": 30, "color": look.colour, "marker": look.marker, "label": group}
            axis.scatter(part["mean"], part[task], **marks)
        stated = [f"{value} ({group})" for group, value in within.items()]
        axis.set_title(f"{task}: Spearman\n{', '.join(stated)}", fontsize="medium")
        axis.set(xlabel="mean l2 distance after rotation", ylabel="difference in accuracy")
        axis.spines[["top", "right"]].set_visible(False)
    legend_below(figure, 3)
    figure.suptitle("Pairs of embeddings: their distance and their difference in accuracy")
    return {"correlate": figure}
