"""Tables and figures of `match`, with the poster's Table 1.

Label of its rows: `ranks`, of the words that are compared in the order of frequency.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from common.run import results
from common.run.figures import legend_below, styles
from common.run.results import Row, pivot, select
from embed_match.compare import Transport
from embed_match.reports.pairs import METRICS, PAIR, TITLES, bars

POSTER = "5,000 words"
KINDS = {"cbow": "CBOW", "glove": "GloVe", "lstm": "LSTM"}  # of trained embeddings
# The poster's Table 1, at a vocabulary of 5,000: pairs of embeddings after the optimal rotation.
TABLE_1 = {
    ("C1", "C2"): (0.309, 1.0, 1.0, 1.0),
    ("G1", "G2"): (0.623, 0.634, 0.8769, 1.0),
    ("C1", "G1"): (0.965, 0.4302, 0.5712, 0.8042),
    ("LSTM", "C1"): (0.937, 0.2284, 0.4388, 0.6328),
}


def with_published(rows: Iterable[Row]) -> list[Row]:
    """The rows, with the poster's number where it has one."""

    def number(row: Row) -> float | None:
        numbers = TABLE_1.get((row.source, row.target), ())
        return dict(zip(METRICS, numbers, strict=False)).get(row.metric)

    return [dataclasses.replace(row, paper_value=number(row)) for row in rows]


def tables(rows: Sequence[Row], text: str, transport: Transport) -> dict[str, str]:
    """Tables of the experiment by title; `text` is the sentence of `texts.trained_on`."""
    lines = PAIR | ({"ranks": "Ranks"} if rows[0].get("ranks") else {}) | {"num_items": "Words"}
    runs = f" Mean ± std over {rows[0].num_runs} trainings." if rows[0].num_runs > 1 else ""
    table_1 = [
        dataclasses.replace(row, paper_dataset=None if row.paper_value is None else POSTER)
        for row in rows
        if row.metric in METRICS
    ]
    of_transport = [row for row in rows if row.metric.startswith("ot")]
    return {
        "Pairs of embeddings after the optimal rotation (Table 1)": (
            f"{text}{runs} Unit norm. P@1 and P@5: nearest neighbours; transport: the optimal "
            "permutation; each is the fraction of source words that are matched with the same "
            "word of the target. Pretrained embeddings are compared on the words in common. The "
            "poster does not state dimensions, windows, epochs or the normalisation, so that its "
            "numbers and ours may belong to different settings.\n\n"
            + pivot(table_1, lines=lines, paper=True, titles=TITLES)
        ),
        "Exact and entropic transport": (
            "The cost is 1 - cos. Sinkhorn iterations stop at a marginal error of "
            f"{transport.tolerance:g} or after {transport.max_iterations} iterations.\n\n"
            + pivot(of_transport, lines=lines, titles=TITLES)
        ),
    }


def figures(rows: Sequence[Row], kinds: Mapping[str, str]) -> dict[str, Figure]:
    """File name -> figure.

    Args:
      rows: of the experiment.
      kinds: kind of each trained embedding, which gives a pair its colour.
    """
    return {"match": _table_1_figure(rows), "curve": _curve_figure(rows, kinds)}


def _table_1_figure(rows: Sequence[Row]) -> Figure:
    """Distance and matching accuracy of each pair."""
    panels = {
        "mean l2 distance": {"l2 distance": select(rows, metric="l2")},
        "matching accuracy": {
            (results.TITLES | TITLES)[metric]: select(rows, metric=metric) for metric in METRICS[1:]
        },
    }
    beside = "; black marks: the poster" if any(row.paper_value for row in rows) else ""
    return bars(
        panels,
        f"Pairs after the optimal rotation: C is CBOW, G is GloVe, glove is pretrained{beside}",
    )


def _curve_figure(rows: Sequence[Row], kinds: Mapping[str, str]) -> Figure:
    """Matching accuracy over distance, a point per pair; the poster's four are large and framed.

    Args:
      rows: of `match`.
      kinds: kind of each trained embedding, which gives a pair its colour.
    """

    def label(source, target):
        names = (KINDS.get(kinds.get(name, ""), "pretrained") for name in (source, target))
        return " and ".join(sorted(names))

    pairs = select(rows, metric="l2")
    labels = dict.fromkeys(label(*pair) for pair in TABLE_1 if set(pair) <= set(kinds))
    labels |= dict.fromkeys(label(row.source, row.target) for row in pairs)
    figure = Figure(figsize=(15, 5), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, metric in zip(axes, METRICS[1:], strict=True):
        for kind, look in styles(labels).items():
            points = [
                (distance.mean, matched.mean)
                for distance, matched in zip(pairs, select(rows, metric=metric), strict=True)
                if label(distance.source, distance.target) == kind
            ]
            marks = {"color": look.colour, "marker": look.marker}
            axis.scatter(*np.reshape(points, (-1, 2)).T, s=36, label=kind, **marks)
            for pair, published in ({} if rows[0].quick else TABLE_1).items():
                if set(pair) <= set(kinds) and label(*pair) == kind:
                    x, y = published[0], published[METRICS.index(metric)]
                    axis.scatter(x, y, s=130, **marks, edgecolors="black", linewidths=1.8)
        axis.set(xlabel="mean l2 distance after rotation", ylabel=(results.TITLES | TITLES)[metric])
        axis.spines[["top", "right"]].set_visible(False)
    if not rows[0].quick:
        axes[0].scatter([], [], s=130, c="white", edgecolors="black", lw=1.8, label="the poster's")
    legend_below(figure, 6)
    figure.suptitle("Distance and matching accuracy of pairs of embeddings")
    return figure
