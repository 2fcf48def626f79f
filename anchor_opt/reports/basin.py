"""Table and figure of what self-learning finds from matchings that are right in part.

Rows are those of single runs. `sweep_value` is the share of the first matching that was made right;
None: an initialization of the search without known pairs, whose name is the label `initialization`.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.evaluation import SUCCESS
from common.run.figures import legend_below, styles
from common.run.results import Row, markdown, plus_minus, select

NOTES = (
    "Right at first: fraction of the rows whose first match is right, by the map that is fitted to "
    "the given matching or is the search's own. P@1: the same after self-learning in random "
    "groups of rows and on all rows. Objective: its last value, the mean CSLS of the matches. "
    f"Successes: runs with at least {SUCCESS:g} of the P@1 that is reached from the true pairs."
)
METRICS = ("first_match", "p_at_1", "objective")


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: for each pair of spaces a line for each beginning."""
    del failed  # no method here reports a failure
    shown = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        body, own = [], select(rows, dataset=dataset)
        least = SUCCESS * _mean(select(own, metric="p_at_1", sweep_value=_most(own)))
        for start in dict.fromkeys((row.sweep_value, row.get("initialization")) for row in own):
            wanted = dict(zip(("sweep_value", "initialization"), start, strict=True))
            runs = [select(own, metric=metric, **wanted) for metric in METRICS]
            reached = [row.mean for row in runs[1]]
            cells = [_mean_and_deviation(of_metric) for of_metric in runs]
            successes = f"{sum(x >= least for x in reached)} of {len(reached)}"
            body.append([_title(*start), *cells, successes])
        header = ("Begins with", "Right at first", "P@1", "Objective", "Successes")
        shown[dataset] = markdown(header, body)
    return shown


def _title(right: float | None, initialization: str) -> str:
    return f"{right:.0%} right" if right is not None else f"search: {initialization}"


def _most(rows: Sequence[Row]) -> float:
    """The largest share that was made right."""
    return max(row.sweep_value for row in rows if row.sweep_value is not None)


def _mean(rows: Sequence[Row]) -> float:
    return float(np.mean([row.mean for row in rows]))


def _mean_and_deviation(rows: Sequence[Row]) -> str:
    values = [row.mean for row in rows]
    return plus_minus(_mean(rows), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def figure(rows: Sequence[Row]) -> Figure:
    """P@1 after self-learning over the fraction that is right at first; one mark is one run."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axis = figure.subplots()
    for dataset, look in styles(dict.fromkeys(row.dataset for row in rows)).items():
        for begins, face in ((False, look.colour), (True, "none")):
            runs = [
                [
                    r.mean
                    for r in select(rows, dataset=dataset, metric=metric)
                    if (r.sweep_value is None) == begins
                ]
                for metric in METRICS[:2]
            ]
            label = f"{dataset}{', the search' if begins else ''}"
            marks = {"marker": look.marker, "s": 46, "edgecolors": look.colour, "facecolors": face}
            axis.scatter(*runs, label=label, **marks)
    axis.set_xscale("symlog", linthresh=1e-3)
    ticks = (0, 0.001, 0.01, 0.1, 1)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set(
        xlabel="fraction of rows whose first match is right",
        ylabel="P@1 after self-learning",
        xlim=(-2e-4, 1.3),
    )
    axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle("How right the first matching must be; filled: made so, open: the search's own")
    legend_below(figure, 4)
    return figure
