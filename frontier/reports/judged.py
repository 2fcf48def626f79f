"""Tables and figures of a change of the embedding model that is judged by relevance.

Labels of the rows: `collection` is that of `frontier.judged`; `candidates`, their number, if
the new model puts candidates in order; `queries`, the number of queries after which a share of the
store has been embedded.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from common.run.figures import small_multiples
from common.run.records import Record
from common.run.results import Row, frame, markdown, pivot, points, select
from frontier.reports.searches import add_references

TITLES = {"ndcg_10": "nDCG@10", "recall_10": "Recall@10", "recall_100": "Recall@100"}
OVERVIEW = {
    "old model": "Old model",
    "re-embedded": "Re-embedded",
    "mapped store": "Mapped store",
    "old candidates": "50 old candidates",
    "mapped candidates": "50 mapped candidates",
    "advised": "Advised",
    "advised, old model gone": "Advised, old model gone",
}
NOTES = (
    "A headline of BBC news is a query; relevant are its own article (articles), or the "
    "sentences of its article (sentences). Pairs: random documents that both models have embedded, "
    "to which the map is fitted. first numbers: the new model's queries in the old store, the "
    "longer vectors cut. mapped store: queries of the new model in the store mapped into its "
    "space. mapped queries: the reverse. candidates: the first documents of the mapped store, or "
    "of the old model in its own store, embedded by the new model and put in its order. advised: "
    "what the pairs alone advise. Gain: nDCG@10 beyond the old model's, with the 95% interval over "
    "queries (paired bootstrap, mean over random seeds)."
)


def details(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: the metrics of all strategies, and what is embedded on the way."""
    tables = {}
    lines = {"num_pairs": "Pairs", "method": "Strategy", "candidates": "Candidates"}
    for collection, dataset in dict.fromkeys((row.get("collection"), row.dataset) for row in rows):
        shown = select(rows, collection=collection, dataset=dataset)
        title = f"{dataset}, {shown[0].num_items:,} {collection}"
        tables[title] = pivot([r for r in shown if r.metric in TITLES], lines=lines, titles=TITLES)
        tables[f"{title}: gain over the old model"] = gains(shown)
        if embedded := select(shown, metric="embedded"):
            tables[f"{title}: share of the store that is embedded after so many queries"] = pivot(
                embedded, lines=lines, columns="queries", digits=2
            )
    return tables


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: nDCG@10 of the strategies that one would choose among, side by side."""
    rows = record.rows
    tables = {}
    lines = {"dataset": "Change", "num_pairs": "Pairs"}
    for collection in dict.fromkeys(row.get("collection") for row in rows):
        of_metric = select(rows, collection=collection, metric="ndcg_10")
        shown = [
            row
            for method in OVERVIEW
            for row in select(of_metric, method=method)
            if row.get("candidates") in (None, 50)
        ]
        title = f"nDCG@10, {shown[0].num_items:,} {collection}"
        tables[title] = pivot(shown, lines=lines, columns="method", titles=OVERVIEW)
        advised = [row for row in rows if row.method.startswith("advised")]
        gained = gains(select(advised, collection=collection), dataset=True)
        tables[f"{title}: gain of what is advised over the old model"] = gained
    return tables | {"Notes": NOTES}


def gains(rows: Sequence[Row], dataset: bool = False) -> str:
    """Markdown: the gain of each strategy with its interval, and with the change if asked for."""
    titles = {"dataset": "Change"} if dataset else {}
    titles |= {"num_pairs": "Pairs", "method": "Strategy", "candidates": "Candidates"}
    gains, low, high = (select(rows, metric=f"gain{end}") for end in ("", "_low", "_high"))
    body = [
        [str(gain.get(name) or "-") for name in titles]
        + [f"{gain.mean:+z.3f}", f"{least.mean:+z.3f} to {most.mean:+z.3f}"]
        for gain, least, most in zip(gains, low, high, strict=True)  # each in the same order
    ]
    return markdown((*titles.values(), "Gain", "95% interval"), body)


def figures(record: Record) -> dict[str, Figure]:
    """`COLLECTION`: nDCG@10 over the number of candidates, with a panel for each change."""
    rows = frame(record.rows)
    rows = rows[rows["metric"] == "ndcg_10"]
    mapped = rows["method"] == "mapped candidates"  # others do not depend on the pairs
    rows.loc[mapped, "method"] += " (" + rows["num_pairs"].map("{:,} pairs)".format)
    rows = rows.drop_duplicates(["collection", "dataset", "method", "candidates"])
    rows["ordered"] = rows["method"].str.contains("candidates").astype(bool)
    rows = rows[rows["ordered"] | rows["method"].isin(["old model", "re-embedded"])]
    figures = {}
    for collection, of_collection in rows.groupby("collection", sort=False):
        counts = of_collection["candidates"].min(), of_collection["candidates"].max()
        panels, references = {}, []
        for dataset, lines in of_collection.groupby("dataset", sort=False):
            shown = points(lines[lines["ordered"]], "method", "candidates")
            panels[f"candidates\n{dataset}"] = shown
            whole = lines[~lines["ordered"]].set_index("method")["mean"]
            references.append(
                {name: [(x, mean, 0.0) for x in counts] for name, mean in whole.items()}
            )
        title = f"{collection}: nDCG@10 of candidates in the new model's order"
        figure = small_multiples(panels, {}, "nDCG@10", title[0].upper() + title[1:])
        low, high = of_collection["mean"].min(), of_collection["mean"].max()
        figure.axes[0].set_ylim(low - 0.03, high + 0.03)
        add_references(figure, references)
        figures[collection] = figure
    return figures
