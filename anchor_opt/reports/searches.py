"""Titles of the methods, and tables of what their searches report about themselves."""

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anchor_opt.evaluation import REPORTS
from common.run.results import Row, frame, markdown

if TYPE_CHECKING:
    import pandas as pd

# In the order of their styles (`common.run.figures.styles`), which all experiments share.
METHOD_TITLES = {
    "gt": "GT",
    "seed": "Seed",
    "algorithm1_printed": "Algorithm 1 without line 10",
    "algorithm1": "Algorithm 1, small start",
    "bootstrap": "Self-learning (ours)",
    "lstsq_truth": "Least squares on the truth",
    "mini_vec2vec": "mini-vec2vec",
    "rosetta": "Unpaired Rosetta",
    "disjoint": "Disjoint samples",
    "goat": "GOAT (graph matching by transport)",
    "orthogonal": "Orthogonal map",
    "least_squares": "Least-squares map",
    "algorithm1_exponential": "Algorithm 1, exponential map",
    "algorithm1_normalised": "Algorithm 1, x / |x|",
}
PRINTED = "Algorithm 1 as printed"  # line 10 included, by which anchors become items
# The methods beside which the paper's row of its method stands.
PUBLISHED_METHOD = ("algorithm1_printed", "algorithm1", "bootstrap")


def titled(rows: Sequence[Row]) -> list[Row]:
    """The rows with the title of their method as label `title`, those as printed before others.

    Without line 10, the anchors of `algorithm1_printed` are continuous.
    """
    methods = list(dict.fromkeys(row.method for row in rows))
    ordered = sorted(rows, key=lambda row: (methods.index(row.method), not is_printed(row)))
    titles = [
        PRINTED if is_printed(row) else METHOD_TITLES.get(row.method, row.method) for row in ordered
    ]
    return [
        dataclasses.replace(row, labels=row.labels | {"title": title})
        for row, title in zip(ordered, titles, strict=True)
    ]


def is_printed(row: Row) -> bool:
    """Whether a row is of Algorithm 1 with each of its lines."""
    return (row.method, row.anchors) == ("algorithm1_printed", "discrete")


def failures(failed: Sequence[str]) -> dict[str, str]:
    """Title -> text that lists the failed tasks; random seeds are counted, not listed."""
    counts = Counter(re.sub(r"-seed\d+$", "", task) for task in failed)
    runs = [f"{task} ({n} random run{'s' if n > 1 else ''})" for task, n in counts.items()]
    return {"Searches that report a failure": f"{', '.join(runs)}."} if runs else {}


def rates(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: how many searches report about themselves what is not true."""
    reports = counted(rows)
    if reports.empty:
        return {}
    reports.loc["all"] = reports.sum()
    body = [[spaces, *(f"{x:.0f}" for x in line)] for spaces, *line in reports.itertuples()]
    table = markdown(("Spaces", "Searches", "False success", "False failure"), body)
    return {"Searches that report wrongly": table}


def counted(rows: Sequence[Row]) -> "pd.DataFrame":
    """Dataset -> number of `searches`, and of false reports in the columns of `REPORTS`."""
    reports = frame(row for row in rows if row.metric in REPORTS)
    if reports.empty:
        return reports
    reports["count"] = reports["mean"] * reports["num_runs"]
    columns = reports.pivot_table(["num_runs", "count"], "dataset", "metric", "sum", sort=False)
    counts = columns["count"][list(REPORTS)]
    counts.insert(0, "searches", columns["num_runs", REPORTS[0]])
    return counts
