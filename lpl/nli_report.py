"""Tables and figures of natural language inference."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure
from ml_collections import ConfigDict

from common import report
from common.report import COLOURS, markdown, plus_minus, save_figure
from lpl import loss, paper
from lpl.nli_data import LABELS, Pairs

NAMES = {
    "hypothesis_only": "hypothesis only",
    "baseline": "baseline",
    "map_only": "baseline + f",
    "mse": "baseline + MSE",
    "mse_lpl": "baseline + MSE + LPL",
}
# The paper's baseline may be either: a perceptron without f (4.1), or its whole network "optimized
# with a standard cross-entropy loss" (4.1, of the figures).
REFERENCES = ("baseline", "map_only")
GAINING = ("mse", "mse_lpl")


def surroundings(
    texts: Pairs,
    predicted: Int[np.ndarray, " t"],
    hidden: Float[Array, "t h"],
    config: ConfigDict,
) -> list[dict]:
    """The first pair of label entailment and the nearest ones to its representation (Table 3).

    Args:
      texts: the pairs.
      predicted: label of each.
      hidden: representation of each.
      config: with num_neighbours.
    """
    row = int(np.argmax(texts.labels == 0))
    near = loss.neighbours(hidden, jnp.array([row]), config.num_neighbours)[0]
    return [
        {
            "premise": texts.premises[i],
            "hypothesis": texts.hypotheses[i],
            "label": LABELS[texts.labels[i]],
            "predicted": LABELS[predicted[i]],
        }
        for i in (row, *near.tolist())
    ]


def tables(
    config: ConfigDict, rows: list[dict], measured: list[dict], near: dict[str, dict[str, list]]
) -> str:
    """table.md: accuracies as Figures 3 to 5, gains over the baseline, neighbours as Table 3.

    Args:
      config: of the experiment.
      rows: of results.json.
      measured: the values of each random seed.
      near: set -> method -> a pair and its neighbours.
    """
    text = [published()]
    for name, test in panels(rows):
        mine = [row for row in rows if (row["dataset"], row["test"]) == (name, test)]
        values = [row for row in measured if (row["dataset"], row["test"]) == (name, test)]
        text += [
            accuracies(config, mine),
            "Gain over each reference on the same pairs and start, mean ± std of the runs:",
            _gains(config, values),
            f"Share of a pair's {config.num_neighbours} nearest pairs, by the classifier's first "
            "layer, that have its label:",
            _over_sizes(config, mine, "neighbour_agreement"),
        ]
    for title, methods in near.items():
        text += [
            f"## Neighbours of a pair, as Table 3: {title}",
            f"From {max(config.sizes):,} training pairs, run {config.random_seeds[0]}.",
            _near(methods),
        ]
    return "\n\n".join(text) + "\n"


def published() -> str:
    """What the paper says of its Figure 3 in numbers."""
    return (
        "## The paper's Figure 3\n\nOn SNLI from 1,000 pairs, MSE + LPL is "
        f"{100 * paper.SNLI_GAIN:.1f} points above the baseline "
        f"({100 * paper.SNLI_RELATIVE:.1f}% relative, so "
        f"{paper.NLI['SNLI', 'baseline', 1_000]:.2f} and "
        f"{paper.NLI['SNLI', 'mse_lpl', 1_000]:.2f}); its charts print no other number. SNLI is in "
        "no package; sets called stand-ins below are other text, not to be compared with it."
    )


def accuracies(config: ConfigDict, rows: list[dict]) -> str:
    """A title and the accuracies of one test, from its rows of results.json."""
    standin = " (stand-in)" if rows[0]["standin"] else ""
    return (
        f"## {rows[0]['dataset']}, {rows[0]['test']}{standin}\n\nAccuracy on the {config.split} "
        f"part over the number of training pairs, mean ± std of {len(config.random_seeds)} runs "
        f"that differ in training pairs, start and batches:\n\n"
        f"{_over_sizes(config, rows, 'accuracy')}"
    )


def panels(rows: list[dict]) -> list[tuple[str, str]]:
    """Sets and their tests."""
    return list(dict.fromkeys((row["dataset"], row["test"]) for row in rows))


def figures(config: ConfigDict, rows: list[dict], folder: Path) -> None:
    """Writes a PNG of two charts a test: mean accuracy and its deviation, as Figure 3.

    Args:
      config: of the experiment.
      rows: of results.json.
      folder: of the run.
    """
    for name, test in panels(rows):
        figure = Figure(figsize=(10, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        mine = [
            row
            for row in rows
            if (row["dataset"], row["test"], row["metric"]) == (name, test, "accuracy")
        ]
        for colour, method in zip(COLOURS, config.methods, strict=False):
            line = [row for row in mine if row["method"] == method]
            sizes = [row["num_pairs"] for row in line]
            style = {"color": colour, "marker": "o", "ms": 4, "label": NAMES[method]}
            left.plot(sizes, [row["mean"] for row in line], **style)
            right.plot(sizes, [row["std"] for row in line], **style)
        for axis, label in ((left, "accuracy, mean"), (right, "accuracy, standard deviation")):
            axis.set_xscale("log")
            axis.set_xticks(config.sizes, [f"{size:,}" for size in config.sizes])
            axis.minorticks_off()
            axis.set(xlabel="training pairs", ylabel=label)
            axis.spines[["top", "right"]].set_visible(False)
        right.set_ylim(bottom=0)
        figure.legend(
            *left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
        )
        standin = " (stand-in)" if mine[0]["standin"] else ""
        figure.suptitle(f"{name}, {test}{standin}: {mine[0]['num_seeds']} runs")
        file = f"{name}_{test}.png".lower().replace(" ", "_")
        save_figure(figure, folder / file)


def _over_sizes(config: ConfigDict, rows: list[dict], metric: str) -> str:
    lines = {}
    for row in rows:
        if row["metric"] == metric:
            cell = report.measured(row)
            lines.setdefault(NAMES[row["method"]], []).append(cell)
    return _by_size(config, lines)


def _gains(config: ConfigDict, measured: list[dict]) -> str:
    """Paired by run."""
    found = {}
    for row in measured:
        if row["metric"] == "accuracy":
            key = row["method"], row["num_pairs"]
            found.setdefault(key, {})[row["random_seed"]] = row["value"]
    lines = {}
    for reference in REFERENCES:
        for (method, size), values in found.items():
            base = found.get((reference, size))
            if base and method in GAINING:
                gains = np.array([value - base[seed] for seed, value in values.items()])
                deviation = gains.std(ddof=1) if len(gains) > 1 else None
                name = f"{NAMES[method]} over {NAMES[reference]}"
                cell = plus_minus(gains.mean(), deviation, 3)
                lines.setdefault(name, []).append(cell)
    return _by_size(config, lines)


def _by_size(config: ConfigDict, lines: dict[str, list[str]]) -> str:
    header = ("Method", *(f"{size:,} pairs" for size in config.sizes))
    return markdown(header, [[name, *cells] for name, cells in lines.items()])


def _near(methods: dict[str, list[dict]]) -> str:
    lines = []
    for method, (pair, *nearest) in methods.items():
        if not lines:
            lines.append(["(the pair)", pair["premise"], pair["hypothesis"], pair["label"], ""])
        for other in nearest:
            texts = other["premise"], other["hypothesis"]
            lines.append([NAMES[method], *texts, other["label"], other["predicted"]])
    cells = [[cell.replace("|", "/") for cell in line] for line in lines]
    return markdown(("Nearest by", "Premise", "Hypothesis", "Label", "Predicted"), cells)
