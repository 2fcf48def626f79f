"""Tables and figures of the word experiment.

Labels of the rows: `reference_space`, whose cosine similarities are the gold similarities, and
`num_compared_pairs`.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from common.report import Row, pivot


def describe(rows: Sequence[Row]) -> str:
    """What the table shows."""
    row = rows[0]
    return (
        f"The {row.num_items:,} most frequent words of {row.dataset}. Spearman: rank correlation "
        f"of negative distances with the cosine similarities of {row.get('reference_space')}, over "
        f"{row.get('num_compared_pairs'):,} random pairs of words; mean ± std over {row.num_runs} "
        "random seeds. Proxy data: the paper trains on other text and publishes no such number."
    )


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table."""
    lines = {"method": "Embedding", "dim": "Numbers per word", "dataset": "Data"}
    return {"Rank correlation with gold similarities": pivot(rows, lines=lines)}


def densities_figure(panels: dict[str, dict], title: str) -> Figure:
    """One panel per word: its points, their density, and the words at its modes.

    Args:
      panels: the result of `words.densities`.
      title: name of the embedding.
    """
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.8 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis, (word, panel) in zip(axes, panels.items(), strict=False):
        axis.contourf(*panel["axes"], panel["density"], levels=12, cmap="Blues")
        axis.scatter(*np.array(panel["points"]).T, s=14, color="0.15", linewidths=0)
        middle = [np.mean(ticks) for ticks in panel["axes"]]
        for mode in panel["modes"]:
            # The text extends towards the middle of the panel, so that it stays inside.
            right, up = (at > centre for at, centre in zip(mode["place"], middle, strict=True))
            side = {"ha": "right" if right else "left", "va": "top" if up else "bottom"}
            offset = (-8 if right else 8, -6 if up else 6)
            style = {"textcoords": "offset points", "fontsize": 8, "color": "firebrick"} | side
            axis.annotate("\n".join(mode["words"]), mode["place"], xytext=offset, **style)
        axis.set(title=word, xticks=[], yticks=[])
    figure.suptitle(f"Clouds of words and the words of largest density at their modes: {title}")
    return figure
