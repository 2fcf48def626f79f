"""Tables and figures of the image experiments, with the number of the MNIST report.

Labels of the rows: `neighbours_by`, the distance of the nearest-neighbour classifier; `num_points`
of a cloud; `num_train` images; `train_split` and `test_split`. `dim` is that of a point.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from common.data.sets.images import MNIST_5K, Images
from common.run.figures import error_bars, legend_below, styles
from common.run.records import Record
from common.run.results import Published, Row, frame, pivot, points

NAMES = {"sinkhorn": "Sinkhorn", "euclidean": "Euclidean", "cosine": "cosine"}
REPORTED = Published(0.9941, dataset="MNIST 70k")  # section 4.3 of the report
REPORTED_FOR = ("mnist", MNIST_5K)
NOTE = (
    " The report's number, after 10 epochs of 60,000 images, stands beside both: its text "
    "describes training by Sinkhorn, its logged losses fit training by the Euclidean distance."
)
ACCURACIES = {n: f"kNN accuracy, {NAMES[n]} distance" for n in ("euclidean", "sinkhorn")}
LOSSES = {"loss": "loss of training batches", "test_loss": "loss of held-out pairs"}
DISTANCES = {
    "test_negative": "distance of two classes",
    "test_positive": "distance within a class",
}
MAX_MARKED = 100  # steps that are drawn with a marker each
SWEEP_TITLES = {  # of what a sweep varies, below its panels
    "num_points": "points of a cloud",
    "dimensions": "dimensions of a point",
    "distance.epsilon": "epsilon of Sinkhorn",
    "loss_power": "power of the loss",
}
METRICS = {
    "test_loss": "Contrastive loss",
    "test_positive": "Distance, one class",
    "test_negative": "Distance, two classes",
}


def published(row: Row, config: Mapping[str, Any]) -> Published | None:
    """The report's number, beside rows of the measure that it states."""
    del config
    about = row.metric, row.get("neighbours_by"), row.get("num_points"), row.dim
    measured = about == ("knn_accuracy", "euclidean", 3, 2) and row.method != "cosine"
    return REPORTED if measured and row.dataset in REPORTED_FOR else None


def _about(rows: pd.DataFrame) -> str:
    """What the tables show."""
    row = rows.row[0]
    is_proxy = row.proxy and row.dataset in REPORTED_FOR
    proxy = f" (proxy for {REPORTED.dataset})" if is_proxy else ""
    sizes = (", ".join(map(str, sorted(set(rows[name])))) for name in ("num_points", "dim"))
    runs = f"mean ± std over {row.num_runs} random seeds" if row.num_runs > 1 else "one random seed"
    return (
        f"Data: {row.dataset}{proxy}, {row.get('num_train'):,} training images "
        f"(`{row.get('train_split')}`) and {row.num_items:,} held out (`{row.get('test_split')}`); "
        f"clouds of {next(sizes)} points in {next(sizes)} dimensions; {runs}. "
        "kNN accuracy: of the nearest training images, by the Euclidean distance of "
        "clouds as vectors or by Sinkhorn. Contrastive loss and distances: means over pairs of "
        "held-out images, by the distance of the training."
    ) + (NOTE if any(published(row, {}) for row in rows.row if not row.quick) else "")


def tables(record: Record) -> dict[str, str]:
    """Title -> tables of a run, or of each name that is varied, after a description of them."""
    rows = frame(record.rows)
    tables = {}
    for name, part in rows.groupby(rows.sweep_over.fillna(""), sort=False):
        lines = ({"sweep_value": name} if name else {}) | {"method": "Trained by"}
        over = f", {SWEEP_TITLES.get(name, name)} varied" if name else ""
        tables[f"Nearest-neighbour classification{over}"] = pivot(
            part[part.metric == "knn_accuracy"],
            lines=lines,
            columns="neighbours_by",
            titles=ACCURACIES,
            published=partial(published, config=record.config),
            digits=4,
            paper_digits=4,
        )
        pairs = pd.concat([part[part.metric == metric] for metric in METRICS])
        tables[f"Held-out pairs{over}"] = pivot(pairs, lines=lines, titles=METRICS, digits=4)
    (title, first), *others = tables.items()
    return {title: f"{_about(rows)}\n\n{first}", **dict(others)}


def figures(record: Record) -> dict[str, Figure]:
    """Accuracy of each training over each value that is varied, a figure for each name."""
    rows = frame(record.rows)
    known = [f"trained by {name}" for name in NAMES.values()]
    rows["training"] = rows.method.map(dict(zip(NAMES, known, strict=True)))
    rows = rows[rows.sweep_over.notna() & (rows.metric == "knn_accuracy")]
    figures = {}
    for name, part in rows.groupby("sweep_over", sort=False):
        panels = {
            ACCURACIES[distance]: points(accuracies, "training", "sweep_value")
            for distance, accuracies in part.groupby("neighbours_by", sort=False)
        }
        title = f"Images as clouds: kNN accuracy on held-out images of {part.dataset.iloc[0]}"
        figures[name] = error_bars(panels, SWEEP_TITLES.get(name, name), title, known, sharey=True)
    return figures


