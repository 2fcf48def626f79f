"""What the tables and figures of several experiments share."""

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from common.run.figures import legend_below, row_of_panels, slant, styles, within
from common.run.results import markdown
from embed_match.embeddings import RandomRuns

METRICS = ("l2", "p_at_1", "p_at_5", "ot")  # of the poster's Table 1
TITLES = {
    "l2": "Mean l2",
    "gain": "Gain",
    "ot": "Transport",
    "ot_entropic": "Entropic transport",
    "ot_entropic_error": "Marginal error",
    "ot_cost": "Cost",
    "ot_seconds": "Seconds",
    "ot_entropic_seconds": "Seconds, entropic",
}
PAIR = {"source": "Source", "target": "Target"}
HATCHES = ("", "///", "...", "xxx", "\\\\\\")  # of bars


def trained_on(config: Mapping[str, Any]) -> str:
    """One sentence about the training text of all embeddings."""
    dataset = config["dataset"]
    proxy = "" if dataset == "imdb" else " (a proxy for IMDB)"
    sizes = f"{config['num_texts']:,} texts of {dataset}{proxy} with {config['num_words']:,} words"
    return f"Trained on {sizes}."


def classification(rows: pd.DataFrame) -> str:
    """How accuracy is measured."""
    seen = " The embeddings are trained on all reviews, those of the test without their labels."
    seen = seen if "sentiment" in set(rows.dataset) else ""
    news = " News are BBC headlines, a proxy." if "news" in set(rows.dataset) else ""
    return (
        "Texts are means of unit word vectors, classified by logistic regression; mean ± std over "
        f"{rows.num_runs.iloc[0]} random runs, each with its own training of every embedding and "
        f"its own random four fifths of the training and of the test texts.{seen}{news}"
    )


def training_table(trained: RandomRuns) -> dict[str, str]:
    """Title -> the throughput of the first training of each embedding."""
    lines = []
    for name, space in next(iter(trained.spaces.values())).items():
        if name in trained.models:
            speed = space.words_per_second
            speed = "- (resumed)" if np.isnan(speed) else f"{speed:,.0f}"
            lines.append([name, trained.models[name].kind, str(space.vectors.shape[1]), speed])
    header = ("Embedding", "Model", "Dimensions", "Words/s in training")
    return {"Training": markdown(header, lines)}


def bars(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    groups: Sequence[str],
    title: str,
    bounds: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    beside: Mapping[str, Sequence[float | None]] = MappingProxyType({}),
) -> Figure:
    """Groups of bars with error bars, with a panel for each metric.

    `panels`: label of the y axis -> method -> (mean, std) of each group. Error bars end at the
    `bounds` of the metric, by label, or at 0 and 1. `beside`: method -> numbers of a source, dots
    beside its bars.
    """
    figure, axes = row_of_panels(panels, max(6, 0.8 * len(groups)), title)
    looks = styles(method for methods in panels.values() for method in methods)
    hatches = dict(zip(looks, itertools.cycle(HATCHES), strict=False))
    for axis, (label, methods) in zip(axes, panels.items(), strict=True):
        width = 0.8 / len(methods)
        for i, (method, values) in enumerate(methods.items()):
            place = np.arange(len(groups)) + (i + 0.5) * width - 0.4
            means, deviations = zip(*values, strict=True)
            look: dict[str, Any] = {"color": looks[method].colour, "hatch": hatches[method]}
            look |= {"label": method, "capsize": 2, "edgecolor": "white"}
            thick = width * (0.7 if beside else 1.0)
            errors = within(means, deviations, bounds.get(label, (0.0, 1.0)))
            axis.bar(place, means, thick, yerr=errors, **look)
            dots = [np.nan if x is None else x for x in beside.get(method, ())]
            if np.isfinite(dots).any():
                marks = {"s": 18, "color": looks[method].colour, "edgecolors": "black"}
                axis.scatter(place[: len(dots)] + width / 2, dots, **marks, zorder=3)
        axis.axhline(0, color="0.3", lw=0.8)
        axis.set_xticks(range(len(groups)), groups, fontsize="small")
        if max(map(len, groups)) > 8:
            slant(axis)
        axis.margins(y=0.08)
    legend_below(figure, 4)
    return figure
