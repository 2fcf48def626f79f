"""Tables and figures of `ensemble`."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from common.run.results import Row, markdown, pivot, plus_minus, select
from embed_match.reports.pairs import PAIR, bars
from embed_match.reports.texts import classification


def tables(rows: Sequence[Row], text: str) -> dict[str, str]:
    """Tables of the experiment by title; `text` is the sentence of `texts.trained_on`."""
    by_title = {}
    for task in _tasks(rows):
        gains = select(rows, dataset=task, metric="gain")
        summary = []
        for method in dict.fromkeys(row.method for row in gains):
            means = [row.mean for row in gains if row.method == method]
            positive = f"{sum(mean > 0 for mean in means)} of {len(means)}"
            summary.append([method, plus_minus(float(np.mean(means)), None, 4), positive])
        by_title |= {
            f"Ensembles of pairs, {task} (Figure 6)": (
                f"{text} {classification(rows)} Gain: accuracy above that of the better "
                "member. The poster shows bars without numbers, in which every ensemble gains."
                "\n\n" + markdown(("Ensemble", "Mean gain", "Pairs that gain"), summary)
            ),
            f"Gain of each pair, {task}": pivot(gains, lines=PAIR, columns="method", digits=4),
            f"Single embeddings, {task}": pivot(
                select(rows, dataset=task, method="member"), lines={"source": "Embedding"}
            ),
        }
    return by_title


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """File name -> gain of the ensembles of each pair over its better member."""
    return {f"ensemble-{task}": _figure(rows, task) for task in _tasks(rows)}


def _figure(rows: Sequence[Row], task: str) -> Figure:
    gains = select(rows, dataset=task, metric="gain")
    methods = dict.fromkeys(row.method for row in gains)
    by_method = {method: select(gains, method=method) for method in methods}
    return bars(
        {"gain in accuracy over the better member": by_method},
        f"Ensembles of pairs, {task}: C is CBOW, G is GloVe, glove is pretrained",
    )


def _tasks(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.dataset for row in rows))
