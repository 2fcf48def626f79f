"""The figures of the experiments."""

from matplotlib.figure import Figure

from common import report
from common.report import COLOURS

GROUPS = ("both trained here", "one of them pretrained", "both pretrained")


def match(rows: list[dict]) -> Figure:
    """Distance, and the three accuracies, of each pair; the poster's as marks."""
    pairs = list(dict.fromkeys((row["source"], row["target"]) for row in rows))
    panels = {
        "mean l2 distance": ("l2",),
        "matching accuracy": ("p_at_1", "p_at_5", "ot"),
    }
    labels = {
        "l2": None,
        "p_at_1": "nearest",
        "p_at_5": "in nearest 5",
        "ot": "transport",
    }
    found = {(row["source"], row["target"], row["metric"]): row for row in rows}
    figure = Figure(figsize=(12, 4), layout="constrained")
    axes = figure.subplots(1, 2, width_ratios=(1, 2))
    for axis, (ylabel, metrics) in zip(axes, panels.items(), strict=True):
        width = 0.8 / len(metrics)
        for i, (colour, metric) in enumerate(zip(COLOURS, metrics, strict=False)):
            for place, pair in enumerate(pairs):
                row = found[*pair, metric]
                x = place + (i + 0.5) * width - 0.4
                label = labels[metric] if place == 0 else None
                axis.bar(x, row["mean"], width, color=colour, label=label)
                if row["paper_value"] is not None:
                    label = "poster's number" if (i, place) == (0, 0) else None
                    style = {"color": "black", "marker": "_", "s": 260 * width, "zorder": 3}
                    axis.scatter(x, row["paper_value"], label=label, **style)
        axis.set_xticks(range(len(pairs)), ["-".join(pair) for pair in pairs])
        for label in axis.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
        axis.set_ylabel(ylabel)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].legend(frameon=False, fontsize="small", loc="upper right")
    figure.suptitle("Pairs of embeddings after the optimal rotation")
    return figure


def correlate(points: dict[str, list[dict]], rows: list[dict]) -> Figure:
    """Difference of accuracy over distance, one panel a task, one point a pair."""
    overall = {row["dataset"]: row for row in rows if row["method"] == "all pairs"}
    figure = Figure(figsize=(6.5 * len(points), 5), layout="constrained")
    axes = figure.subplots(1, len(points), squeeze=False)[0]
    for axis, (task, pairs) in zip(axes, points.items(), strict=True):
        for number, (colour, label) in enumerate(zip(COLOURS, GROUPS, strict=False)):
            mine = [p for p in pairs if p["pretrained"] == number]
            places = [p["l2"] for p in mine], [p["difference"] for p in mine]
            axis.scatter(*places, s=24, color=colour, label=label)
        row = overall[task]
        interval = f"95% from {row['low']:.2f} to {row['high']:.2f}"
        axis.set(title=f"{task}: Spearman {row['mean']:.2f} ({interval})")
        axis.set(xlabel="mean l2 distance after rotation", ylabel="difference of accuracy")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.suptitle("Pairs of embeddings: similarity and downstream performance")
    return figure


def ensemble(rows: list[dict], task: str) -> Figure:
    """Gain of each pair's ensembles over the mean of its members."""
    gains: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        if row["dataset"] == task and row["metric"] == "gain":
            pair = f"{row['source']}-{row['target']}"
            gains.setdefault(row["method"], {})[pair] = (row["mean"], row["std"])
    pairs = list(next(iter(gains.values())))
    bars = {way: [found[pair] for pair in pairs] for way, found in gains.items()}
    label = "gain of accuracy over the members' mean"
    figure = report.bars({label: bars}, pairs, f"Ensembles of pairs, {task}")
    axis = figure.axes[0]
    figure.set_size_inches(max(6, 0.8 * len(pairs)), 4)
    axis.axhline(0, color="0.3", lw=0.8)
    for tick in axis.get_xticklabels():
        tick.set(rotation=30, ha="right", rotation_mode="anchor")
    return figure
