"""Figures that several experiments draw."""

import io
import itertools
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import logging
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from common.files import write_atomically

MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")  # a warning of matplotlib
# The palette of Okabe and Ito, which colour-blind readers can tell apart, with grey in the place of
# its yellow, which is too faint on white. Lines and points have markers as well, and lines dashes;
# the numbers of colours, markers and dashes have no common factor, so that few styles look alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#595959")
MARKERS = "osD^vPX*<hd>p"
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (7, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\")
BELOW = {"loc": "outside lower center", "frameon": False}  # a legend off the data


class Style(NamedTuple):
    """How the lines and points of a name are drawn."""

    colour: str
    marker: str
    dashes: Any


def styles(names: Iterable[str], known: Iterable[str] = ()) -> dict[str, Style]:
    """The style of each name.

    Args:
      names: that a figure shows.
      known: names that several figures show, such as the titles of a paper's methods. Each has the
        style of its place here in all of them; other names have those that come after.
    """
    order = list(dict.fromkeys([*known, *names]))
    return {
        name: Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], DASHES[i % len(DASHES)])
        for i, name in enumerate(order)
    }


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as PNG, atomically."""
    write_atomically(path, png(figure))


def png(figure: Figure) -> bytes:
    """A figure as PNG.

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
    return content


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
      groups: label -> rows with a common colour and marker. The legend has the first letters of a
        long label.
      title: title of the figure.
    """
    figure = Figure(figsize=(3.2 * len(panels), 6.2), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    coloured = sorted({row for members in groups.values() for row in members})
    for column, (name, spaces) in zip(axes.T, panels.items(), strict=True):
        column[0].set_title(name)
        # Of NumPy, since the import of scikit-learn's PCA takes half a second.
        centred = spaces[0][coloured] - spaces[0][coloured].mean(axis=0)
        axes_of_plot = np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for axis, points in zip(column, (x @ axes_of_plot for x in spaces), strict=True):
            axis.set(xticks=[], yticks=[])
            axis.scatter(*points.T, s=1, color="0.88", linewidths=0, rasterized=True)
            for (label, members), style in zip(
                groups.items(), styles(groups).values(), strict=True
            ):
                # The number of a class is its own marker.
                marker, size = (f"${label}$", 45) if label.isdigit() else (style.marker, 18)
                marks = {"s": size, "color": style.colour, "marker": marker, "linewidths": 0}
                axis.scatter(*points[members].T, label=label, **marks)
    for axis, name in zip(axes[:, 0], row_names, strict=True):
        axis.set_ylabel(name)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    labels = [label if len(label) <= 24 else f"{label[:23]}…" for label in labels]
    figure.legend(handles, labels, ncols=6, markerscale=2, **BELOW)
    figure.suptitle(title)
    return figure


Points = Sequence[tuple[float | str, float, float]]  # (value or name, mean, std)


def error_bars(
    panels: Mapping[str, Mapping[str, Points]],
    xlabel: str,
    title: str,
    known: Iterable[str] = (),
    *,
    sharey: bool = False,
) -> Figure:
    """Means with error bars over a value, with a panel for each metric and a line for each method.

    Args:
      panels: label of the y axis -> method -> points; a method without points is not drawn.
      xlabel: label of the x axis.
      title: title of the figure.
      known: of `styles`.
      sharey: whether the panels are of one measure, and have the same y axis.
    """
    figure, axes = _panels(panels, 5, title, sharey=sharey)
    looks = styles((name for lines in panels.values() for name in lines), known)
    for axis, lines in zip(axes, panels.values(), strict=True):
        _error_bars(axis, lines, looks)
        axis.set_xlabel(xlabel)
    legend_below(figure, 3)
    return figure


def small_multiples(
    panels: Mapping[str, Mapping[str, Points]],
    marked: Mapping[str, float | str],
    ylabel: str,
    title: str,
    known: Iterable[str] = (),
) -> Figure:
    """Means with error bars, with a small panel for each value that is varied, four in a row.

    Args:
      panels: label of the x axis -> line -> points.
      marked: label of the x axis -> value at which a vertical line is drawn.
      ylabel: label of the y axes, which are of fractions.
      title: title of the figure.
      known: of `styles`.
    """
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(max(5, 3.2 * columns), 2.6 * rows + 1.2), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    lowest = min(0.0, *(mean - std for _, mean, std in points))
    highest = max(1.0, *(mean + std for _, mean, std in points))
    axes[0, 0].set_ylim(lowest - 0.04, highest + 0.04)
    looks = styles((name for lines in panels.values() for name in lines), known)
    for axis, (name, lines) in zip(axes.flat, panels.items(), strict=False):
        _error_bars(axis, lines, looks)
        axis.set_xlabel(name)
        axis.tick_params(labelsize="small")
        axis.spines[["top", "right"]].set_visible(False)
        if name in marked:
            axis.axvline(marked[name], color="0.8", lw=1, zorder=0)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel)
    legend_below(figure, min(4, columns + 1))
    return figure


def legend_below(figure: Figure, columns: int) -> None:
    """One legend of all axes below them; a label that several axes have stands once."""
    entries = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        entries |= {label: handle for handle, label in zip(handles, labels, strict=True)} | entries
    figure.legend(entries.values(), entries.keys(), ncols=columns, **BELOW)


def _error_bars(axis: Axes, lines: Mapping[str, Points], looks: Mapping[str, Style]) -> None:
    """Draws the lines, with ticks at all values; points with names are not connected."""
    values = sorted({point[0] for points in lines.values() for point in points})
    names = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if not isinstance(value, str)]
    for label, points in lines.items():
        if points:
            look = looks[label]
            style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ms": 5}
            style |= {"label": label, "ls": "" if names else look.dashes, "capsize": 2}
            places, means, deviations = zip(*points, strict=True)
            axis.errorbar(places, means, deviations, **style)
    if names:
        # Long names are rotated, anchored at their ends so that they end at their ticks.
        if max(map(len, names)) > 8:
            for label in axis.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
        axis.margins(x=0.25)
        return
    if numbers[-1] >= 20 * next((value for value in numbers if value > 0), np.inf):
        axis.set_xscale("log" if numbers[0] > 0 else "symlog")
    axis.set_xticks(numbers, [f"{value:g}" for value in numbers])
    axis.minorticks_off()


def bars(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    groups: Sequence[str],
    title: str,
) -> Figure:
    """Groups of bars with error bars, with a panel for each metric.

    A method has its colour and hatching in all panels.

    Args:
      panels: label of the y axis -> method -> (mean, std) of each group.
      groups: labels of the groups on the x axis.
      title: title of the figure.
    """
    figure, axes = _panels(panels, 6, title)
    looks = styles(method for methods in panels.values() for method in methods)
    hatches = dict(zip(looks, itertools.cycle(HATCHES), strict=False))
    for axis, methods in zip(axes, panels.values(), strict=True):
        width = 0.8 / len(methods)
        for i, (method, values) in enumerate(methods.items()):
            place = np.arange(len(groups)) + (i + 0.5) * width - 0.4
            means, deviations = zip(*values, strict=True)
            look: dict[str, Any] = {"color": looks[method].colour, "hatch": hatches[method]}
            axis.bar(
                place,
                means,
                width,
                yerr=deviations,
                label=method,
                capsize=2,
                edgecolor="white",
                **look,
            )
        axis.set_xticks(range(len(groups)), groups, fontsize="small")
        axis.margins(y=0.08)
    legend_below(figure, 4)
    return figure


def _panels(
    labels: Iterable[str], width: float, title: str, *, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A row of axes with these labels of their y axes."""
    labels = list(labels)
    figure = Figure(figsize=(width * len(labels), 4.4), layout="constrained")
    figure.suptitle(title)
    axes = list(figure.subplots(1, len(labels), squeeze=False, sharey=sharey)[0])
    for axis, label in zip(axes, labels, strict=True):
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes
