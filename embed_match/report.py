"""Tables and figures of the experiments, with the poster's numbers in columns of their own."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from common.run import figures, results
from common.run.results import Row, markdown, measured, pivot, plus_minus, select
from embed_match.embeddings import Embedding, Model

# The poster's Table 1, at a vocabulary of 5,000: pairs of embeddings after the optimal rotation.
METRICS = ("l2", "p_at_1", "p_at_5", "ot")
TABLE_1 = {
    ("C1", "C2"): (0.309, 1.0, 1.0, 1.0),
    ("G1", "G2"): (0.623, 0.634, 0.8769, 1.0),
    ("C1", "G1"): (0.965, 0.4302, 0.5712, 0.8042),
    ("LSTM", "C1"): (0.937, 0.2284, 0.4388, 0.6328),
}
TITLES = {
    "l2": "Mean l2",
    "gain": "Gain",
    "ot": "Transport",
    "ot_entropic": "Entropic transport",
    "ot_entropic_error": "Marginal error",
    "ot_cost": "Cost",
    "ot_seconds": "Seconds",
    "ot_entropic_seconds": "Seconds, entropic",
}
PAIR = {"source": "Source", "target": "Target"}
GROUPS = ("both trained here", "one of them pretrained", "both pretrained")


def paper_value(source: str, target: str, metric: str) -> float | None:
    """The poster's number for a pair, or None if it has none."""
    return dict(zip(METRICS, TABLE_1.get((source, target), ()), strict=False)).get(metric)


def trained_on(dataset: str, num_texts: int, num_words: int) -> str:
    """One sentence about the training text of all embeddings."""
    proxy = "" if dataset == "imdb" else " (a proxy for IMDB)"
    return f"Trained on {num_texts:,} texts of {dataset}{proxy} with {num_words:,} words."


def match(rows: Sequence[Row], text: str, max_iterations: int, tolerance: float) -> dict[str, str]:
    """Tables of `match` by title; `text` is the sentence of `trained_on`."""
    lines = PAIR | ({"ranks": "Ranks"} if rows[0].get("ranks") else {}) | {"num_items": "Words"}
    runs = f" Mean ± std over {rows[0].num_runs} trainings." if rows[0].num_runs > 1 else ""
    table_1 = [row for row in rows if row.metric in METRICS]
    transport = [row for row in rows if row.metric.startswith("ot")]
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
            f"{tolerance:g} or after {max_iterations} iterations.\n\n"
            + pivot(transport, lines=lines, titles=TITLES)
        ),
    }


def correlate(rows: Sequence[Row], text: str) -> dict[str, str]:
    """Tables of `correlate` by title; `text` is the sentence of `trained_on`."""
    accuracy = {(row.dataset, row.method): row for row in select(rows, metric="accuracy")}
    tasks = list(dict.fromkeys(task for task, _ in accuracy))
    l2 = select(rows, metric="l2")
    correlations = [
        [row.dataset, str(len(l2)), measured(row, 2), _interval(row)]
        for row in select(rows, metric="spearman")
    ]
    pairs = []
    for row in l2:
        members = [(accuracy[task, row.source], accuracy[task, row.target]) for task in tasks]
        differences = [plus_minus(abs(a.mean - b.mean), None) for a, b in members]
        pairs.append([row.source, row.target, measured(row), *differences])
    header = (*PAIR.values(), "Mean l2", *(f"Difference, {task}" for task in tasks))
    return {
        "Similarity and downstream performance (Figure 5)": (
            f"{text} Spearman correlation, over pairs of embeddings, of the mean l2 distance after "
            "rotation with the difference in accuracy, in each random run, and the 95% bootstrap "
            "interval over embeddings of that of the means. The poster shows a scatter plot "
            "without a number and calls it inconclusive.\n\n"
            + markdown(("Task", "Pairs", "Spearman", "95% interval"), correlations)
        ),
        "Accuracy": f"{downstream(rows)}\n\n"
        + pivot(accuracy.values(), lines={"method": "Embedding"}, columns="dataset"),
        "Pairs": markdown(header, pairs),
    }


def ensemble(rows: Sequence[Row], text: str) -> dict[str, str]:
    """Tables of `ensemble` by title, likewise."""
    tasks = list(dict.fromkeys(row.dataset for row in rows))
    tables = {}
    for task in tasks:
        gains = select(rows, dataset=task, metric="gain")
        summary = []
        for method in dict.fromkeys(row.method for row in gains):
            means = [row.mean for row in gains if row.method == method]
            positive = f"{sum(mean > 0 for mean in means)} of {len(means)}"
            summary.append([method, plus_minus(float(np.mean(means)), None, 4), positive])
        tables |= {
            f"Ensembles of pairs, {task} (Figure 6)": (
                f"{text} {downstream(rows)} Gain: accuracy above the mean of the two "
                "members. The poster shows bars without numbers, in which every ensemble gains."
                "\n\n" + markdown(("Ensemble", "Mean gain", "Pairs that gain"), summary)
            ),
            f"Gain of each pair, {task}": pivot(gains, lines=PAIR, columns="method", digits=4),
            f"Single embeddings, {task}": pivot(
                select(rows, dataset=task, method="member"), lines={"source": "Embedding"}
            ),
        }
    return tables


def sentences(rows: Sequence[Row]) -> dict[str, str]:
    """Tables of `sentences` by title."""
    runs = f"mean ± std over {rows[0].num_runs} random subsets of the texts"
    lines = {"dataset": "Texts"} | PAIR
    pairs = [row for row in rows if row.metric in (*METRICS, "ot_entropic")]
    scores = [row for row in rows if row.metric in ("accuracy", "gain")]
    return {
        "Sentence encoders after the optimal rotation": (
            "Unit norm. The rotation is fitted on the training texts, and the measures are those "
            f"of the test texts, {runs}.\n\n"
            + pivot(pairs, lines=lines | {"num_items": "Number"}, titles=TITLES)
        ),
        "Ensembles of sentence encoders": (
            f"Logistic regression, {runs}. Gain: accuracy above the mean of the two members. The "
            "rotation before averaging is fitted on the training texts.\n\n"
            + pivot(scores, lines=lines | {"method": "Ensemble"})
        ),
    }


def downstream(rows: Sequence[Row]) -> str:
    """How accuracy is measured."""
    news = " News are BBC headlines, a proxy." if select(rows, dataset="news") else ""
    return (
        "Texts are means of unit word vectors, classified by logistic regression; mean ± std over "
        f"{rows[0].num_runs} random runs, each with its own training of every embedding and its "
        f"own random four fifths of the training and of the test texts.{news}"
    )


def speeds(spaces: Mapping[str, Embedding], models: Mapping[str, Model]) -> str:
    """A table of the training throughput of each trained embedding."""
    lines = []
    for name in (name for name in spaces if name in models):
        vectors, _, speed = spaces[name]
        speed = "- (resumed)" if np.isnan(speed) else f"{speed:,.0f}"
        lines.append([name, models[name].kind, str(vectors.shape[1]), speed])
    return markdown(("Embedding", "Model", "Dimensions", "Words/s in training"), lines)


def _interval(row: Row) -> str:
    return " to ".join(plus_minus(row.get(end), None, 2) for end in ("low", "high"))


def match_figure(rows: Sequence[Row]) -> Figure:
    """Distance and matching accuracy of each pair."""
    panels = {
        "mean l2 distance": {"l2": select(rows, metric="l2")},
        "matching accuracy": {
            (results.TITLES | TITLES)[metric]: select(rows, metric=metric) for metric in METRICS[1:]
        },
    }
    return _pair_bars(panels, "After the optimal rotation (black marks: the poster's numbers)")


