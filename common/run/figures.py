"""Figures that several experiments draw."""

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import logging
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from common.files import write_atomically

MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")  # a warning of matplotlib
# The palette of Okabe and Ito, which colour-blind readers can tell apart, with grey in the place of
# its yellow, which is too faint on white, and with violet and brown. Lines and points have markers
# as well, and lines dashes; the numbers of colours, markers and dashes have no common factor, so
# that few styles look alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#595959")
COLOURS += ("#5531E7", "#8B1A1A")
MARKERS = "osD^vPX*<hd>p"
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (7, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (4, 1)))
BELOW = {"loc": "outside lower center", "frameon": False}  # a legend off the data


class Style(NamedTuple):
    """How the lines and points of a name are drawn."""

    colour: str
    marker: str
    dashes: Any


def styles(names: Iterable[str], known: Iterable[str] = ()) -> dict[str, Style]:
    """The style of each name: by its place in `known`, which several figures share, or after it.

    No two of `names`, the lines of one figure, share a colour as long as there are enough of them.
    """
    names = list(dict.fromkeys(names))
    order = list(dict.fromkeys([*known, *names]))
    looks = {
        name: Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], DASHES[i % len(DASHES)])
        for i, name in enumerate(order)
    }
    for i, name in enumerate(names):
        if looks[name].colour in {looks[other].colour for other in names[:i]}:
            used = {looks[other].colour for other in names}
            free = [colour for colour in COLOURS if colour not in used] or [looks[name].colour]
            looks[name] = looks[name]._replace(colour=free[0])
    return looks


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as PNG, atomically."""
    write_atomically(path, png(figure))


def png(figure: Figure) -> bytes:
    """A figure as PNG; an empty one, and a warning, if it cannot be drawn.

    Characters that the font lacks are drawn by other fonts of the machine that have them; a warning
    says once which ones are in none.
    """
    try:
        content, missing = _png(figure)
    except Exception as error:  # of fonts and the user's settings, which do not end a run
        title = figure.get_suptitle()
        logging.warning("'%s' is not drawn (%s: %s).", title, type(error).__name__, error)
        return _png(Figure())[0]
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
    for text in figure.findobj(Text):  # a matplotlibrc may ask for a LaTeX that is not there
        text.set_usetex(False)
    usual = rc_context({"text.usetex": False})
    with usual, warnings.catch_warnings(record=True) as caught:
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
    has = {
        font.name: missing & FT2Font(font.fname).get_charmap().keys()
        for font in (fontManager.ttflist if missing else ())
        if not font.name.startswith("Last Resort")  # it has boxes for all characters
    }
    families = []
    while missing & set().union(*has.values()):
        families.append(max(has, key=lambda name: len(missing & has[name])))
        missing = missing - has[families[-1]]
    return families


Points = Sequence[tuple[float | str, float, float]]  # (value or name, mean, std)


def error_bars(
    panels: Mapping[str, Mapping[str, Points]],
    xlabel: str,
    title: str,
    known: Iterable[str] = (),
    *,
    sharey: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Figure:
    """Means with error bars over a value, with a panel for each metric and a line for each method.

    `panels`: label of the y axis -> method -> points; `known` as in `styles`. Bars end at `bounds`,
    between which the metric is; a panel of gains, whose label begins so, has a line at zero.
    """
    figure, axes = row_of_panels(panels, 5, title, sharey=sharey)
    looks = styles((name for lines in panels.values() for name in lines), known)
    for axis, (label, lines) in zip(axes, panels.items(), strict=True):
        is_gain = label.startswith("gain")
        _error_bars(axis, lines, looks, (-bounds[1], bounds[1]) if is_gain else bounds)
        axis.set_xlabel(xlabel)
        if is_gain:
            axis.axhline(0, color="0.6", lw=1, zorder=0)
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

    `panels`: label of the x axis -> line -> points; `marked`: that label -> a vertical line. The
    metric, and so its error bars, are from 0 to 1.
    """
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(max(5, 3.2 * columns), 2.6 * rows + 1.2), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    axes[0, 0].set_ylim(-0.04, 1.04)
    looks = styles((name for lines in panels.values() for name in lines), known)
    for axis, (name, lines) in zip(axes.flat, panels.items(), strict=False):
        _error_bars(axis, lines, looks, (0.0, 1.0))
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


def _error_bars(
    axis: Axes, lines: Mapping[str, Points], looks: Mapping[str, Style], bounds: tuple[float, float]
) -> None:
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
            axis.errorbar(places, means, within(means, deviations, bounds), **style)
    if names:
        if max(map(len, names)) > 8:
            slant(axis)
        axis.margins(x=0.25)
        return
    if numbers[-1] >= 20 * next((value for value in numbers if value > 0), np.inf):
        axis.set_xscale("log" if numbers[0] > 0 else "symlog")
    axis.set_xticks(numbers, [f"{value:g}" for value in numbers])
    axis.minorticks_off()


def within(
    means: Sequence[float], deviations: Sequence[float], bounds: tuple[float, float]
) -> Float[np.ndarray, "2 n"]:
    """Lengths of error bars below and above means, which end at the bounds of the metric."""
    lengths = np.stack([np.subtract(means, bounds[0]), np.subtract(bounds[1], means)])
    return np.clip(deviations, 0, np.maximum(lengths, 0))


def slant(axis: Axes) -> None:
    """Rotates long names below an axis, anchored at their ends so that they end at their ticks."""
    for label in axis.get_xticklabels():
        label.set(rotation=30, ha="right", rotation_mode="anchor")


def row_of_panels(
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
