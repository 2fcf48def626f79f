"""Tables and figures of the word experiment.

Labels of the rows: `set`, the similarity set, and `num_judged`, how many of its pairs have both
words in the vocabulary.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from common.run.figures import COLOURS
from common.run.results import Row, pivot

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
    """One panel per word: its points, their density, and below the near words of each mode.

    Args:
      panels: the result of `words.densities`.
      title: name of the embedding.
    """
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(4.2 * columns, 4.2 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis, (word, panel) in zip(axes, panels.items(), strict=False):
        axis.contourf(*panel["axes"], panel["density"], levels=12, cmap="Blues")
        axis.scatter(*np.array(panel["points"]).T, s=14, color="0.15", linewidths=0)
        listed = []
        for number, mode in enumerate(panel["modes"], 1):
            style = {"textcoords": "offset points", "color": "firebrick", "weight": "bold"}
            axis.annotate(str(number), mode["place"], xytext=(5, 4), **style)
            listed.append(f"{number}: {', '.join(mode['words']) or '-'}")
        axis.set_title(word)
        axis.set_xlabel("\n".join(listed), color="firebrick", loc="left")
        axis.set(xticks=[], yticks=[])
    figure.suptitle(f"Clouds of words, and near words at each mode of their density: {title}")
    return figure
