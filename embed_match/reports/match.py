"""Tables and figures of `match`, with the poster's Table 1.

Label of its rows: `ranks`, of the words that are compared in the order of frequency.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from common.run import results
from common.run.figures import legend_below, styles
from common.run.records import Record
from common.run.results import Published, Row, frame, pivot
from embed_match.reports.shared import METRICS, PAIR, TITLES, bars, trained_on

POSTER = "5,000 words"
NAMES = results.TITLES | TITLES
KINDS = {"cbow": "CBOW", "glove": "GloVe", "lstm": "LSTM"}  # of trained embeddings
# The poster's Table 1, at a vocabulary of 5,000: pairs of embeddings after the optimal rotation.
TABLE_1 = {
    ("C1", "C2"): (0.309, 1.0, 1.0, 1.0),
    ("G1", "G2"): (0.623, 0.634, 0.8769, 1.0),
    ("C1", "G1"): (0.965, 0.4302, 0.5712, 0.8042),
    ("LSTM", "C1"): (0.937, 0.2284, 0.4388, 0.6328),
}


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The poster's number, which is comparable on its own text and vocabulary alone."""
    text = config["dataset"], config["num_texts"], config["num_words"]
    numbers = TABLE_1.get((row.source, row.target))
    if text != ("imdb", 24_902, 5_000) or config["ranks"] or not numbers:
        return None
    return (
        Published(numbers[METRICS.index(row.metric)], dataset=POSTER)
        if row.metric in METRICS
        else None
    )


def tables(record: Record) -> dict[str, str]:
    """Title -> Table 1 of the poster, and a table of both kinds of transport."""
    rows = frame(record.rows)
    lines = PAIR | ({"ranks": "Ranks"} if "ranks" in rows else {}) | {"num_items": "Words"}
    number = rows.num_runs[0]
    runs = f" Mean ± std over {number} trainings." if number > 1 else ""
    return {
        "Pairs of embeddings after the optimal rotation (Table 1)": (
            f"{trained_on(record.config)}{runs} Unit norm. P@1 and P@5: nearest neighbours; "
            "transport: the optimal permutation; each is the fraction of source words that are "
            "matched with the same word of the target. Pretrained embeddings are compared on the "
            "words in common. The poster does not state dimensions, windows, epochs or the "
            "normalisation, so that its numbers and ours may belong to different settings.\n\n"
            + pivot(
                rows[rows.metric.isin(METRICS)],
                lines=lines,
                published=partial(published, config=record.config),
                titles=TITLES,
            )
        ),
        "Exact and entropic transport": (
            "The cost is 1 - cos. Sinkhorn iterations stop at a marginal error of "
            "{tolerance:g} or after {max_iterations} iterations.\n\n".format_map(record.config)
            + pivot(rows[rows.metric.str.startswith("ot")], lines=lines, titles=TITLES)
        ),
    }


def figures(record: Record) -> dict[str, Figure]:
    """`match`, Table 1 as bars, and `curve`, the points of all pairs."""
    rows = frame(record.rows)
    rows["poster"] = [None if row.quick else published(row, record.config) for row in rows.row]
    kinds = {name: KINDS[model["kind"]] for name, model in record.config["models"].items()}
    return {"match": _table_1_figure(rows), "curve": _curve_figure(rows, kinds)}


def _table_1_figure(rows: pd.DataFrame) -> Figure:
    """Distance and matching accuracy of each pair; dots are the poster's."""
    panels, beside = {"mean l2 distance": {}, "matching accuracy": {}}, {}
    for metric, part in rows[rows.metric.isin(METRICS)].groupby("metric", sort=False):
        panel = panels["mean l2 distance" if metric == "l2" else "matching accuracy"]
        panel[NAMES[metric]] = list(zip(part["mean"], part["std"], strict=True))
        beside[NAMES[metric]] = [x and x.value for x in part.poster]
    distances = rows[rows.metric == "l2"]
    pairs = [*(distances.source + "-" + distances.target)]
    dots = "; dots: the poster" if rows.poster.notna().any() else ""
    title = f"Pairs after the optimal rotation: C is CBOW, G is GloVe, glove is pretrained{dots}"
    return bars(panels, pairs, title, {"mean l2 distance": (0.0, 2.0)}, beside if dots else {})


def _curve_figure(rows: pd.DataFrame, kinds: Mapping[str, str]) -> Figure:
    """Matching accuracy over distance, a point per pair; the poster's four are large and framed.

    `kinds` has the kind of each trained embedding, which gives a pair its colour.
    """

    def label(source, target):
        return " and ".join(sorted(kinds.get(name, "pretrained") for name in (source, target)))

    posters = {} if rows.quick.any() else {p: x for p, x in TABLE_1.items() if {*p} <= {*kinds}}
    rows = rows.assign(label=[*map(label, rows.source, rows.target)])
    looks = styles([*(label(*pair) for pair in TABLE_1 if {*pair} <= {*kinds}), *rows.label])
    distances = rows[rows.metric == "l2"]
    figure = Figure(figsize=(15, 5), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, metric in zip(axes, METRICS[1:], strict=True):
        points = rows[rows.metric == metric].assign(l2=distances["mean"].to_numpy())
        for kind, look in looks.items():
            marks = {"color": look.colour, "marker": look.marker}
            part = points[points.label == kind]
            axis.scatter(part.l2, part["mean"], s=36, label=kind, **marks)
            for pair, numbers in posters.items():
                if label(*pair) == kind:
                    at = numbers[0], numbers[METRICS.index(metric)]
                    axis.scatter(*at, s=130, **marks, edgecolors="black", linewidths=1.8)
        axis.set(xlabel="mean l2 distance after rotation", ylabel=NAMES[metric])
        axis.spines[["top", "right"]].set_visible(False)
    if posters:
        axes[0].scatter([], [], s=130, c="white", edgecolors="black", lw=1.8, label="the poster's")
    legend_below(figure, 6)
    figure.suptitle("Pairs of embeddings: their distance, and how many words are matched")
    return figure
