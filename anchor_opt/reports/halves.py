"""Tables of two samples without a common item.

Labels of the rows: `representation` is 'mapped', the method's own map, or 'search', what a method
reports about itself; `optimised` is the target of the experiment.
"""

from collections.abc import Sequence

from anchor_opt.reports.searches import failures, rates
from common.run.results import Row, pivot, select

TITLES = {"foscttm": "FOSCTTM", "top_1": "Top-1"}
NOTES = (
    "FOSCTTM: the fraction of wrong items that are closer than the true one (0 best, .5 chance). "
    "Top-1: the true item is the nearest by cosine. Both are of a third set, whose vectors are "
    "mapped into the common coordinates of the method. orthogonal_truth: the orthogonal map fitted "
    "to the true pairs of all items of both halves, which no other method sees. A search has "
    "succeeded in truth if its top-1 is at least half of that of orthogonal_truth."
)


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: a table of each pair of spaces and direction, and the reports."""
    tables = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        names = dataset.split(" -> ")
        for source, target in (names, names[::-1]):
            shown = select(rows, dataset=dataset, source=source, target=target)
            title = f"{source} -> {target}, {shown[0].num_items:,} items in each half"
            shown = [row for row in shown if row.metric in TITLES]
            tables[title] = pivot(shown, lines={"method": "Method"}, digits=4, titles=TITLES)
    return tables | rates(rows) | failures(failed)
