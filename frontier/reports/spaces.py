"""Table and figure of what pairs of spaces have in common.

Labels of the rows: `pair` is the number of the pair in the table and the figure; `source_dim`,
dimension of the source; `shared`, items that both spaces have.
"""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES
from common.run.figures import BELOW, styles, within
from common.run.records import Record
from common.run.results import Row, frame, markdown, plus_minus
from frontier.reports.searches import side_by_side

SEARCHES = ("retrieval", "phase", "overlap", "vision")  # experiments that search for anchors
NUM_PAIRS = (15, 5, 0)
SIMILARITIES = {
    "linear_cka": "CKA",
    "calibrated_linear_cka": "calibrated",
    "mutual_neighbours": "Neighbours",
    "calibrated_mutual_neighbours": "calibrated",
}
LINES = {"pair": "No.", "source": "Source", "target": "Target", "dims": "Dimensions"}
LINES |= {"shared": "Shared", "num_items": "Measured"}
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


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: a line for each pair of spaces."""
    rows = frame(record.rows)
    rows["dims"] = rows["source_dim"].astype(str) + " -> " + rows["dim"].astype(str)
    rows[["shared", "num_items"]] = rows[["shared", "num_items"]].map("{:,}".format)
    notes = NOTES.format(k=record.config["k"], num_anchors=record.config["num_anchors"])
    return {"Pairs of spaces": f"{side_by_side(rows, LINES, COLUMNS)}\n\n{notes}"}


def figures(record: Record) -> dict[str, Figure]:
    """`cka`: MRR of the linear maps and of true anchors over the CKA of each pair."""
    rows = frame(record.rows).set_index("pair")
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axis = figure.subplots()
    cka = rows.loc[rows["metric"] == "linear_cka", "mean"]
    mrr = rows[rows["metric"] == "mrr"]
    methods = {
        "gt": "relative representations, true anchors",
        "orthogonal": "orthogonal map",
        "least_squares": "least-squares map",
    }
    looks = styles(methods, METHOD_TITLES)
    for method, label in methods.items():
        line = mrr[mrr["method"] == method]
        style = {"color": looks[method].colour, "marker": looks[method].marker, "ms": 6}
        errors = within(line["mean"].tolist(), line["std"].tolist(), (0, 1))
        axis.errorbar(cka[line.index], line["mean"], errors, ls="", label=label, **style)
    figure.legend(ncols=3, **BELOW)
    names = []
    for pair, of_pair in mrr.groupby(level="pair", sort=False):
        offset = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        axis.annotate(str(pair), (cka[pair], of_pair["mean"].max()), fontsize=8, **offset)
        label = f"{pair}  {of_pair['source'].iloc[0]} -> {of_pair['target'].iloc[0]}"
        names += axis.plot([], [], " ", label=label)
    axis.set(xlabel="linear CKA of the true pairs", ylabel="MRR", ylim=(0, 1.08))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(handles=names, loc="outside right center", frameon=False, fontsize=8)
    figure.suptitle("MRR of maps and anchors that are given the truth, over the CKA of the spaces")
    return {"cka": figure}


def foretold(records: Iterable[Record]) -> str:
    """Which similarity of two spaces tells whether self-learning finds the pairs of their items.

    The similarities are those of the record of this experiment; the MRR is the mean of those in all
    records, with these numbers of known pairs. Pairs are found if it is more than half of that of
    the least-squares map on true pairs. Told apart: the probability that of two pairs of spaces, of
    which one is found, this one is more similar (the area under the ROC curve).
    """
    from sklearn.metrics import roc_auc_score  # a second, which a run does not need

    rows = [row for record in records for row in record.rows]
    spaces = frame(row for row in rows if row.experiment == "spaces")
    searches = frame(row for row in rows if _is_search(row))
    mrr = searches.astype({"mean": float}).pivot_table("mean", "dataset", "num_pairs")
    body, values, found = [], [], []
    for dataset, of_pair in spaces.groupby("dataset", sort=False):
        measured = of_pair.set_index(["method", "metric"])["mean"]
        similar = [measured["truth", metric] for metric in SIMILARITIES]
        best = measured["least_squares", "mrr"]
        runs = mrr.reindex(index=[dataset], columns=NUM_PAIRS).iloc[0]
        cells = ["-" if np.isnan(value) else _number(value) for value in runs]
        body.append([dataset, *map(_number, [*similar, best]), *cells])
        values.append(similar)
        found.append([None if np.isnan(value) else value > best / 2 for value in runs])
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
    """Whether a row is the MRR of self-learning from source to target, all items in both spaces."""
    bootstrap = (row.method, row.metric) == ("bootstrap", "mrr") and row.anchors != "discrete"
    direction = (row.dataset, row.get("optimised")) == (f"{row.source} -> {row.target}", row.target)
    all_shared = row.sweep_over != "shared" or row.sweep_value == 1
    return row.experiment in SEARCHES and bootstrap and direction and all_shared


def _number(value: float) -> str:
    return plus_minus(float(value), None)
