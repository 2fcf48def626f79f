"""Titles of the methods, and tables of what their searches report about themselves."""

import re
from collections import Counter
from collections.abc import Sequence

from anchor_opt.evaluation import REPORTS
from common.run.results import Row, markdown, select

# In the order of their styles (`common.run.figures.styles`), which all experiments share.
METHOD_TITLES = {
    "gt": "GT",
    "seed": "Seed",
    "algorithm1_printed": "Algorithm 1 as printed",
    "algorithm1": "Algorithm 1, small start",
    "bootstrap": "Bootstrap",
    "lstsq_truth": "Least squares on the truth",
    "mini_vec2vec": "mini-vec2vec",
    "rosetta": "Unpaired Rosetta",
    "disjoint": "Disjoint samples",
    "goat": "GOAT (graph matching by transport)",
    "orthogonal": "Orthogonal map",
    "least_squares": "Least-squares map",
}
# The methods beside which the paper's row of its method stands.
PUBLISHED_METHOD = ("algorithm1_printed", "algorithm1", "bootstrap")


def failures(failed: Sequence[str]) -> dict[str, str]:
    """Title -> text that lists the failed tasks; random seeds are counted, not listed."""
    counts = Counter(re.sub(r"-seed\d+$", "", task) for task in failed)
    runs = [f"{task} ({n} random run{'s' if n > 1 else ''})" for task, n in counts.items()]
    return {"Searches that report a failure": f"{', '.join(runs)}."} if runs else {}


def rates(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: how many searches report about themselves what is not true."""
    body = []
    for dataset in [*dict.fromkeys(row.dataset for row in rows), None]:
        wanted = {} if dataset is None else {"dataset": dataset}
        counts = [
            sum(row.mean * row.num_runs for row in select(rows, metric=metric, **wanted))
            for metric in REPORTS
        ]
        searches = sum(row.num_runs for row in select(rows, metric=REPORTS[0], **wanted))
        if searches:
            body.append([dataset or "all", *(f"{x:.0f}" for x in (searches, *counts))])
    table = markdown(("Spaces", "Searches", "False success", "False failure"), body)
    return {"Searches that report wrongly": table} if body else {}