def training_figure(
    records: Sequence[dict], tasks: Mapping[str, Sequence[str]], margin: float
) -> Figure:
    """Figure 1 of the report: losses and mean distances of the test pairs over the steps.

    `records` are those of metrics.jsonl; `tasks` has method -> names of its tasks, each of which is
    a thin line; `margin` is that of the contrastive loss.
    """
    steps = pd.DataFrame(records, columns=["part", "step", *LOSSES, *DISTANCES])
    looks = styles([*LOSSES, *DISTANCES])
    figure = Figure(figsize=(10, 3.4 * len(tasks)), layout="constrained")
    axes = figure.subplots(len(tasks), 2, squeeze=False, sharex=True)
    for (losses, distances), (method, runs) in zip(axes, tasks.items(), strict=True):
        for axis, labels in ((losses, LOSSES), (distances, DISTANCES)):
            for (name, label), task in itertools.product(labels.items(), runs):
                line = steps.loc[steps.part == task, ["step", name]].dropna()
                style = {"color": looks[name].colour, "ls": looks[name].dashes, "lw": 1}
                style |= {"marker": looks[name].marker, "ms": 4} if len(line) < MAX_MARKED else {}
                if len(line):
                    axis.plot(line.step, line[name], **style, label=label)
            axis.spines[["top", "right"]].set_visible(False)
            axis.set(xlabel="step", title=f"trained by {NAMES[method]}")
        losses.set(ylabel="loss", yscale="log")
        if len(losses.get_legend_handles_labels()[1]) == len(runs):  # of batches alone
            losses.set_title(f"trained by {NAMES[method]}: a loss of whole batches, not of pairs")
        distances.axhline(margin, color="0.4", ls=":", lw=1)
        distances.set(ylabel=f"mean distance (dotted: margin {margin})")
    figure.suptitle("Training of images as clouds: loss, and distances of held-out pairs")
    legend_below(figure, 4)
    return figure


def in_plane(arrays: Mapping[str, np.ndarray]) -> Float[np.ndarray, "n M 2"]:
    """Clouds of the held-out, then of the training images, in the plane of two principal axes."""
    x = np.concatenate([arrays["points"], arrays["train_points"]])
    n, m, k = x.shape
    if k == 1:
        return np.pad(x, ((0, 0), (0, 0), (0, 1)))
    if k > 2:
        x = PCA(2, random_state=0).fit_transform(x.reshape(-1, k))
    return x.reshape(n, m, 2)


def clouds_figure(
    clouds: dict[str, Float[np.ndarray, "n M 2"]], labels: Int[np.ndarray, " n"]
) -> Figure:
    """Figure 2 of the report: all points of all images by method; classes are digits."""
    figure = Figure(figsize=(5.4 * len(clouds), 5.2), layout="constrained")
    axes = figure.subplots(1, len(clouds), squeeze=False)[0]
    for axis, (method, drawn) in zip(axes, clouds.items(), strict=True):
        for label, look in styles(map(str, np.unique(labels))).items():
            members = drawn[labels == int(label)].reshape(-1, 2)
            marks = {"s": 16, "color": look.colour, "marker": f"${label}$", "alpha": 0.6}
            axis.scatter(*members.T, **marks, linewidths=0, label=label)
        axis.set(title=f"trained by {NAMES[method]}", aspect="equal")
        axis.spines[["top", "right"]].set_visible(False)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", frameon=False, markerscale=3, title="class")
    points_each = next(iter(clouds.values())).shape[1]
    about = f"{len(labels):,} images, {points_each} points each, drawn as the class"
    figure.suptitle(f"Images as clouds: all {about}")
    return figure


def nine_figure(clouds: dict[str, Float[np.ndarray, "n M 2"]], test: Images, label: int) -> Figure:
    """Figure 3 of the report: nine images of class `label`; their points by method."""
    rows = np.flatnonzero(test.labels == label)[:9]
    figure = Figure(figsize=(4 + 4.4 * len(clouds), 4.2), layout="constrained")
    grid = figure.add_gridspec(1, 1 + len(clouds))
    thumbnails = grid[0].subgridspec(3, 3)
    looks = styles(map(str, rows)).values()
    for i, (look, image) in enumerate(zip(looks, rows, strict=True)):
        axis = figure.add_subplot(thumbnails[i // 3, i % 3])
        axis.imshow(test.images[image].squeeze(), cmap="gray_r")
        marks = {"color": look.colour, "marker": look.marker, "s": 60, "clip_on": False}
        axis.scatter(0, 0, **marks, edgecolors="black", linewidths=0.4)
        axis.set(xticks=[], yticks=[])
        for spine in axis.spines.values():
            spine.set(color=look.colour, linewidth=3)
    for column, (method, drawn) in enumerate(clouds.items(), start=1):
        axis = figure.add_subplot(grid[column])
        axis.scatter(*drawn.reshape(-1, 2).T, s=2, color="0.85", linewidths=0)
        for look, image in zip(looks, rows, strict=True):
            style = {"s": 40, "color": look.colour, "marker": look.marker}
            axis.scatter(*drawn[image].T, **style, edgecolors="black", linewidths=0.4)
        axis.set(title=f"trained by {NAMES[method]}", aspect="equal")
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Nine images of class {label}; points of all other images in grey")
    return figure