def curve_figure(rows: Sequence[Row], kinds: Mapping[str, str]) -> Figure:
    """Matching accuracy over distance, a point per pair; stars are the poster's four pairs.

    Args:
      rows: of `match`.
      kinds: kind of each trained embedding, which gives a pair its colour.
    """

    def label(source, target):
        return " and ".join(sorted(kinds.get(name, "pretrained") for name in (source, target)))

    pairs = select(rows, metric="l2")
    labels = dict.fromkeys(label(*pair) for pair in TABLE_1 if set(pair) <= set(kinds))
    labels |= dict.fromkeys(label(row.source, row.target) for row in pairs)
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    axes = figure.subplots(1, 3)
    for axis, metric in zip(axes, METRICS[1:], strict=True):
        for one, colour in zip(labels, figures.COLOURS, strict=False):
            points = [
                (row.mean, other.mean)
                for row, other in zip(pairs, select(rows, metric=metric), strict=True)
                if label(row.source, row.target) == one
            ]
            axis.scatter(*np.reshape(points, (-1, 2)).T, s=20, color=colour, label=one)
            for pair, published in TABLE_1.items():
                if set(pair) <= set(kinds) and label(*pair) == one:
                    x, y = published[0], published[METRICS.index(metric)]
                    axis.scatter(x, y, s=160, color=colour, marker="*", edgecolors="black")
        axis.set(xlabel="mean l2 distance after rotation", ylabel=(results.TITLES | TITLES)[metric])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].scatter([], [], s=160, c="white", marker="*", edgecolors="black", label="the poster's")
    axes[0].legend(frameon=False, fontsize="small")
    figure.suptitle("Distance and matching accuracy of pairs of embeddings")
    return figure


def ensemble_figure(rows: Sequence[Row], task: str) -> Figure:
    """Gain of the ensembles of each pair over the mean of its members."""
    gains = select(rows, dataset=task, metric="gain")
    methods = dict.fromkeys(row.method for row in gains)
    bars = {method: select(gains, method=method) for method in methods}
    return _pair_bars({"gain in accuracy": bars}, f"Ensembles of pairs, {task}")


def _pair_bars(panels: Mapping[str, Mapping[str, Sequence[Row]]], title: str) -> Figure:
    """Bars of each pair, one panel per measure; black marks are the poster's numbers."""
    bars = {
        ylabel: {label: [(row.mean, row.std) for row in rows] for label, rows in methods.items()}
        for ylabel, methods in panels.items()
    }
    rows, *_ = next(iter(panels.values())).values()
    pairs = [f"{row.source}-{row.target}" for row in rows]
    figure = figures.bars(bars, pairs, title)
    figure.set_size_inches(max(6, 0.8 * len(pairs)) * len(panels), 4)
    for axis, methods in zip(figure.axes, panels.values(), strict=True):
        width = 0.8 / len(methods)
        for i, rows in enumerate(methods.values()):
            for place, row in enumerate(rows):
                if row.paper_value is not None:
                    x = place + (i + 0.5) * width - 0.4
                    axis.scatter(x, row.paper_value, s=260 * width, c="black", marker="_", zorder=3)
        axis.axhline(0, color="0.3", lw=0.8)
        for label in axis.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
    return figure


def correlate_figure(rows: Sequence[Row], trained: Sequence[str]) -> Figure:
    """Difference in accuracy over distance, a point per pair; `trained` embeddings and others."""
    correlations = select(rows, metric="spearman")
    figure = Figure(figsize=(6.5 * len(correlations), 5), layout="constrained")
    axes = figure.subplots(1, len(correlations), squeeze=False)[0]
    for axis, row in zip(axes, correlations, strict=True):
        of_task = select(rows, dataset=row.dataset, metric="accuracy")
        accuracy = {one.method: one.mean for one in of_task}
        points = [[], [], []]
        for pair in select(rows, metric="l2"):
            pretrained = sum(name not in trained for name in (pair.source, pair.target))
            difference = abs(accuracy[pair.source] - accuracy[pair.target])
            points[pretrained].append((pair.mean, difference))
        for found, colour, label in zip(points, figures.COLOURS, GROUPS, strict=False):
            axis.scatter(*np.reshape(found, (-1, 2)).T, s=24, color=colour, label=label)
        axis.set(xlabel="mean l2 distance after rotation", ylabel="difference in accuracy")
        axis.set_title(f"{row.dataset}: Spearman {row.mean:.2f} (95% interval {_interval(row)})")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.suptitle("Pairs of embeddings: similarity and downstream performance")
    return figure
