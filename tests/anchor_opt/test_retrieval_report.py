"""Spot checks of the published numbers against the paper's text, and the tables."""

import pytest

from anchor_opt.reports.retrieval import IMAGES, WORDS
from common.run.results import Row


@pytest.mark.parametrize(
    ("paper", "method", "optimised", "source", "target", "metric", "expected"),
    [
        (WORDS, "gt", "target", "source", "target", "mrr", (0.94, 0.00)),  # Table 1
        (WORDS, "seed", "target", "target", "source", "mrr", (0.15, 0.02)),
        (WORDS, "bootstrap", "target", "source", "target", "jaccard", (0.52, 0.00)),
        (WORDS, "bootstrap", "source", "source", "target", "jaccard", (0.49, 0.00)),  # Table 5
        (IMAGES, "gt", "target", "source", "target", "mrr", (0.27, 0.01)),  # Table 7
        (IMAGES, "seed", "target", "target", "source", "cosine", (0.96, 0.00)),
        (IMAGES, "bootstrap", "source", "target", "source", "mrr", None),  # not published
        (WORDS, "lstsq_truth", "target", "source", "target", "mrr", None),
        (WORDS, "gt", "target", "source", "target", "p_at_1", None),
    ],
)
def test_published_numbers(paper, method, optimised, source, target, metric, expected):
    labels = {"representation": "relative", "optimised": optimised}
    about = {"experiment": "e", "dataset": "source -> target", "metric": metric, "mean": 0.5}
    row = Row(**about, method=method, source=source, target=target, labels=labels)
    number = paper.beside(row)
    assert (number and (number.value, number.std)) == expected
