"""Tables and figures of a change of the embedding model that is judged by relevance.

Labels of the rows: `collection` is that of `common.spaces.judged`; `candidates`, their number, if
the new model puts candidates in order; `queries`, the number of queries after which a share of the
store has been embedded.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from common.run.figures import small_multiples
from common.run.results import Row, markdown, pivot, select

TITLES = {"ndcg_10": "nDCG@10", "recall_10": "Recall@10", "recall_100": "Recall@100"}
CANDIDATES = ("mapped candidates", "old candidates")
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


def tables(rows: Sequence[Row]) -> dict[str, str]:
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


def overview(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: nDCG@10 of the strategies that one would choose among, side by side."""
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
    return tables


def gains(rows: Sequence[Row], dataset: bool = False) -> str:
    """Markdown: the gain of each strategy with its interval, and with the change if asked for."""
    titles = {"dataset": "Change"} if dataset else {}
    titles |= {"num_pairs": "Pairs", "method": "Strategy", "candidates": "Candidates"}
    body = []
    for row in select(rows, metric="gain"):
        about = {name: row.get(name) for name in titles}
        same = about | {"dataset": row.dataset}
        low, high = (select(rows, metric=f"gain_{end}", **same)[0].mean for end in ("low", "high"))
        cells = ["-" if value is None else str(value) for value in about.values()]
        body.append([*cells, f"{row.mean:+z.3f}", f"{low:+z.3f} to {high:+z.3f}"])
    return markdown((*titles.values(), "Gain", "95% interval"), body)


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """`COLLECTION`: nDCG@10 over the number of candidates, with a panel for each change."""
    figures = {}
    for collection in dict.fromkeys(row.get("collection") for row in rows):
        panels: dict[str, dict[str, list]] = {}
        for row in select(rows, collection=collection, metric="ndcg_10"):
            panel = panels.setdefault(row.dataset, {})
            if row.method in CANDIDATES:
                pairs = f" ({row.num_pairs:,} pairs)" if row.method == CANDIDATES[0] else ""
                points = panel.setdefault(f"{row.method}{pairs}", [])
                if row.get("candidates") not in [x for x, *_ in points]:
                    points.append((row.get("candidates"), row.mean, row.std))
        whole = {
            (row.dataset, row.method): row.mean
            for row in select(rows, collection=collection, metric="ndcg_10")
            if row.method in ("old model", "re-embedded")
        }
        for (dataset, method), value in whole.items():
            counts = [x for points in panels[dataset].values() for x, *_ in points]
            panels[dataset][method] = [(x, value, 0.0) for x in (min(counts), max(counts))]
        changes = {f"candidates\n{dataset}": lines for dataset, lines in panels.items()}
        title = f"{collection}: candidates in the new model's order".capitalize()
        figures[collection] = small_multiples(changes, {}, "nDCG@10", title)
    return figures
