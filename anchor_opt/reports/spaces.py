"""Table and figure of what pairs of spaces have in common.

Labels of the rows: `pair` is the number of the pair in the table and the figure; `source_dim`,
dimension of the source; `shared`, items that both spaces have.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES
from common.run.figures import BELOW, styles
from common.run.results import Row, markdown, mean_and_deviation, select

COLUMNS = {  # (method, metric) -> title of the column
    ("truth", "linear_cka"): "CKA",
    ("truth", "calibrated_linear_cka"): "calibrated",
    ("truth", "mutual_neighbours"): "Neighbours",
    ("truth", "calibrated_mutual_neighbours"): "calibrated",
    ("orthogonal", "p_at_1"): "Orthogonal: P@1",
    ("orthogonal", "mrr"): "MRR",
    ("least_squares", "p_at_1"): "Least squares: P@1",
    ("least_squares", "mrr"): "MRR",
    ("gt", "jaccard"): "True anchors: Jaccard",
    ("gt", "mrr"): "MRR",
}
NOTES = (
    "Unit, centred, unit vectors. CKA: linear centred kernel alignment of all true pairs. "
    "Neighbours: the fraction of the {k} nearest neighbours of an item that it has in both spaces. "
    "calibrated: zero for rows in a random order, at the level .05 (Gröger et al. 2026). "
    "Orthogonal, Least squares: a linear map from source to target, fitted on a random half of the "
    "true pairs and measured on the other half, whose partners are sought among all items by "
    "cosine. True anchors: relative representations by {num_anchors} random items. MRR and Jaccard "
    "of lists of {k}; mean and standard deviation over random seeds. minilm and minilm_input are "
    "two layers of one model."
)


def table(rows: Sequence[Row]) -> str:
    """A Markdown table with a line for each pair of spaces."""
    body = []
    for number in dict.fromkeys(row.get("pair") for row in rows):
        of_pair = select(rows, pair=number)
        first = of_pair[0]
        dims = f"{first.get('source_dim')} -> {first.dim}"
        cells = [str(number), first.source, first.target, dims, f"{first.get('shared'):,}"]
        for method, metric in COLUMNS:
            (row,) = select(of_pair, method=method, metric=metric)
            cells.append(mean_and_deviation(row))
        body.append([*cells[:5], f"{first.num_items:,}", *cells[5:]])
    header = ("No.", "Source", "Target", "Dimensions", "Shared", "Measured", *COLUMNS.values())
    return markdown(header, body)


def figure(rows: Sequence[Row]) -> Figure:
    """MRR of the linear maps and of true anchors over the CKA of each pair."""
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axis = figure.subplots()
    cka = {row.get("pair"): row for row in select(rows, metric="linear_cka")}
    methods = {
        "gt": "relative representations, true anchors",
        "orthogonal": "orthogonal map",
        "least_squares": "least-squares map",
    }
    looks = styles(METHOD_TITLES)
    for method, label in methods.items():
        points = select(rows, method=method, metric="mrr")
        x = [cka[row.get("pair")].mean for row in points]
        y, error = [row.mean for row in points], [row.std for row in points]
        style = {"color": looks[method].colour, "marker": looks[method].marker, "ms": 6}
        axis.errorbar(x, y, error, ls="", label=label, **style)
    figure.legend(ncols=3, **BELOW)
    names = []
    for number, row in cka.items():
        height = max(row.mean for row in select(rows, pair=number, metric="mrr"))
        offset = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        axis.annotate(str(number), (row.mean, height), fontsize=8, **offset)
        names += axis.plot([], [], " ", label=f"{number}  {row.source} -> {row.target}")
    axis.set(xlabel="linear CKA of the true pairs", ylabel="MRR", ylim=(0, 1.08))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(handles=names, loc="outside right center", frameon=False, fontsize=8)
    figure.suptitle("How well items find each other, given the truth")
    return figure
