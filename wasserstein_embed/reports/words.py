"""Tables and figures of the word experiment.

Labels of the rows: `set`, the similarity set, and `num_judged`, how many of its pairs have both
words in the vocabulary.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from common.run.figures import BELOW, styles
from common.run.records import Record
from common.run.results import frame, markdown, pivot
from wasserstein_embed.words import Density

SETS = {
    "simlex999": "SimLex-999",
    "wordsim353": "WordSim-353",
    "men": "MEN",
    "mturk771": "MTurk-771",
    "rare_words": "Rare words",
}


def title_of(method: str) -> str:
    """Title of an embedding in a figure: 'Wasserstein R^2' of wasserstein_r2."""
    geometry, size = method.rsplit("_", 1)
    return f"{geometry.capitalize()} R^{size.removeprefix('r')}"


def tables(record: Record) -> dict[str, str]:
    """Title -> table, after a description of it."""
    rows = frame(record.rows)
    judged = dict(zip(rows["set"].map(SETS), rows.num_judged, strict=True))
    pairs = ", ".join(f"{name} {number:,}" for name, number in judged.items())
    about = (
        f"The {rows.num_items[0]:,} most frequent words of {rows.dataset[0]}. Spearman's rank "
        "correlation of negative distances (CBOW: of cosines) with the scores of human judges, "
        f"over the pairs whose words are both in the vocabulary ({pairs}); mean ± std over "
        f"{rows.num_runs[0]} random seeds. Proxy data: the paper trains on other texts."
    )
    lines = {"method": "Embedding", "dim": "Numbers per word"}
    table = pivot(record.rows, lines=lines, columns="set", titles=SETS)
    return {"Rank correlation with human judgements": f"{about}\n\n{table}"}


def nearest_table(nearest: Mapping[str, Sequence[str]]) -> str:
    """The nearest words of each query, nearest first."""
    return markdown(("Word", "Nearest first"), [(w, ", ".join(n)) for w, n in nearest.items()])


def held_out_figure(records: Sequence[dict], tasks: Mapping[str, Sequence[str]]) -> Figure:
    """The loss on held-out texts over the steps, a thin line for each random seed.

    `records` are those of metrics.jsonl; `tasks` has embedding -> names of its tasks. Embeddings
    with another loss are left out.
    """
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axis = figure.subplots()
    steps = pd.DataFrame(records, columns=["part", "step", "held_out_loss"]).dropna()
    steps = steps[steps.step > 0]
    tasks = {n: runs for n, runs in tasks.items() if steps.part.isin(runs).any()}
    for (name, runs), look in zip(tasks.items(), styles(tasks).values(), strict=True):
        for task in runs:
            line = steps[steps.part == task]
            style = {"color": look.colour, "ls": look.dashes, "marker": look.marker, "ms": 4}
            label = title_of(name) if task == runs[0] else None
            axis.plot(line.step, line.held_out_loss, **style, lw=1, label=label)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set(xlabel="step", ylabel="contrastive loss")
    figure.suptitle("Words as clouds and as vectors: loss on held-out texts")
    figure.legend(ncols=3, **BELOW)
    return figure


def densities_figure(densities: Mapping[str, Density], title: str) -> Figure:
    """One panel per word: its points, their density, and below the near words of each mode."""
    columns = min(3, len(densities))
    lines = -(-len(densities) // columns)
    figure = Figure(figsize=(4.2 * columns, 4.2 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(densities) :]:
        axis.set_visible(False)
    for axis, (word, density) in zip(axes, densities.items(), strict=False):
        axis.contourf(density.x, density.y, density.values, levels=12, cmap="Blues")
        axis.scatter(*density.points.T, s=14, color="0.15", linewidths=0)
        listed = []
        for number, mode in enumerate(density.modes, 1):
            style = {"textcoords": "offset points", "color": "firebrick", "weight": "bold"}
            axis.annotate(str(number), mode.place, xytext=(5, 4), **style)
            listed.append(f"{number}: {', '.join(mode.words) or '-'}")
        axis.set_title(word)
        axis.set_xlabel("\n".join(listed), color="firebrick", loc="left")
        axis.set(xticks=[], yticks=[])
    figure.suptitle(f"Clouds of words, and near words at each mode of their density: {title}")
    return figure
