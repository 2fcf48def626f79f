"""Tables of several encoders in common coordinates, judged by relevance.

In a row `source` is the encoder of the queries and `target` that of the documents.
"""

from collections.abc import Sequence

from common.run.results import Row, pivot, select

LENGTH = 10  # of the lists that are judged
TITLES = {"ndcg_10": f"nDCG@{LENGTH}", "recall_10": f"Recall@{LENGTH}"}
NOTES = (
    "A headline of BBC news is a query; relevant are its own article (articles), or the sentences "
    "of its article (sentences). own model: queries and documents by one encoder, as they are. "
    "maps of two: the queries are mapped by an orthogonal map that is fitted to the two encoders "
    "alone. common coordinates: every encoder is rotated so that all agree (generalised "
    "Procrustes analysis). Maps and means are of the known documents. mixed: each document is by a "
    "random one of the encoders; mean: of the vectors of all encoders, for queries and documents."
)


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: a line for each method and encoder of queries, a column for each store."""
    lines = {"num_pairs": "Known documents", "method": "Method", "source": "Queries by"}
    tables = {}
    for collection in dict.fromkeys(row.dataset for row in rows):
        for metric, title in TITLES.items():
            shown = select(rows, dataset=collection, metric=metric)
            name = f"{title} among {shown[0].num_items:,} {collection}, by the documents' encoder"
            tables[name] = pivot(shown, lines=lines, columns="target")
    return tables
