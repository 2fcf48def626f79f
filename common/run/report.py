"""Results of a run: results.json, tables in Markdown, and figures."""

import dataclasses
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from common.run.workdir import Workdir, write_atomically, write_json

COLOURS = matplotlib.colormaps["tab10"].colors
TITLES = {  # headers of the metrics in tables
    "jaccard": "Jaccard",
    "mrr": "MRR",
    "cosine": "Cosine",
    "p_at_1": "P@1",
    "p_at_5": "P@5",
    "p_at_10": "P@10",
    "f1": "F1",
    "mae": "MAE",
    "accuracy": "Accuracy",
    "knn_accuracy": "kNN accuracy",
    "distortion": "Distortion",
    "spearman": "Spearman",
    "l2": "l2",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One row of results.json: one metric of one method, averaged over random runs.

    Attributes:
      experiment: key of the package's `EXPERIMENTS`.
      dataset: data on which the metric was measured.
      method: name of the method.
      metric: `jaccard`, `mrr`, `cosine`, `p_at_1`, `accuracy` and so on; a fraction, not a percent.
      mean: mean over the random runs.
      std: sample standard deviation (n - 1) over the random runs; 0 for a single run.
      num_runs: number of random runs.
      source: the space of the queries, or that is mapped; None if there is none.
      target: the space that is searched, or mapped to; None if there is none.
      anchors: `continuous` (any vectors) or `discrete` (items of the space); None without anchors.
      num_items: number of words, images, texts or nodes.
      num_pairs: number of known pairs.
      dim: dimension of the vectors, or number of coordinates of an item.
      proxy: whether the data replace those of the paper, which are not available.
      paper_value: the published number to compare with; None if there is none.
      paper_std: its published standard deviation.
      paper_dataset: data on which the paper measured it.
      sweep_over: name of the config value that a sweep varies; None without a sweep.
      sweep_value: that value in this row.
      labels: what else distinguishes the rows of an experiment, for instance
        `{"head": "published"}`; documented in the package's report module.
    """

    experiment: str
    dataset: str
    method: str
    metric: str
    mean: float
    std: float
    num_runs: int
    source: str | None = None
    target: str | None = None
    anchors: str | None = None
    num_items: int | None = None
    num_pairs: int | None = None
    dim: int | None = None
    proxy: bool = False
    paper_value: float | None = None
    paper_std: float | None = None
    paper_dataset: str | None = None
    sweep_over: str | None = None
    sweep_value: float | str | None = None
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def get(self, name: str) -> Any:
        """The field or label of this name; None if the row has neither."""
        return getattr(self, name) if name in FIELDS else self.labels.get(name)

    def matches(self, **wanted: Any) -> bool:
        """Whether each of the named fields or labels has the given value."""
        return all(self.get(name) == value for name, value in wanted.items())


FIELDS = tuple(field.name for field in dataclasses.fields(Row))


def summarise(measured: Iterable[Mapping[str, Any]], **shared: Any) -> list[Row]:
    """Averages measurements that differ only in `value` and `random_seed`.

    Args:
      measured: fields of `Row`, with `value` and `random_seed` instead of `mean`, `std` and
        `num_runs`.
      **shared: fields of `Row` that all measurements share.

    Returns:
      Rows in the order of first appearance.
    """
    groups: dict[tuple, list[float]] = {}
    for one in measured:
        fields = shared | dict(one)
        fields["labels"] = tuple((shared.get("labels", {}) | one.get("labels", {})).items())
        value = fields.pop("value")
        fields.pop("random_seed", None)
        groups.setdefault(tuple(fields.items()), []).append(value)
    return [
        Row(
            mean=float(np.mean(values)),
            std=float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            num_runs=len(values),
            **dict(key) | {"labels": dict(dict(key)["labels"])},
        )
        for key, values in groups.items()
    ]


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows whose fields or labels have the given values."""
    return [row for row in rows if row.matches(**wanted)]


def finish(
    work: Workdir, rows: Sequence[Row], table: str, figures: Mapping[str, Figure] | None = None
) -> str:
    """Writes results.json, table.md and the figures of a run, and returns the table.

    Args:
      work: the run's folder.
      rows: the results.
      table: Markdown.
      figures: file name without `.png` -> figure.
    """
    write_json(work.path / "results.json", [dataclasses.asdict(row) for row in rows])
    write_atomically(work.path / "table.md", (table.strip() + "\n").encode())
    for name, figure in (figures or {}).items():
        save_figure(figure, work.path / f"{name}.png")
    return table


def plus_minus(mean: float | None, std: float | None, digits: int = 3) -> str:
    """`.491 ± .002`; `.491` without a deviation; a dash without a mean."""
    if mean is None:
        return "-"
    known = [mean] if std is None else [mean, std]
    return " ± ".join(re.sub(r"^(-?)0\.", r"\1.", f"{x:.{digits}f}") for x in known)


def measured(row: Row, digits: int = 3) -> str:
    """Mean and standard deviation of a row; the mean alone for a single run."""
    return plus_minus(row.mean, row.std if row.num_runs > 1 else None, digits)


def pivot(
    rows: Iterable[Row],
    *,
    lines: Mapping[str, str],
    columns: str = "metric",
    paper: bool = False,
    digits: int = 3,
    paper_digits: int = 3,
    titles: Mapping[Any, str] = MappingProxyType({}),
) -> str:
    """A Markdown table: a line for each combination of some fields, a column for each value.

    Args:
      rows: the results.
      lines: field or label -> title of its column, `{"method": "Method"}` for instance.
      columns: the field or label whose values become columns.
      paper: whether columns with the paper's numbers are added.
      digits: digits after the point.
      paper_digits: digits after the point of the paper's numbers.
      titles: value of `columns` -> header of its column, in addition to `TITLES`.
    """
    titles = TITLES | dict(titles)
    cells: dict[tuple, dict[Any, Row]] = {}
    for row in rows:
        cells.setdefault(tuple(row.get(name) for name in lines), {})[row.get(columns)] = row
    header = {value: titles.get(value, str(value)) for found in cells.values() for value in found}
    published = [
        value
        for value in header
        if paper and any(f[value].paper_value is not None for f in cells.values() if value in f)
    ]
    body = []
    for key, found in cells.items():
        line = ["-" if part is None else str(part) for part in key]
        line += [measured(found[value], digits) if value in found else "-" for value in header]
        for row in map(found.get, published):
            line.append(plus_minus(row.paper_value, row.paper_std, paper_digits) if row else "-")
        body.append(line)
    papers = [f"Paper: {header[value]}" for value in published]
    return markdown([*lines.values(), *header.values(), *papers], body)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are padded to equal width, for terminals."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def text(cells):
        return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(lines[0]), rule, *map(text, lines[1:])])


