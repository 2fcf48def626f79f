"""A picture of two languages in common coordinates: messages of programs by two encoders."""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from common.data.sets.messages import PROGRAMS
from common.run.figures import styles

NAMES = {"en": "English", "fr": "French", "de": "German", "es": "Spanish", "ja": "Japanese"}
ENCODERS = {"minilm": "MiniLM", "mpnet": "MPNet", "use": "USE", "e5": "E5"}
NUM_DRAWN = 800  # messages of each language
NUM_JOINED = 5  # the first ones, which are also written out
NUM_LETTERS = 64  # of a message that is written out, in a line


class Language(NamedTuple):
    """Messages of a language: their vectors as they are, and mapped unit vectors."""

    vectors: Float[np.ndarray, "t d"]
    mapped: Float[np.ndarray, "t r"]
    texts: Sequence[str]
    title: str


def picture(source: Language, target: Language, programs: Int[np.ndarray, " t"]) -> Figure:
    """Both spaces alone, then in common coordinates, coloured by program, with five translations.

    Row i of both is the same message. Points are placed by t-SNE, which keeps near rows near. The
    lines join the first five messages with their translations, whatever the map makes of them;
    below is the target message that is nearest to each of them among all of the rows.
    """
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(3, 1.5))
    axes = upper.subplots(1, 3)
    some = slice(NUM_DRAWN)
    for axis, language in zip(axes, (source, target), strict=False):
        _draw(axis, _placed(language.vectors[some]), programs[some], "o")
        axis.set_title(language.title)
    both = np.concatenate([source.mapped[some], target.mapped[some]])
    first, second = np.split(_placed(both), 2)
    _draw(axes[2], first, programs[some], "o")
    _draw(axes[2], second, programs[some], "x")
    for number, ends in enumerate(zip(first[:NUM_JOINED], second[:NUM_JOINED], strict=True), 1):
        axes[2].plot(*np.transpose(ends), color="black", lw=1.2)
        axes[2].annotate(str(number), ends[0], fontsize=11, fontweight="bold")
    axes[2].set_title("both after the map (o and x)")
    handles, labels = axes[0].get_legend_handles_labels()
    upper.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    nearest = (source.mapped[:NUM_JOINED] @ target.mapped.T).argmax(axis=1)
    axis = lower.subplots()
    axis.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(-NUM_JOINED, 1))
    axis.axis("off")
    heads = ("", source.title.partition(":")[0], "the nearest after the map", "its translation?")
    lines = [
        (f"{row + 1}", source.texts[row], target.texts[found], "yes" if row == found else "no")
        for row, found in enumerate(nearest)
    ]
    for height, line in enumerate((heads, *lines)):
        for left, text in zip((0, 0.02, 0.46, 0.9), line, strict=True):
            weight = "normal" if height else "bold"
            axis.text(left, 0.5 - height, _cut(text), va="center", fontsize=10, fontweight=weight)
    return figure


def _cut(text: str) -> str:
    """The beginning of a text that fits into its column; some letters are two wide."""
    widths = np.cumsum([1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text])
    if not text or widths[-1] <= NUM_LETTERS:
        return text
    return f"{text[: (widths < NUM_LETTERS - 3).sum()]} ..."


def _placed(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n 2"]:
    from sklearn.manifold import TSNE  # whose import takes a second, for this picture alone

    return TSNE(2, metric="cosine", init="random", random_state=0).fit_transform(rows)


def _draw(
    axis: Axes, points: Float[np.ndarray, "n 2"], programs: Int[np.ndarray, " n"], marker: str
) -> None:
    """Points in the colour of their program; a name is shown for each."""
    for number, (name, style) in enumerate(styles(PROGRAMS).items()):
        of_program = points[programs == number]
        axis.scatter(*of_program.T, s=9, lw=0.7, color=style.colour, marker=marker, label=name)
    axis.set(xticks=[], yticks=[])
