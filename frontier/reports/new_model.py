"""Tables of a vector store whose embedding model changes."""

from common.run.records import Record
from common.run.results import frame, pivot, select

MEASURES = {
    "recall_10": "Recall@10",
    "within_50": "within 50",
    "within_100": "within 100",
    "within_200": "within 200",
}
ESTIMATES = {"estimate": "Estimate", "uncertainty": "Uncertainty", "error": "Error"}
NOTES = (
    "Recall@10: the share of the ten vectors nearest to a query in the re-embedded store that are "
    "among the ten nearest of this one; within N: among the N nearest, which the new model may put "
    "in order. Rows are centred or not, as held-out pairs decide. Pairs: items embedded by both "
    "models; with fewer than 100, a sample of both models in unknown order is matched first. "
    "chosen: the simplest of the three maps that is as good as the best on held-out pairs or "
    "matches. mapped queries: the "
    "new model's, mapped into the old store. old model: no map; its own queries in its own store. "
    "first numbers: the new model's queries in the old store, the longer vectors cut. Estimate: "
    "from the pairs, without the re-embedded store, and half the width of its interval. Flagged: "
    "the share of runs in which the estimate of Recall@10 is said not to be trusted."
)


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: what is kept, and estimates beside it, for each direction."""
    tables = {}
    lines = {"num_pairs": "Pairs", "method": "Map"}
    for dataset, rows in frame(record.rows).groupby("dataset", sort=False):
        kept = rows[rows["metric"].isin(MEASURES)]
        title = f"{dataset}, {rows['num_items'].iloc[0]:,} vectors"
        tables[title] = pivot(kept["row"], lines=lines, titles=MEASURES)
        estimates = rows[rows["metric"].isin(ESTIMATES)]
        for method, shown in estimates.groupby("method", sort=False):
            title = f"{dataset}, {method}: estimates from the pairs"
            by = {"num_pairs": "Pairs", "of": "Of"}
            tables[title] = pivot(shown["row"], lines=by, titles=ESTIMATES)
        if flagged := select(rows["row"], metric="flagged"):
            tables[f"{dataset}: flagged"] = pivot(flagged, lines={"num_pairs": "Pairs"})
    return tables | {"Notes": NOTES}
