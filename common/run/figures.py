"""Figures that several experiments draw."""

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from absl import logging
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text
from sklearn.decomposition import PCA

from common.run.workdir import write_atomically

MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")  # a warning of matplotlib
COLOURS = matplotlib.color_sequences["tab10"]


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a PNG atomically.

    Characters that the font lacks, those of Chinese words for instance, are drawn by other fonts of
    the machine that have them. A warning says once which ones are in none of them.
    """
    content, missing = _png(figure)
    if families := _families(missing):
        for text in figure.findobj(Text):
            text.set_fontfamily([*text.get_fontfamily(), *families])
        content, missing = _png(figure)
    if missing:
        logging.log_first_n(
            logging.WARNING,
            "Figures show boxes for %s, which no font of this machine has: install one, such as "
            "Noto Sans CJK for Chinese, Japanese and Korean.",
            1,
            "".join(map(chr, sorted(missing)[:10])),
        )
    write_atomically(path, content)


def _png(figure: Figure) -> tuple[bytes, set[int]]:
    """The drawn figure, and the code points of the characters that its fonts lack."""
    buffer, missing = io.BytesIO(), set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight")
    for warning in caught:
        if glyph := MISSING_GLYPH.match(str(warning.message)):
            missing.add(int(glyph[1]))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return buffer.getvalue(), missing


def _families(missing: Set[int]) -> list[str]:
    """Font families of the machine that have these characters, the one with most of them first."""
    has: dict[str, set[int]] = {}
    for font in fontManager.ttflist if missing else ():
        if not font.name.startswith("Last Resort"):  # it has boxes for all characters
            has.setdefault(font.name, set(missing & FT2Font(font.fname).get_charmap().keys()))
    families = []
    while missing:
        best = max(has, key=lambda name: len(missing & has[name]))
        if not missing & has[best]:
            break
        missing = missing - has[best]
        families.append(best)
    return families


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
    names = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if not isinstance(value, str)]
    for colour, (label, points) in zip(COLOURS, lines.items(), strict=False):
        if points:
            style: dict[str, Any] = {"color": colour, "marker": "o", "ms": 4, "capsize": 2}
            style |= {"label": label, "ls": "" if names else "-"}
            places, means, deviations = zip(*points, strict=True)
            axis.errorbar(places, means, deviations, **style)
    if names:
        # Long names are rotated, anchored at their ends so that they end at their ticks.
        if max(map(len, names)) > 8:
            for label in axis.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
        axis.margins(x=0.25)
    elif numbers[-1] >= 20 * next((value for value in numbers if value > 0), np.inf):
        axis.set_xscale("log" if numbers[0] > 0 else "symlog")
        axis.set_xticks(numbers, [f"{value:g}" for value in numbers])
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


def _panels(labels: Iterable[str], width: float, title: str) -> tuple[Figure, list[Axes]]:
    """A row of axes with these labels of their y axes."""
    labels = list(labels)
    figure = Figure(figsize=(width * len(labels), 4), layout="constrained")
    figure.suptitle(title)
    axes = list(figure.subplots(1, len(labels), squeeze=False)[0])
    for axis, label in zip(axes, labels, strict=True):
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes
