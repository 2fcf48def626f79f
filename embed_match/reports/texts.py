"""What tables say about the texts that embeddings are trained and judged on, and about speed."""

from collections.abc import Sequence

import numpy as np

from common.run.results import Row, markdown, select
from embed_match.embeddings import RandomRuns


def trained_on(dataset: str, num_texts: int, num_words: int) -> str:
    """One sentence about the training text of all embeddings."""
    proxy = "" if dataset == "imdb" else " (a proxy for IMDB)"
    return f"Trained on {num_texts:,} texts of {dataset}{proxy} with {num_words:,} words."


def classification(rows: Sequence[Row]) -> str:
    """How accuracy is measured."""
    seen = " The embeddings are trained on all reviews, those of the test without their labels."
    seen = seen if select(rows, dataset="sentiment") else ""
    news = " News are BBC headlines, a proxy." if select(rows, dataset="news") else ""
    return (
        "Texts are means of unit word vectors, classified by logistic regression; mean ± std over "
        f"{rows[0].num_runs} random runs, each with its own training of every embedding and its "
        f"own random four fifths of the training and of the test texts.{seen}{news}"
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
