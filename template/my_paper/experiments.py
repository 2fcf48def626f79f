"""The experiments: data, method, metrics, report."""

import dataclasses
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict
from sklearn.datasets import load_digits

from common.run import report
from common.run.settings import settings
from common.run.workdir import Workdir
from my_paper import method

PAPER = 0.90  # Table 1 of the (made-up) paper, on its own digits


@dataclasses.dataclass(frozen=True, kw_only=True)
class MainTable:
    """Values of configs/my_paper/main_table.py."""

    num_train: int
    random_seeds: tuple[int, ...]


def main_table(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Table 1: accuracy of the nearest class mean, the paper's number beside ours."""
    del cache  # scikit-learn ships these digits
    values = settings(MainTable, config)
    x, labels = load_digits(return_X_y=True)

    def accuracy(random_seed: int) -> float:
        order = np.random.default_rng(random_seed).permutation(len(x))
        train, test = order[: values.num_train], order[values.num_train :]
        centres = method.means(x[train], labels[train], 10)
        return float((method.classify(x[test], centres) == labels[test]).mean())

    measured = [
        {"random_seed": s, "value": work.part(f"run{s}", lambda s=s: accuracy(s))}
        for s in values.random_seeds
    ]
    rows = report.summarise(
        measured,
        experiment=config.experiment,
        dataset="digits",
        method="nearest mean",
        metric="accuracy",
        num_items=len(x) - values.num_train,
        proxy=True,
        paper_value=PAPER,
    )
    return report.finish(work, rows, table(rows))


def table(rows: list[report.Row]) -> str:
    """Table 1 as Markdown."""
    return report.pivot(rows, lines={"method": "Method", "dataset": "Data"}, paper=True)


EXPERIMENTS = {"main_table": main_table}
