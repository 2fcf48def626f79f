"""Tables and figure of two samples of items, one in each space.

Labels of the rows: `representation` is 'mapped', the method's own map, or 'search', what a method
reports about itself.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, failures, rates
from common.run.figures import small_multiples
from common.run.results import Row, pivot, select

TRUTH = "orthogonal_truth"  # the reference's name in the rows
TITLES = METHOD_TITLES | {
    "procrustes": "Orthogonal map of the known pairs",
    TRUTH: "Orthogonal map of the truth",
}
METRICS = {"top_1": "Top-1", "foscttm": "FOSCTTM"}
LINES = {"num_items": "Items of each half", "num_pairs": "Known pairs"}
UNITS = {"num_items": "items", "num_pairs": "pairs"}
NOTES = (
    "FOSCTTM: the fraction of wrong items that are closer than the true one (0 best, .5 chance). "
    "Top-1: the true item is the nearest by cosine. Both are of a third set, whose vectors are "
    "mapped into the common coordinates of the method. Known pairs are items that both halves "
    "have, of which the method is told; shared is the fraction of items that both have. Orthogonal "
    "map of the truth: fitted to the true pairs of all items of both halves, which no method sees. "
    "A search has succeeded in truth if its top-1 is at least half of that of this map."
)


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: a table of each pair of spaces, direction and metric, and the reports."""
    tables = {}
    for source, target in _directions(rows):
        for metric, title in METRICS.items():
            shown = select(rows, metric=metric, source=source, target=target)
            table = pivot(shown, lines=LINES, columns="method", digits=4, titles=TITLES)
            tables[f"{title}, {source} -> {target}"] = table
    return tables | rates(rows) | failures(failed)


def _directions(rows: Sequence[Row]) -> list[tuple[str | None, str | None]]:
    return list(dict.fromkeys((row.source, row.target) for row in rows))


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """`top_1` over the items of each half or the known pairs, whichever has more values.

    A panel for each direction, and for each value of the other number if it has several; a line for
    each method. None if neither number is varied.
    """
    values = {field: sorted({getattr(row, field) for row in rows}) for field in LINES}
    over, other = sorted(LINES, key=lambda field: -len(values[field]))
    if len(values[over]) == 1:
        return {}
    panels: dict[str, dict[str, list]] = {}
    for value in values[other]:
        of = f", {value:,} {UNITS[other]}" if len(values[other]) > 1 else ""
        for source, target in _directions(rows):
            panel = panels.setdefault(f"{LINES[over].lower()}{of}\n{source} -> {target}", {})
            for row in select(rows, metric="top_1", source=source, target=target):
                if getattr(row, other) == value:
                    point = (getattr(row, over), row.mean, row.std)
                    panel.setdefault(TITLES.get(row.method, row.method), []).append(point)
    title = "Maps between two samples of items"
    return {"top_1": small_multiples(panels, {}, "Top-1", title, TITLES.values())}
