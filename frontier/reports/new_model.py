"""Tables and figure of a vector store whose embedding model changes."""

from matplotlib.figure import Figure

from common.run.figures import small_multiples
from common.run.records import Record
from common.run.results import frame, pivot, points
from frontier.reports.searches import add_references, side_by_side

MEASURES = {"recall_10": "Recall@10", "within_200": "The true ten within 200"}
MAPS = {
    "procrustes": "Orthogonal",
    "whitened_procrustes": "Orthogonal, whitened",
    "ridge": "Ridge",
    "chosen": "Chosen",
    "mapped queries": "Mapped queries",
    "old model": "Old model",
    "first numbers": "First numbers",
}
NOTES = (
    "Recall@10: the share of the ten vectors nearest to a query in the re-embedded store that are "
    "among the ten nearest of this one; within 200: among the 200 nearest, which the new model may "
    "put in order. Rows are centred or not, as held-out pairs decide. Pairs: items embedded by "
    "both models; with fewer than 100, a sample of both models in unknown order is matched first. "
    "Chosen: the simplest of the three maps that is as good as the best on held-out pairs or "
    "matches. Mapped queries: the new model's, mapped into the old store. Old model: no map; its "
    "own queries in its own store. First numbers: the new model's queries in the old store, the "
    "longer vectors cut. Estimate: from the pairs, without the re-embedded store, and half the "
    "width of its interval. Flagged: the share of runs in which the estimate of Recall@10 is said "
    "not to be trusted."
)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: what every map keeps in each direction, and the estimates beside it."""
    tables, rows = {}, frame(record.rows)
    lines = {"dataset": "Change", "num_pairs": "Pairs"}
    for metric, title in MEASURES.items():
        kept = rows[rows["metric"] == metric]
        title = f"{title}, {kept['num_items'].iloc[0]:,} vectors"
        tables[title] = pivot(kept["row"], lines=lines, columns="method", titles=MAPS)
        columns = {
            (method, what): f"{MAPS[method]}: {name}"
            for method in ("chosen", "old model")
            for what, name in ((metric, "kept"), ("estimate", "estimate"), ("uncertainty", "±"))
        }
        shown = rows[(rows["metric"] == metric) | (rows["of"] == metric)]
        tables[f"{title}: estimates from the pairs"] = side_by_side(shown, lines, columns)
    flagged = rows.loc[rows["metric"] == "flagged", "row"]
    tables["Flagged"] = pivot(flagged, lines={"dataset": "Change"}, columns="num_pairs")
    return tables | {"Notes": NOTES}


def figures(record: Record) -> dict[str, Figure]:
    """`recall_10` over the number of pairs: a panel for each change, a line for each way."""
    rows = frame(record.rows)
    rows = rows[rows["metric"] == "recall_10"]
    rows = rows.assign(method=rows["method"].map(MAPS))
    panels, references = {}, []
    for dataset, shown in rows.groupby("dataset", sort=False):
        known = shown[shown["num_pairs"] < shown["num_items"]]
        lines = points(known, "method", "num_pairs")
        panels["pairs\n" + dataset.replace("_sentences", "")] = {
            name: lines[name] for name in ("Chosen", "Mapped queries")
        }
        whole = points(shown, "method", "num_pairs")["Chosen"][-1]  # the map of the whole store
        best = [(x, whole[1], 0.0) for x, *_ in lines["Chosen"]]
        references.append({"Old model": lines["Old model"], "Map of the whole store": best})
    title = "What a mapped store keeps of the new model's lists of ten"
    figure = small_multiples(panels, {}, "Recall@10", title)
    figure.axes[0].set_ylim(0, 1.1 * (rows["mean"] + rows["std"]).max())
    add_references(figure, references)
    return {"recall_10": figure}
