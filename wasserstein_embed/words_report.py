"""Tables and figures of the word experiment."""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from ml_collections import ConfigDict
from scipy.ndimage import maximum_filter

from common.data.corpus import Corpus
from common.report import COLOURS, markdown, measured
from common.workdir import Workdir

GRID = 81  # places along each axis of a density; odd, so that no two share a peak midway
MODES = 3  # shown of a word, at most
LABELS = 3  # words at a mode


def tables(
    config: ConfigDict, rows: list[dict], found: dict[str, dict], read: Corpus
) -> tuple[str, str]:
    """Returns table.md whole, and what of it goes to the terminal.

    Args:
      config: of the experiment.
      rows: of results.json.
      found: part -> result of the training.
      read: the texts.
    """
    tokens = int(np.sum(read.tokens >= 0))
    title = (
        f"## Words of {config.dataset}\n\n"
        f"{len(read.words):,} words, {tokens:,} places left in {config.num_texts:,} texts, windows "
        f"of {config.window} to either side. Spearman: rank correlation of similarities with "
        f"cosines of {config.reference}, over {config.compared_pairs:,} random pairs of the "
        f"{next(iter(found.values()))['known']:,} words that both have; mean ± std over "
        f"{len(config.random_seeds)} random seeds. A stand-in: the paper trains on other text and "
        "publishes no such number.\n"
    )
    trained = {}
    for row in rows:
        speeds = [r["pairs_per_s"] for name, r in found.items() if _method(name) == row["method"]]
        known = [speed for speed in speeds if speed]
        trained[row["method"]] = f"{np.mean(known):,.0f}" if known else "- (resumed)"
    short = f"{title}\n{correlations(rows, {'Pairs/s in training': trained})}\n"
    return short + "".join(_neighbours(name, result) for name, result in found.items()), short


def correlations(rows: list[dict], more: dict[str, dict[str, str]] | None = None) -> str:
    """The table of the rows of results.json; `more`: a further column -> method -> its cell."""
    more = more or {}
    cells = [
        [row["method"], str(row["dim"]), measured(row)]
        + [column[row["method"]] for column in more.values()]
        for row in rows
    ]
    return markdown(("Embedding", "Numbers a word", "Spearman", *more), cells)


def picture(
    x: Float[np.ndarray, "V M 2"], words: list[str], chosen: tuple[str, ...]
) -> dict[str, dict]:
    """What `densities` draws: each chosen word's points, density, and what lies at its modes.

    A mode is a local maximum of a Gaussian kernel density of the points, its width a tenth of the
    whole vocabulary's spread. The words at a mode are those of largest density there.
    """
    width = 0.1 * float(np.mean(np.std(x.reshape(-1, 2), axis=0)))
    number = {word: i for i, word in enumerate(words)}
    found = {}
    for word in (word for word in chosen if word in number):
        points = x[number[word]]
        low, high = points.min(axis=0) - 4 * width, points.max(axis=0) + 4 * width
        axes = [np.linspace(low[c], high[c], GRID) for c in range(2)]
        places = np.stack(np.meshgrid(*axes), axis=-1)
        density = _density(points, places[:, :, None], width)
        peaks = np.argwhere(
            (density == maximum_filter(density, 9)) & (density > 0.2 * density.max())
        )
        peaks = sorted(peaks, key=lambda place: -density[tuple(place)])[:MODES]
        modes = []
        for i, j in peaks:
            there = _density(x, places[i, j], width)
            there[number[word]] = 0
            nearest = np.argsort(-there, kind="stable")[:LABELS]
            modes.append({"place": places[i, j].tolist(), "words": [words[k] for k in nearest]})
        found[word] = {
            "points": points.tolist(),
            "axes": [axis.tolist() for axis in axes],
            "density": np.round(density, 4).tolist(),
            "modes": modes,
        }
    return found


def densities(found: dict[str, dict], title: str) -> Figure:
    """A panel a word: its points, their density, and the words that lie at its modes."""
    columns = min(3, len(found))
    lines = -(-len(found) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.8 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(found) :]:
        axis.set_visible(False)
    for axis, (word, drawn) in zip(axes, found.items(), strict=False):
        axis.contourf(*drawn["axes"], drawn["density"], levels=12, cmap="Blues")
        axis.scatter(*np.array(drawn["points"]).T, s=14, color="0.15", linewidths=0)
        middle = [np.mean(ticks) for ticks in drawn["axes"]]
        for mode in drawn["modes"]:
            right, up = (at > centre for at, centre in zip(mode["place"], middle, strict=True))
            axis.annotate(  # towards the middle, so that it stays within the panel
                "\n".join(mode["words"]),
                mode["place"],
                xytext=(-8 if right else 8, -6 if up else 6),
                textcoords="offset points",
                ha="right" if right else "left",
                va="top" if up else "bottom",
                fontsize=8,
                color="firebrick",
            )
        axis.set(title=word, xticks=[], yticks=[])
    figure.suptitle(f"Clouds of words and the words of largest density at their modes: {title}")
    return figure


def curves(work: Workdir, parts: list[str]) -> Figure:
    """Loss, and mean distances of positive and negative pairs, over the steps of the log."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    records = work.records()
    for colour, part in zip(COLOURS, parts, strict=False):
        mine = [record for record in records if record["part"] == part]
        steps = [record["step"] for record in mine]
        left.plot(steps, [record["loss"] for record in mine], color=colour, label=part, lw=1.2)
        for name, style in (("positive", "-"), ("negative", "--")):
            values = [record[name] for record in mine]
            label = f"{part}, {name}" if part == parts[0] else None
            right.plot(steps, values, style, color=colour, label=label, lw=1.2)
    left.set(xlabel="step", ylabel="contrastive loss")
    right.set(xlabel="step", ylabel="mean distance of pairs")
    for axis in (left, right):
        axis.legend(frameon=False, fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Training: each step is the mean over its updates")
    return figure


def _method(part: str) -> str:
    return part.rsplit("-", 1)[0]


def _neighbours(part: str, result: dict) -> str:
    cells = [[word, ", ".join(near)] for word, near in result["neighbours"].items()]
    return f"\nNearest words, {part}:\n\n{markdown(('Word', 'Nearest first'), cells)}\n"


def _density(points, places, width):
    """Kernel density of points [..., M, 2] at places that broadcast against them."""
    return np.exp(-np.sum((points - places) ** 2, axis=-1) / (2 * width**2)).mean(axis=-1)
