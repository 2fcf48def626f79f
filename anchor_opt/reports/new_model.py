"""Tables of a vector store whose embedding model changes."""

from collections.abc import Sequence

from common.run.results import Row, pivot, select

MEASURES = {"recall_1": "Recall@1", "recall_10": "Recall@10", "rank_correlation": "Rank corr."}
ESTIMATES = {
    "recall_10": "Recall@10",
    "estimate": "Estimate",
    "uncertainty": "Uncertainty",
    "error": "Error",
    "flagged": "Flagged",
}
NOTES = (
    "Recall@k: the fraction of the k vectors nearest to a query in the re-embedded store that are "
    "among the k nearest in the mapped one. Rank corr.: Spearman's, of the cosines of a query with "
    "2,000 vectors of both. Both spaces are centred. Pairs: items embedded by both models; with "
    "fewer than 100, a sample of both models in unknown order is matched first. chosen: the "
    "simplest of the three maps that is as good as the best on held-out pairs or matches. "
    "old model: no map; its own queries in its own store. Estimate: of recall@10, without the "
    "re-embedded store, and half the width of its interval. Flagged: the fraction of runs in which "
    "it is said not to be trusted."
)


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: what is kept, and estimates beside it, for each direction."""
    tables = {}
    lines = {"num_pairs": "Pairs", "method": "Map"}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        of_dataset = select(rows, dataset=dataset)
        kept = [row for row in of_dataset if row.metric in MEASURES]
        title = f"{dataset}, {of_dataset[0].num_items:,} vectors"
        tables[title] = pivot(kept, lines=lines, titles=MEASURES)
        shown = [
            row for name in ESTIMATES for row in select(of_dataset, metric=name, method="chosen")
        ]
        title = f"{dataset}: the estimate of recall@10"
        tables[title] = pivot(shown, lines={"num_pairs": "Pairs"}, titles=ESTIMATES)
    return tables
