"""Tables and figure of the graph experiment."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from ml_collections import ConfigDict

from common.report import COLOURS, markdown, measured
from wasserstein_embed import paper_graphs

NAMES = {"euclidean": "Euclidean", "hyperbolic": "Hyperbolic", "kl": "KL"}
NAMES |= {f"wasserstein_r{k}": f"Wasserstein R^{k}" for k in range(1, 10)}


def tables(config: ConfigDict, rows: list[dict], speeds: list[dict]) -> tuple[str, str]:
    """Returns table.md whole, and what of it goes to the terminal.

    Args:
      config: of the experiment.
      rows: of results.json.
      speeds: of each training: recipe, method, size, seconds of a graph or None, converged.
    """
    title = (
        f"## Shortest paths of {rows[0]['dataset']}\n\n"
        "Distortion, the mean of |embedded - path| / path over all pairs of nodes: mean ± std over "
        f"{config.num_graphs} {_drawn(config)}. Columns: support points of a cloud, dimensions of "
        "a vector. `reference`: the published code's settings; `tuned`: ours, the learning rate "
        "falling to zero for all, clouds by the debiased divergence at lambda "
        f"{config.tuned.wasserstein.epsilon[1]}.\n"
    )
    published = _published(config)
    by_coordinates = ""
    if len({row["method"] for row in rows}) > 1:
        by_coordinates = (
            "\nAt equal numbers of coordinates (M k of clouds of M points in R^k, the dimensions "
            f"of vectors):\n\n{_table(rows, 'dim', least=2)}\n"
        )
    short = "\n".join([title, _table(rows, "size"), published, by_coordinates])
    return short + "\n" + _speeds(speeds), short


def figure(config: ConfigDict, rows: list[dict]) -> Figure:
    """Distortion over numbers of coordinates, a panel a recipe, bars of one deviation."""
    drawn = Figure(figsize=(5 * len(config.recipes), 4.2), layout="constrained")
    axes = drawn.subplots(1, len(config.recipes), squeeze=False, sharey=True)[0]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for axis, recipe in zip(axes, config.recipes, strict=True):
        for colour, method in zip(COLOURS, methods, strict=False):
            mine = [r for r in rows if (r["recipe"], r["method"]) == (recipe, method)]
            if not mine:
                continue
            x, y, deviation = np.array([(r["dim"], r["mean"], r["std"]) for r in mine]).T
            style = {"ls": "-" if method.startswith("wasserstein") else "--", "marker": "o"}
            style |= {"color": colour, "ms": 4, "capsize": 2, "lw": 1.3}
            axis.errorbar(x, y, deviation, label=NAMES.get(method, method), **style)
        ticks = sorted({row["dim"] for row in rows if row["dim"] not in (5, 6, 8, 15)})
        axis.set(xscale="log", yscale="log", xlabel="coordinates of a node", title=recipe)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("distortion")
    axes[0].legend(frameon=False, fontsize="small")
    drawn.suptitle(f"Shortest paths of {rows[0]['dataset']}, {config.num_graphs} {_drawn(config)}")
    return drawn


def _drawn(config: ConfigDict) -> str:
    same = config.graph == "cycle" or Path(config.graph).suffix or Path(config.graph).exists()
    return "random starts" if same else "random graphs"


def _table(rows: list[dict], column: str, least: int = 1) -> str:
    """A line a method and recipe; columns that fewer than `least` methods have are left out."""
    methods = {
        value: {r["method"] for r in rows if r[column] == value} for value in _all(rows, column)
    }
    columns = [value for value, having in methods.items() if len(having) >= least]
    lines: dict[tuple[str, str], dict] = {}
    for row in rows:
        found = lines.setdefault((row["method"], row["recipe"]), {})
        found[row[column]] = measured(row)
    cells = [
        [NAMES.get(method, method), recipe, *(found.get(value, "-") for value in columns)]
        for (method, recipe), found in lines.items()
    ]
    return markdown(("Embedding", "Recipe", *map(str, columns)), cells)


def _all(rows: list[dict], column: str) -> list[int]:
    return sorted({row[column] for row in rows})


def _published(config: ConfigDict) -> str:
    lines = [
        [NAMES[method], *(f"{value:.3f}".lstrip("0") for value in values)]
        for method, values in paper_graphs.DISTORTION.items()
        if paper_graphs.value(config, method, paper_graphs.SIZES[0])
    ]
    if not lines:
        return ""
    return "\nThe reference, means over ten other draws of the same generator:\n\n" + markdown(
        ("Embedding", *map(str, paper_graphs.SIZES)), lines
    )


def _speeds(speeds: list[dict]) -> str:
    """Seconds a graph, compilation included; clouds whose measured plans are not converged."""
    sizes = sorted({speed["size"] for speed in speeds})
    lines: dict[tuple[str, str], dict] = {}
    for speed in speeds:
        found = lines.setdefault((speed["method"], speed["recipe"]), {})
        found[speed["size"]] = f"{speed['seconds']:.1f}" if speed["seconds"] else "-"
    cells = [
        [NAMES.get(method, method), recipe, *(found.get(size, "-") for size in sizes)]
        for (method, recipe), found in lines.items()
    ]
    text = "\nSeconds of training a graph (a dash: the training was resumed, or there is none):\n\n"
    text += markdown(("Embedding", "Recipe", *map(str, sizes)), cells) + "\n"
    short = [
        f"{speed['method']} {speed['size']} {speed['recipe']} ({speed['converged']:.1%})"
        for speed in speeds
        if speed.get("converged", 1.0) < 1
    ]
    if short:
        text += (
            "\nNot all plans have converged (marginals within .05) where these distances were "
            f"measured; share that has: {', '.join(short)}.\n"
        )
    return text
