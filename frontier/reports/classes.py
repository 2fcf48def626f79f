"""Tables and the figure of classes of images that are matched with their names."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, failures, rates
from common.run.figures import small_multiples
from common.run.results import Row, pivot, select

TITLES = METHOD_TITLES | {
    "procrustes": "Orthogonal map of the known pairs",
    "spectral": "Spectral embedding and CCA",
}
NOTES = (
    "Classes that are in no known pair, whose partners are sought among all classes of the other "
    "space, in the coordinates of each method. P@1: by CSLS. MRR: by cosine, in lists of ten. "
    "Spectral embedding and CCA: the first two of the three steps of SUE."
)


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: a line for each number of known pairs, a column for each method."""
    tables = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for metric, title in (("p_at_1", "P@1"), ("mrr", "MRR")):
            shown = select(rows, dataset=dataset, metric=metric)
            table = pivot(
                shown, lines={"num_pairs": "Known pairs"}, columns="method", titles=TITLES
            )
            tables[f"{title}, {dataset}"] = table
    return tables | rates(rows) | failures(failed)


def figure(rows: Sequence[Row]) -> Figure:
    """MRR of each method over the number of known pairs, with a panel for each pair of spaces."""
    panels: dict[str, dict[str, list]] = {}
    for row in select(rows, metric="mrr"):
        panel = panels.setdefault(f"known pairs\n{row.dataset}".replace("classes_", ""), {})
        title = TITLES.get(row.method, row.method)
        panel.setdefault(title, []).append((row.num_pairs, row.mean, row.std))
    title = f"{rows[0].num_items:,} classes of ImageNet in unknown order"
    return small_multiples(panels, {}, "MRR (K = 10)", title, TITLES.values())
