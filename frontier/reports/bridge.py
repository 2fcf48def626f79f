"""Tables of several spaces that are matched at once.

Labels of the rows: `representation` is 'mapped' (the method's own map), 'search' (the report of a
search) or 'matches'. The methods are `direct`, one search between the two spaces, and `bridge`, the
same unless it has failed, and otherwise a repeated search or the one from the composed matches, and
`hub`, maps of all spaces into common coordinates, fitted to the matches of all searches that have
not failed.
"""

import dataclasses

from anchor_opt.reports.searches import failures, rates
from common.run.records import Record
from common.run.results import pivot, select

TITLES = {"round_trip": "Round trip"}
NOTES = (
    "P@1 of the method's own map (CSLS) without known pairs; all items are shared and both spaces "
    "are in unknown order. Direct: one search between the two spaces. Bridge: the same unless it "
    "has failed, and otherwise one with other random draws, if no path of searches that have not "
    "failed connects the two spaces, or one from the matches composed along the most probable "
    "path. Hub: one map of each space into common coordinates, fitted to the matches of all "
    "searches that have not failed; pairs of spaces that these do not connect are as in Bridge. "
    "Round trip: the fraction of the matches of a search between the two spaces that this path "
    "gives as well; it needs no truth."
)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: P@1 of the methods, the round trip, and the reports of the searches."""
    rows = record.rows
    table = pivot(
        [
            dataclasses.replace(row, labels={"column": TITLES.get(row.metric, row.method)})
            for row in (*select(rows, metric="p_at_1"), *select(rows, metric="round_trip"))
        ],
        lines={"dataset": "Spaces"},
        columns="column",
        titles={"direct": "Direct", "bridge": "Bridge", "hub": "Hub"},
    )
    reports = rates(select(rows, method="bridge"))
    return {"P@1 without known pairs": table} | reports | failures(record.failed) | {"Notes": NOTES}
