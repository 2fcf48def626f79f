"""Table and figure of what self-learning finds from matchings that are right in part.

Rows are those of single runs. `sweep_value` is the share of the first matching that was made right;
None: an initialization of the search without known pairs, whose name is the label `initialization`.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.evaluation import SUCCESS
from common.run.figures import styles
from common.run.results import Row, averaged, markdown, mean_and_deviation, select

NOTES = (
    "Right at first: fraction of the rows whose first match is right, by the map that is fitted to "
    "the given matching or is the search's own. P@1: the same after self-learning in random "
    "groups of rows and on all rows. Objective: its last value, the mean CSLS of the matches. "
    f"Successes: runs with at least {SUCCESS:g} of the P@1 that is reached from the true pairs."
)
MADE, OWN = "a given share is right", "of the search"
METRICS = ("first_match", "p_at_1", "objective")


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: for each pair of spaces a line for each beginning."""
    del failed  # no method here reports a failure
    shown = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        body, own = [], select(rows, dataset=dataset)
        (of_truth,) = averaged(select(own, metric="p_at_1", sweep_value=_most(own)))
        for start in dict.fromkeys((row.sweep_value, row.get("initialization")) for row in own):
            wanted = dict(zip(("sweep_value", "initialization"), start, strict=True))
            runs = [select(own, metric=metric, **wanted) for metric in METRICS]
            reached = [row.mean for row in runs[1]]
            cells = [mean_and_deviation(row) for of_metric in runs for row in averaged(of_metric)]
            count = sum(x >= SUCCESS * of_truth.mean for x in reached)
            successes = f"{count} of {len(reached)}"
            body.append([_title(*start), *cells, successes])
        header = ("Begins with", "Right at first", "P@1", "Objective", "Successes")
        shown[dataset] = markdown(header, body)
    return shown


def _title(right: float | None, initialization: str) -> str:
    return f"{right:.0%} right" if right is not None else f"search: {initialization}"


def _most(rows: Sequence[Row]) -> float:
    """The largest share that was made right."""
    return max(row.sweep_value for row in rows if row.sweep_value is not None)


def figure(rows: Sequence[Row]) -> Figure:
    """P@1 after self-learning over the fraction that is right at first; one mark is one run."""
    pairs = styles(dict.fromkeys(row.dataset for row in rows))
    figure = Figure(figsize=(4 * len(pairs), 3.8), layout="constrained")
    axes = figure.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    for axis, (dataset, look) in zip(axes, pairs.items(), strict=True):
        for of_search, label in ((False, MADE), (True, OWN)):
            runs = [
                [row.mean for row in of_metric if (row.sweep_value is None) == of_search]
                for of_metric in (select(rows, dataset=dataset, metric=m) for m in METRICS[:2])
            ]
            marks = {"marker": "x" if of_search else "o", "s": 46, "color": look.colour}
            axis.scatter(*runs, label=label, **marks)
        axis.set_xscale("symlog", linthresh=1e-3)
        ticks = (0, 0.001, 0.01, 0.1, 1)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set(title=dataset, xlim=(-2e-4, 1.5), ylim=(-0.03, 1.03))
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, loc="upper left")
    axes[0].set_ylabel("P@1 after self-learning")
    figure.supxlabel("fraction of rows whose first match is right")
    return figure
