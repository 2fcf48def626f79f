"""What the tables of several experiments share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

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
