"""Table and figure of what pairs of spaces have in common.

Labels of the rows: `pair` is the number of the pair in the table and the figure; `source_dim`,
dimension of the source; `shared`, items that both spaces have.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES
from common.run.figures import BELOW, styles
from common.run.records import Record
from common.run.results import Row, markdown, mean_and_deviation, plus_minus, select

SEARCHES = ("retrieval", "phase", "overlap", "vision")  # experiments that search for anchors
NUM_PAIRS = (15, 5, 0)
SIMILARITIES = {
    "linear_cka": "CKA",
    "calibrated_linear_cka": "calibrated",
    "mutual_neighbours": "Neighbours",
    "calibrated_mutual_neighbours": "calibrated",
}
COLUMNS = {  # (method, metric) -> title of the column
    **{("truth", metric): title for metric, title in SIMILARITIES.items()},
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


def foretold(records: Iterable[Record]) -> str:
    """Which similarity of two spaces tells whether the bootstrap finds the pairs of their items.

    The similarities are those of the record of this experiment; the MRR is the mean of those in all
    records, with these numbers of known pairs. Pairs are found if it is more than half of that of
    the least-squares map on true pairs. Told apart: the probability that of two pairs of spaces, of
    which one is found, this one is more similar (the area under the ROC curve).
    """
    from sklearn.metrics import roc_auc_score  # a second, which a run does not need

    records = list(records)
    spaces = [row for record in records for row in select(record.rows, experiment="spaces")]
    searches = [row for r in records for row in r.rows if _is_search(row)]
    body, values, found = [], [], []
    for dataset in dict.fromkeys(row.dataset for row in spaces):
        of_pair = select(spaces, dataset=dataset)
        similar = [select(of_pair, metric=metric)[0].mean for metric in SIMILARITIES]
        (best,) = select(of_pair, method="least_squares", metric="mrr")
        cells, outcomes = [], []
        for num_pairs in NUM_PAIRS:
            runs = [r.mean for r in select(searches, dataset=dataset, num_pairs=num_pairs)]
            cells.append(_number(np.mean(runs)) if runs else "-")
            outcomes.append(np.mean(runs) > best.mean / 2 if runs else None)
        body.append([dataset, *map(_number, [*similar, best.mean]), *cells])
        values.append(similar)
        found.append(outcomes)
    for num_pairs, outcomes in zip(NUM_PAIRS, zip(*found, strict=True), strict=True):
        known = [i for i, outcome in enumerate(outcomes) if outcome is not None]
        y = [outcomes[i] for i in known]
        if len(set(y)) == 2:
            scores = [
                roc_auc_score(y, [values[i][j] for i in known]) for j in range(len(values[0]))
            ]
            title = f"told apart with {num_pairs} pairs ({sum(y)} of {len(y)} found)"
            body.append([title, *map(_number, scores), *["" for _ in (0, *NUM_PAIRS)]])
    pairs = [f"MRR, {n} pairs" for n in NUM_PAIRS]
    return markdown(("Spaces", *SIMILARITIES.values(), "Least squares: MRR", *pairs), body)


def _is_search(row: Row) -> bool:
    """Whether a row is the MRR of the bootstrap from source to target, all items in both spaces."""
    bootstrap = (row.method, row.metric) == ("bootstrap", "mrr") and row.anchors != "discrete"
    direction = (row.dataset, row.get("optimised")) == (f"{row.source} -> {row.target}", row.target)
    all_shared = row.sweep_over != "shared" or row.sweep_value == 1
    return row.experiment in SEARCHES and bootstrap and direction and all_shared


def _number(value: float) -> str:
    return plus_minus(float(value), None)
