"""Rows, tables and figures of the image experiments."""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from common.data.images import Images
from common.report import COLOURS, error_bars, markdown, measured, save_figure
from common.workdir import Workdir, read_arrays

TITLES = {"sinkhorn": "Sinkhorn", "euclidean": "Euclidean"}
REPORTED = 0.9941  # kNN accuracy, section 4.3 of the report
REPORTED_ON = "MNIST 70k"
NOTE = (
    "The report has one number, 99.41% on the 10,000 test images of MNIST after 10 epochs of "
    "60,000. It seems to be a network trained by the Euclidean distance, not by Sinkhorn: that is "
    "the default of its code, and the losses that were logged with it fit it; so it stands beside "
    "the Euclidean row."
)


def row(found: dict, config: ConfigDict, sets) -> dict:
    """A summarised row in the form of results.json, the report's value beside it."""
    reported = (found["method"], found.get("neighbours_by")) == ("euclidean", "euclidean")
    reported = reported and (config.points, config.dimensions) == (3, 2)
    return found | {
        "experiment": config.experiment,
        "dataset": config.dataset,
        "source": sets.train.split,
        "target": sets.test.split,
        "paper_value": REPORTED if reported else None,
        "paper_dataset": REPORTED_ON if reported else None,
        "standin": config.dataset != "mnist",
        "num_images": len(sets.train.labels),
        "num_test_images": len(sets.test.labels),
        "num_points": config.points,
        "dim": config.dimensions,
    }


def table(config: ConfigDict, rows: list[dict]) -> str:
    """table.md: one line a method, the report's number in a column of its own."""
    cells = []
    for method in config.methods:
        found = _by_metric(rows, method)
        published = found["euclidean"]["paper_value"]
        cells.append(
            [TITLES[method]]
            + [measured(found[name], 4) for name in ("euclidean", "sinkhorn")]
            + [measured(found[name], 3) for name in ("test_positive", "test_negative")]
            + [measured(found["test_loss"], 4)]
            + [f"{published:.4f}".lstrip("0") if published else "-"]
        )
    header = ("Trained by", "kNN, Euclidean", "kNN, Sinkhorn", "d+", "d-", "Loss")
    return (
        f"## Images as clouds: {config.dataset}\n\n{_what(config, rows)}\n\n"
        f"{markdown((*header, f'Report, {REPORTED_ON}: kNN'), cells)}\n\n"
        f"kNN: share of right classes among the {config.neighbours} nearest training images, "
        "by the Euclidean distance of the clouds as vectors or by Sinkhorn. d+, d-: mean "
        f"distance, that trained by, of {config.test_pairs // 2:,} pairs of held-out images of one "
        f"class and of as many of two, margin {config.margin}; Loss: on these. {NOTE}\n"
    )


def sweep_table(config: ConfigDict, rows: list[dict]) -> str:
    """One line a method and value."""
    cells = []
    for value in config.sweep_values:
        for method in config.methods:
            found = _by_metric([r for r in rows if r["sweep_value"] == value], method)
            size = f"{found['euclidean']['num_points'] * found['euclidean']['dim']}"
            both = [measured(found[name], 4) for name in ("euclidean", "sinkhorn")]
            cells.append([f"{value}", TITLES[method], size, *both])
    header = (config.sweep_over, "Trained by", "Numbers", "kNN, Euclidean", "kNN, Sinkhorn")
    return (
        f"## Images as clouds over {config.sweep_over}: {config.dataset}\n\n"
        f"{_what(config, rows)} But for the value varied. Numbers: k M of an image.\n\n"
        f"{markdown(header, cells)}\n"
    )


def throughput(work: Workdir) -> str:
    """A sentence on the pairs a second; the first, compiling, chunk of a part left out."""
    speeds: dict[str, list[float]] = {}
    for record in work.records():
        if "pairs_per_second" in record:
            speeds.setdefault(record["part"], []).append(record["pairs_per_second"])
    later = [speed for part in speeds.values() for speed in part[1:] or part]
    return f"Trained on {np.median(later):,.0f} pairs a second (median)."


def figures(config: ConfigDict, work: Workdir, test: Images) -> None:
    """Writes training.png, clouds.png and nine.png: Figures 1 to 3 of the report."""
    save_figure(_training(config, work), work.path / "training.png")
    clouds = {method: _plane(work, config, method) for method in config.methods}
    save_figure(_classes(clouds, test), work.path / "clouds.png")
    save_figure(_nine(clouds, test, config.figure_class), work.path / "nine.png")


def sweep_figure(config: ConfigDict, work: Workdir, rows: list[dict]) -> None:
    """Writes sweep.png: kNN accuracy of each method over the value varied."""
    panels: dict[str, dict] = {}
    for found in (row for row in rows if row["metric"] == "knn_accuracy"):
        panel = panels.setdefault(f"kNN accuracy, {TITLES[found['neighbours_by']]}", {})
        line = panel.setdefault(f"trained by {TITLES[found['method']]}", [])
        line.append((found["sweep_value"], found["mean"], found["std"]))
    figure = error_bars(panels, config.sweep_over, f"Images as clouds: {config.dataset}")
    save_figure(figure, work.path / "sweep.png")


def _by_metric(rows: list[dict], method: str) -> dict[str, dict]:
    """Metric, or the distance of the neighbours, -> row."""
    mine = [row for row in rows if row["method"] == method]
    return {row.get("neighbours_by", row["metric"]): row for row in mine}


