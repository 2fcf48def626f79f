"""Images and words without photographs: classes of a classifier matched with their names.

Row i of two spaces is the same class of ImageNet: the weights by which a classifier of images
recognises it, or the vector that an encoder of texts gives to its name and definition. All classes
are in both spaces, in unknown order but for the known pairs. Each method brings both spaces into
coordinates of its own; there a class that is in no known pair has to find its partner among all
classes of the other space.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import evaluation
from anchor_opt.methods import chosen
from anchor_opt.problem import Problem, Result, Run, partly_shared
from common import csls
from common.linear import preprocess
from common.metrics import mrr
from common.retrieval import top_k
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.methods import METHODS, Settings
from frontier.reports import classes as report


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Each method from each number of known pairs, between all pairs of spaces."""
    values = settings(Settings, config)

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        problem = task.case.problem(task.random_seed)
        part = Run(values, work, task.name, task.seed)
        result = METHODS[task.method].run(problem._replace(truth=None), part)
        return evaluate(task, problem, result, config.k), dict(result.notes)

    todo = []
    for case in cases_of(config, cache):
        methods = chosen(config.methods, case.fields["num_pairs"], METHODS)
        todo += tasks.grid([case], methods, config.random_seeds)
    measured = tasks.run(todo, measure, work, title="matching classes")
    rows = results.averaged(measured.rows)
    text = f"{results.joined(report.tables(rows, measured.failed))}\n\n{report.NOTES}"
    return records.finish(work, rows, text, {"mrr": report.figure(rows)})


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each pair of spaces with each number of known pairs."""
    for pair in config.pairs:
        names = space_pairs.names(pair)
        data = paired_spaces.load(*names, num_words=None, cache=cache)
        spaces = preprocess(data.source), preprocess(data.target)
        for count in config.known_pairs:
            fields = {
                "experiment": config.experiment,
                **space_pairs.fields(names),
                "num_items": len(data.names),
                "num_pairs": count,
            }
            name = f"{space_pairs.file_name(*names)}-{count}-pairs"
            yield Case(name, fields, _drawn(spaces, count))


def _drawn(spaces: tuple[Float[Array, "n d"], Float[Array, "n e"]], num_pairs: int):
    """Random seed -> all rows of both spaces in random order, with so many known pairs."""
    num_rows = len(spaces[0])
    sizes = {"num_rows": num_rows, "num_pairs": num_pairs, "shared": 1.0}
    # The bootstrap fits anchors, which nothing here reads.
    sizes["num_anchors"] = max(num_pairs, min(300, num_rows))
    return lambda random_seed: partly_shared(*spaces, **sizes, random_seed=random_seed)


def evaluate(
    task: Task,
    problem: Problem,
    result: Result,
    k: int,
) -> list[Row]:
    """P@1 by CSLS and MRR by cosine of the classes that are in no known pair, among all classes.

    Beside them, what a search says about itself in its notes, which is judged by all classes.
    """
    source, target = result.coordinates(problem.source, problem.target)
    asked = np.setdiff1d(np.arange(len(source)), problem.source_pairs)
    partners = problem.known_truth[asked]
    matches = np.asarray(csls.matches(source, target, neighbours=k).to_target)
    nearest = top_k(source[asked], target, k).index
    rows = [
        task.row("p_at_1", np.mean(matches[asked] == partners)),
        task.row("mrr", mrr(nearest, jnp.asarray(partners))),
    ]
    if "failed" in result.notes:
        reached = float(np.mean(matches == problem.known_truth))
        rows += evaluation.search_rows(task, problem, result.notes, reached, k)
    return rows
