"""What a run leaves to read: results.json, table.md and figures."""

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from common.workdir import write_atomically

COLOURS = matplotlib.colormaps["tab10"].colors


def summarise(measured: Iterable[dict]) -> list[dict]:
    """Means over random seeds: rows that differ in `value` and `random_seed` alone become one.

    Args:
      measured: flat rows with a `value` and a `random_seed` each.

    Returns:
      Rows with `mean`, `std` (of a sample, n - 1; 0 for one) and `num_seeds` in their place, in
      the order of first appearance.
    """
    groups: dict[tuple, list[float]] = {}
    for row in measured:
        key = tuple((k, v) for k, v in row.items() if k not in ("value", "random_seed"))
        groups.setdefault(key, []).append(row["value"])
    return [
        dict(key)
        | {
            "mean": float(np.mean(values)),
            "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            "num_seeds": len(values),
        }
        for key, values in groups.items()
    ]


def plus_minus(mean: float | None, std: float | None, digits: int) -> str:
    """`.491 ± .002`, as the field prints numbers up to one; `.491` with no deviation; or a dash."""
    if mean is None:
        return "-"
    known = [mean] if std is None else [mean, std]
    return " ± ".join(re.sub(r"^(-?)0\.", r"\1.", f"{x:.{digits}f}") for x in known)


def measured(row: dict, digits: int = 3) -> str:
    """Mean and deviation of a summarised row; of one random seed the mean alone."""
    return plus_minus(row["mean"], row["std"] if row["num_seeds"] > 1 else None, digits)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, padded so that it reads well on a terminal."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def text(cells):
        return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(lines[0]), rule, *map(text, lines[1:])])


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
    """Two spaces under each other, one column a method, in 2-D by PCA, word groups coloured.

    The principal axes of a column are those of the coloured rows of its upper space and serve for
    both: where the spaces correspond, the two pictures look alike.

    Args:
      panels: column title -> both spaces, row i the same item.
      row_names: of the upper and the lower space.
      groups: label -> rows that share a colour.
      title: of the figure.
    """
    from sklearn.decomposition import PCA  # takes a second, and few figures want it

    figure = Figure(figsize=(3.2 * len(panels), 6.2), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    coloured = sorted({row for members in groups.values() for row in members})
    for column, (name, spaces) in enumerate(panels.items()):
        pca = PCA(2, random_state=0).fit(spaces[0][coloured])
        for row, space in enumerate(spaces):
            axis = axes[row, column]
            points = pca.transform(space)
            axis.scatter(*points.T, s=1, color="0.88", linewidths=0, rasterized=True)
            for colour, (label, members) in zip(COLOURS, groups.items(), strict=False):
                axis.scatter(*points[members].T, s=14, color=colour, label=label, linewidths=0)
            axis.set(xticks=[], yticks=[])
            if row == 0:
                axis.set_title(name)
            if column == 0:
                axis.set_ylabel(row_names[row])
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
    )
    figure.suptitle(title)
    return figure


def curves(
    lines: dict[str, list[tuple[np.ndarray, np.ndarray]]],
    levels: dict[str, float],
    xlabel: str,
    ylabel: str,
    title: str,
) -> Figure:
    """Curves over steps, one thin line a random seed, and levels to compare with.

    Args:
      lines: label -> (x, y) of each random seed.
      levels: label -> height of a horizontal line.
      xlabel: of the axis.
      ylabel: of the axis.
      title: of the figure.
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.subplots()
    for colour, (label, seeds) in zip(COLOURS, lines.items(), strict=False):
        for i, (x, y) in enumerate(seeds):
            style = {"color": colour, "alpha": 0.8, "lw": 1.4, "marker": "o", "ms": 3}
            axis.plot(x, y, **style, label=None if i else label)
    for style, (label, height) in zip(("--", ":", "-."), levels.items(), strict=False):
        axis.axhline(height, color="0.4", ls=style, lw=1, label=label)
    axis.set_xscale("symlog")  # what happens, happens early
    axis.xaxis.set_major_formatter("{x:.0f}")
    axis.set_xlim(left=0)
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axis.legend(frameon=False, loc="center right")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def error_bars(
    panels: dict[str, dict[str, list[tuple[float | str, float, float]]]], xlabel: str, title: str
) -> Figure:
    """Means with their deviations over a value, one panel a measure, one line a method.

    Args:
      panels: label of the y axis -> method -> (value or name, mean, std) of each point; a method
        without points keeps its colour to itself.
      xlabel: of the axis.
      title: of the figure.
    """
    figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (ylabel, methods) in zip(axes, panels.items(), strict=True):
        for colour, (method, points) in zip(COLOURS, methods.items(), strict=False):
            if not points:
                continue
            x, y, deviation = zip(*points, strict=True)
            style = {"color": colour, "marker": "o", "ms": 4, "capsize": 2}
            names = isinstance(x[0], str)
            axis.errorbar(x, y, deviation, label=method, ls="" if names else "-", **style)
        if names:
            # Ends of names at their ticks: turned about their middles they would point elsewhere.
            for label in axis.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
            values = []
        else:
            values = sorted({point[0] for points in methods.values() for point in points})
        if values and (values[-1] > 20 or values[-1] > 20 * values[0] > 0):  # they grow by factors
            axis.set_xscale("log" if values[0] > 0 else "symlog")
            axis.set_xticks(values, [f"{value:g}" for value in values])
            axis.minorticks_off()
        axis.set(xlabel=xlabel, ylabel=ylabel)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.suptitle(title)
    return figure


def bars(
    panels: dict[str, dict[str, list[tuple[float, float]]]], groups: Sequence[str], title: str
) -> Figure:
    """Bars with their deviations in groups, one panel a measure, one colour a method.

    Args:
      panels: label of the y axis -> method -> (mean, std) of each group.
      groups: labels of the groups on the x axis.
      title: of the figure.
    """
    figure = Figure(figsize=(6 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (ylabel, methods) in zip(axes, panels.items(), strict=True):
        width = 0.8 / len(methods)
        for i, (colour, (method, values)) in enumerate(zip(COLOURS, methods.items(), strict=False)):
            place = np.arange(len(groups)) + (i + 0.5) * width - 0.4
            means, deviations = zip(*values, strict=True)
            axis.bar(place, means, width, yerr=deviations, color=colour, label=method, capsize=2)
        axis.set_xticks(range(len(groups)), groups)
        axis.set_ylabel(ylabel)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.suptitle(title)
    return figure