def _what(config: ConfigDict, rows: list[dict]) -> str:
    standin = "" if config.dataset == "mnist" else f" (stand-in for {REPORTED_ON})"
    return (
        f"{config.dataset}{standin}: {rows[0]['num_images']:,} images to train on, "
        f"{rows[0]['num_test_images']:,} held out; {config.points} points in "
        f"R^{config.dimensions}, {config.weights} weights; {config.steps:,} steps of "
        f"{config.batch} pairs; mean ± std over {len(config.random_seeds)} random seeds."
    )


def _training(config: ConfigDict, work: Workdir) -> Figure:
    """Figure 1: losses, and mean distances of the test pairs, a thin line a random seed."""
    records = work.records()
    figure = Figure(figsize=(10, 3.4 * len(config.methods)), layout="constrained")
    axes = figure.subplots(len(config.methods), 2, squeeze=False, sharex=True, sharey="col")
    panels = (
        {"loss": "training batches", "test_loss": "test pairs"},
        {"test_negative": "two classes", "test_positive": "one class"},
    )
    for line, method in zip(axes, config.methods, strict=True):
        for axis, names in zip(line, panels, strict=True):
            for colour, (name, label) in zip(COLOURS, names.items(), strict=False):
                for random_seed in config.random_seeds:
                    part = f"seed{random_seed}-{method}"
                    points = [
                        (r["step"], r[name]) for r in records if r["part"] == part and name in r
                    ]
                    first = random_seed == config.random_seeds[0]
                    x, y = zip(*points, strict=True)
                    axis.plot(x, _smooth(y), color=colour, lw=1.2, label=label if first else None)
            axis.spines[["top", "right"]].set_visible(False)
            axis.legend(frameon=False)
        line[0].set(ylabel="contrastive loss", title=f"trained by {TITLES[method]}", yscale="log")
        line[1].axhline(config.margin, color="0.4", ls=":", lw=1)
        line[1].set(
            ylabel="mean distance", title=f"held-out pairs (dotted: margin {config.margin})"
        )
    for axis in axes[-1]:
        axis.set_xlabel("step")
    return figure


def _smooth(values: list[float]) -> Float[np.ndarray, " n"]:
    """Means over up to ten neighbouring values, where there are many."""
    values = np.array(values)
    width = min(10, max(1, len(values) // 20))
    ends = np.pad(values, (width - 1, 0), mode="edge")
    return np.convolve(ends, np.full(width, 1 / width), mode="valid")


def clouds_file(part: str) -> str:
    """Where in the run's folder a part keeps the clouds of the held-out images."""
    return f"clouds/{part}.npz"


def _plane(work: Workdir, config: ConfigDict, method: str) -> Float[np.ndarray, "n M 2"]:
    """The held-out clouds of the first random seed, in the plane of their principal axes."""
    points = read_arrays(work.path / clouds_file(f"seed{config.random_seeds[0]}-{method}"))[
        "points"
    ]
    n, m, k = points.shape
    if k == 1:
        return np.concatenate([points, np.zeros_like(points)], axis=2)
    if k > 2:
        from sklearn.decomposition import PCA  # takes a second

        points = PCA(2, random_state=0).fit_transform(points.reshape(-1, k))
    return points.reshape(n, m, 2)


def _classes(clouds: dict, test: Images) -> Figure:
    """Figure 2: all points of all held-out images, coloured by class."""
    figure = Figure(figsize=(5.4 * len(clouds), 5.2), layout="constrained")
    axes = figure.subplots(1, len(clouds), squeeze=False)[0]
    for axis, (method, points) in zip(axes, clouds.items(), strict=True):
        for colour, label in zip(COLOURS, np.unique(test.labels), strict=False):
            mine = points[test.labels == label].reshape(-1, 2)
            axis.scatter(*mine.T, s=5, color=colour, alpha=0.6, linewidths=0, label=f"{label}")
        axis.set(title=f"trained by {TITLES[method]}", aspect="equal")
        axis.spines[["top", "right"]].set_visible(False)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", frameon=False, markerscale=3, title="class")
    count = f"{len(test.labels):,} held-out images, {points.shape[1]} points each"
    figure.suptitle(count)
    return figure


def _nine(clouds: dict, test: Images, label: int) -> Figure:
    """Figure 3: nine images of one class, the points of each in its own colour."""
    rows = np.flatnonzero(test.labels == label)[:9]
    figure = Figure(figsize=(4 + 4.4 * len(clouds), 4.2), layout="constrained")
    grid = figure.add_gridspec(1, 1 + len(clouds))
    small = grid[0].subgridspec(3, 3)
    for i, (colour, image) in enumerate(zip(COLOURS, rows, strict=False)):
        axis = figure.add_subplot(small[i // 3, i % 3])
        axis.imshow(test.images[image].squeeze(), cmap="gray_r")
        axis.set(xticks=[], yticks=[])
        for spine in axis.spines.values():
            spine.set(color=colour, linewidth=3)
    for column, (method, points) in enumerate(clouds.items(), start=1):
        axis = figure.add_subplot(grid[column])
        axis.scatter(*points.reshape(-1, 2).T, s=2, color="0.85", linewidths=0)
        for colour, image in zip(COLOURS, rows, strict=False):
            style = {"s": 40, "color": colour, "edgecolors": "black", "linewidths": 0.4}
            axis.scatter(*points[image].T, **style)
        axis.set(title=f"trained by {TITLES[method]}", aspect="equal")
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Nine images of class {label}, grey: all others")
    return figure