def joined(tables: Mapping[str, str]) -> str:
    """The tables as Markdown, each under its title."""
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in tables.items())


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a PNG atomically."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight")
    write_atomically(path, buffer.getvalue())


def scatter_grid(
    panels: dict[str, tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]],
    row_names: tuple[str, str],
    groups: dict[str, list[int]],
    title: str,
) -> Figure:
    """Two spaces in 2-D, one above the other, with a column for each method.

    Both are projected to the principal axes of the coloured rows of the upper space, so that the
    two plots of a column look alike if the spaces correspond.

    Args:
      panels: column title -> both spaces, row i of both being the same item.
      row_names: names of the upper and of the lower space.
      groups: label -> rows with a common colour. The legend has the first letters of a long label.
      title: title of the figure.
    """
    figure = Figure(figsize=(3.2 * len(panels), 6.2), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    coloured = sorted({row for members in groups.values() for row in members})
    for column, (name, spaces) in zip(axes.T, panels.items(), strict=True):
        column[0].set_title(name)
        pca = PCA(2, random_state=0).fit(spaces[0][coloured])
        for axis, points in zip(column, map(pca.transform, spaces), strict=True):
            axis.set(xticks=[], yticks=[])
            axis.scatter(*points.T, s=1, color="0.88", linewidths=0, rasterized=True)
            for colour, (label, members) in zip(COLOURS, groups.items(), strict=False):
                axis.scatter(*points[members].T, s=14, color=colour, label=label, linewidths=0)
    for axis, name in zip(axes[:, 0], row_names, strict=True):
        axis.set_ylabel(name)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    labels = [label if len(label) <= 24 else f"{label[:23]}…" for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(title)
    return figure


def curves(
    lines: dict[str, list[tuple[np.ndarray, np.ndarray]]],
    levels: dict[str, float],
    xlabel: str,
    ylabel: str,
    title: str,
) -> Figure:
    """Curves over steps, one line for each random run, and horizontal lines for reference.

    Args:
      lines: label -> (x, y) of each random run.
      levels: label -> height of a horizontal line.
      xlabel: label of the x axis.
      ylabel: label of the y axis.
      title: title of the figure.
    """
    figure, (axis,) = _panels([ylabel], 6.4, title)
    for colour, (label, runs) in zip(COLOURS, lines.items(), strict=False):
        for i, (x, y) in enumerate(runs):
            style = {"color": colour, "alpha": 0.8, "lw": 1.4, "marker": "o", "ms": 3}
            axis.plot(x, y, **style, label=None if i else label)
    for style, (label, height) in zip(("--", ":", "-."), levels.items(), strict=False):
        axis.axhline(height, color="0.4", ls=style, lw=1, label=label)
    axis.set(xlabel=xlabel, xscale="symlog")  # most of the change is in the first steps
    axis.xaxis.set_major_formatter("{x:.0f}")
    axis.set_xlim(left=0)
    axis.legend(frameon=False, loc="center right")
    return figure


def error_bars(
    panels: dict[str, dict[str, list[tuple[float | str, float, float]]]], xlabel: str, title: str
) -> Figure:
    """Means with error bars over a value, with a panel for each metric and a line for each method.

    Args:
      panels: label of the y axis -> method -> (value or name, mean, std) of each point; a method
        without points is not drawn, and its colour is not used for another. A panel has a legend
        unless its methods are those of the panel before.
      xlabel: label of the x axis.
      title: title of the figure.
    """
    figure, axes = _panels(panels, 5, title)
    explained: list[str] = []
    for axis, methods in zip(axes, panels.values(), strict=True):
        _error_bars(axis, methods)
        axis.set_xlabel(xlabel)
        if list(methods) != explained:
            axis.legend(frameon=False)
            explained = list(methods)
    return figure


def small_multiples(
    panels: dict[str, dict[str, list[tuple[float | str, float, float]]]],
    marked: Mapping[str, float | str],
    ylabel: str,
    title: str,
) -> Figure:
    """Means with error bars, with a small panel for each value that is varied, four in a row.

    Args:
      panels: label of the x axis -> line -> (value or name, mean, std) of each point.
      marked: label of the x axis -> value at which a vertical line is drawn.
      ylabel: label of the y axes, which are of fractions.
      title: title of the figure.
    """
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.6 * rows + 0.8), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    axes[0, 0].set_ylim(0, 1.04)
    for axis, (name, lines) in zip(axes.flat, panels.items(), strict=False):
        _error_bars(axis, lines)
        axis.set_xlabel(name)
        axis.tick_params(labelsize="small")
        axis.spines[["top", "right"]].set_visible(False)
        if name in marked:
            axis.axvline(marked[name], color="0.8", lw=1, zorder=0)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _error_bars(
    axis: Axes, lines: Mapping[str, Sequence[tuple[float | str, float, float]]]
) -> None:
    """Draws the lines, with ticks at all values; points with names are not connected."""
    values = sorted({point[0] for points in lines.values() for point in points})
    names = isinstance(values[0], str)
    for colour, (label, points) in zip(COLOURS, lines.items(), strict=False):
        if points:
            style = {"color": colour, "marker": "o", "ms": 4, "capsize": 2}
            style |= {"label": label, "ls": "" if names else "-"}
            axis.errorbar(*zip(*points, strict=True), **style)
    if names:
        # Long names are rotated, anchored at their ends so that they end at their ticks.
        if max(map(len, values)) > 8:
            for label in axis.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
        axis.margins(x=0.25)
    elif values[-1] >= 20 * next((value for value in values if value > 0), np.inf):
        axis.set_xscale("log" if values[0] > 0 else "symlog")
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()


def bars(
    panels: dict[str, dict[str, list[tuple[float, float]]]], groups: Sequence[str], title: str
) -> Figure:
    """Groups of bars with error bars, with a panel for each metric and a colour for each method.

    Args:
      panels: label of the y axis -> method -> (mean, std) of each group.
      groups: labels of the groups on the x axis.
      title: title of the figure.
    """
    figure, axes = _panels(panels, 6, title)
    for axis, methods in zip(axes, panels.values(), strict=True):
        width = 0.8 / len(methods)
        for i, (colour, (method, values)) in enumerate(zip(COLOURS, methods.items(), strict=False)):
            place = np.arange(len(groups)) + (i + 0.5) * width - 0.4
            means, deviations = zip(*values, strict=True)
            axis.bar(place, means, width, yerr=deviations, color=colour, label=method, capsize=2)
        axis.set_xticks(range(len(groups)), groups, fontsize="small")
    # Panels may have different methods, of which those of the fullest panel need a legend.
    legends = [axis.get_legend_handles_labels() for axis in axes]
    largest = max(legends, key=lambda legend: len(legend[1]))
    figure.legend(*largest, loc="outside right center", frameon=False)
    return figure


def _panels(labels: Iterable[str], width: float, title: str) -> tuple[Figure, Sequence[Axes]]:
    """A row of axes with these labels of their y axes."""
    labels = list(labels)
    figure = Figure(figsize=(width * len(labels), 4), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(1, len(labels), squeeze=False)[0]
    for axis, label in zip(axes, labels, strict=True):
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes
