"""Tables and figure of two samples of almost no common item.

Labels of the rows: `representation` is 'mapped', the method's own map, or 'search', what a method
reports about itself.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, failures, rates
from common.run.figures import small_multiples
from common.run.results import Row, pivot, select

TITLES = METHOD_TITLES | {
    "procrustes": "Orthogonal map of the known pairs",
    "orthogonal_truth": "Orthogonal map of the truth",
}
METRICS = {"top_1": "Top-1", "foscttm": "FOSCTTM"}
LINES = {"num_items": "Items of each half", "num_pairs": "Known pairs"}
NOTES = (
    "FOSCTTM: the fraction of wrong items that are closer than the true one (0 best, .5 chance). "
    "Top-1: the true item is the nearest by cosine. Both are of a third set, whose vectors are "
    "mapped into the common coordinates of the method. Known pairs are items that both halves "
    "have, of which the method is told. Orthogonal map of the truth: fitted to the true pairs of "
    "all items of both halves, which no method sees. A search has succeeded in truth if its top-1 "
    "is at least half of that of this map."
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


def _directions(rows: Sequence[Row]) -> list[tuple[str, str]]:
    names = [(row.source, row.target) for row in rows if row.source and row.target]
    return list(dict.fromkeys(names))


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """`top_1` over the items of each half, or over the known pairs if these alone are varied.

    A panel for each direction, a line for each method, and for each number of known pairs if both
    numbers are varied. None if neither is.
    """
    varied = [field for field in LINES if len({getattr(row, field) for row in rows}) > 1]
    if not varied:
        return {}
    over, fewest = varied[0], min(row.num_pairs or 0 for row in rows)
    panels: dict[str, dict[str, list]] = {}
    for source, target in _directions(rows):
        panel = panels.setdefault(f"{LINES[over].lower()}\n{source} -> {target}", {})
        for row in select(rows, metric="top_1", source=source, target=target):
            title = TITLES.get(row.method, row.method)
            if len(varied) > 1 and row.method != "orthogonal_truth":
                title += f", {row.num_pairs} pairs"
            elif len(varied) > 1 and row.num_pairs != fewest:
                continue  # the map of the truth hardly depends on it
            panel.setdefault(title, []).append((getattr(row, over), row.mean, row.std))
    title = "Maps between samples of almost no common item"
    return {"top_1": small_multiples(panels, {}, "Top-1", title, TITLES.values())}
