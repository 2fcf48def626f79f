"""Table 1: accuracy of the nearest class mean on digits."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from ml_collections import ConfigDict
from sklearn.datasets import load_digits

from common.errors import check_count
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from my_paper import method
from my_paper.reports import main_table as report


class Problem(NamedTuple):
    """Labelled images to learn from, and others to judge by."""

    train: Float[np.ndarray, "n d"]
    train_labels: Int[np.ndarray, " n"]
    test: Float[np.ndarray, "m d"]
    test_labels: Int[np.ndarray, " m"]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures the method on random splits, and returns the table."""
    del cache  # scikit-learn ships these digits
    x, labels = load_digits(return_X_y=True)
    check_count("num_train", config.num_train, len(x) - 1, "images, one of which is to be tested")

    def problem(random_seed: int) -> Problem:
        order = np.random.default_rng(random_seed).permutation(len(x))
        train, test = np.split(order, [config.num_train])
        return Problem(x[train], labels[train], x[test], labels[test])

    fields = {"experiment": config.experiment, "dataset": "digits", "proxy": True}
    fields |= {"num_items": len(x) - config.num_train}
    cases = [Case("digits", fields, problem)]
    measured = tasks.run(tasks.grid(cases, ["nearest mean"], config.random_seeds), measure, work)
    rows = results.averaged(measured.rows)
    return records.finish(work, rows, report)


def measure(task: Task) -> tuple[list[Row], dict]:
    """Accuracy of one random run; the method has nothing to say about itself."""
    problem = task.case.problem(task.random_seed)
    centres = method.means(problem.train, problem.train_labels, 10)
    right = method.classify(problem.test, centres) == problem.test_labels
    return [task.row("accuracy", right.mean())], {}
