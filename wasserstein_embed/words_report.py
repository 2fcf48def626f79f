"""Tables and figures of the word experiment.

Labels of the rows: `set`, the similarity set, and `num_judged`, how many of its pairs have both
words in the vocabulary.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from common.report import COLOURS, Row, pivot

SETS = {
    "simlex999": "SimLex-999",
    "wordsim353": "WordSim-353",
    "men": "MEN",
    "mturk771": "MTurk-771",
    "rare_words": "Rare words",
}


def describe(rows: Sequence[Row]) -> str:
    """What the table shows."""
    row = rows[0]
    covered = {SETS[row.get("set")]: row.get("num_judged") for row in rows}
    pairs = ", ".join(f"{name} {number:,}" for name, number in covered.items())
    return (
        f"The {row.num_items:,} most frequent words of {row.dataset}. Spearman's rank correlation "
        "of negative distances (CBOW: of cosines) with the scores of human judges, over the pairs "
        f"whose words are both in the vocabulary ({pairs}); mean ± std over {row.num_runs} random "
        "seeds. Proxy data: the paper trains on other texts."
    )


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table."""
    lines = {"method": "Embedding", "dim": "Numbers per word"}
    title = "Rank correlation with human judgements"
    return {title: pivot(rows, lines=lines, columns="set", titles=SETS)}


def held_out_figure(records: Sequence[dict], parts: Mapping[str, Sequence[str]]) -> Figure:
    """The loss on held-out texts over the steps, a thin line for each random seed.

    Args:
      records: of metrics.jsonl.
      parts: embedding -> parts of its random seeds; embeddings with another loss are left out.
    """
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axis = figure.subplots()
    shown = [record for record in records if "held_out_loss" in record and record["step"]]
    parts = {n: runs for n, runs in parts.items() if any(r["part"] in runs for r in shown)}
    for colour, (name, runs) in zip(COLOURS, parts.items(), strict=False):
        for part in runs:
            points = [(r["step"], r["held_out_loss"]) for r in shown if r["part"] == part]
            axis.plot(*zip(*points, strict=True), color=colour, lw=1, label=name)
            name = None
    axis.spines[["top", "right"]].set_visible(False)
    axis.set(xlabel="step", ylabel="contrastive loss", title="Loss on held-out texts")
    axis.legend(frameon=False)
    return figure


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
