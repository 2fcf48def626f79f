"""Tables and figure of two samples of items, one in each space.

Labels of the rows: `representation` is 'mapped', the method's own map, or 'search', what a method
reports about itself.
"""

from matplotlib.figure import Figure

from anchor_opt.reports.searches import failures, rates
from common.run.figures import small_multiples
from common.run.records import Record
from common.run.results import frame, pivot, points
from frontier.reports.searches import TITLES, TRUTH, add_references

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


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: a table of each pair of spaces, direction and metric, and the reports."""
    tables = {}
    for (source, target), rows in frame(record.rows).groupby(["source", "target"], sort=False):
        for metric, title in METRICS.items():
            shown = rows.loc[rows["metric"] == metric, "row"]
            table = pivot(shown, lines=LINES, columns="method", digits=4, titles=TITLES)
            tables[f"{title}, {source} -> {target}"] = table
    return tables | rates(record.rows) | failures(record.failed) | {"Notes": NOTES}


def figures(record: Record) -> dict[str, Figure]:
    """`top_1` over the items of each half or the known pairs, whichever has more values.

    A panel for each direction, and for each value of the other number if it has several; a line for
    each method. Where most values are near 1, what is not found is shown on a logarithmic axis.
    None if neither number is varied.
    """
    rows = frame(record.rows)
    over, other = sorted(LINES, key=lambda field: -rows[field].nunique())
    if rows[over].nunique() == 1:
        return {}
    rows["method"] = rows["method"].map(lambda method: TITLES.get(method, method))
    rows = rows[rows["metric"] == "top_1"]
    verb = "finds"
    if logarithmic := rows["mean"].median() > 0.9:
        verb = "does not find"
        rows = rows.assign(mean=1 - rows["mean"])
    panels, references = {}, []
    by_panel = rows.sort_values(other, kind="stable").groupby(
        [other, "source", "target"], sort=False
    )
    for (value, source, target), shown in by_panel:
        of = f", {value:,} {UNITS[other]}" if rows[other].nunique() > 1 else ""
        lines = points(shown, "method", over)
        references.append({TITLES[TRUTH]: lines.pop(TITLES[TRUTH])})
        panels[f"{LINES[over].lower()}{of}\n{source} -> {target}"] = lines
    title = f"New items that the map between two samples {verb}"
    label = "1 - top-1" if logarithmic else "Top-1"
    figure = small_multiples(panels, {}, label, title, TITLES.values())
    add_references(figure, references)
    if logarithmic:
        figure.axes[0].set_yscale("log")
        figure.axes[0].set_ylim(rows["mean"][rows["mean"] > 0].min() / 2, 1.2)
    return {"top_1": figure}
