"""How right must the first matching be for self-learning without known pairs to find the rest?

Rows of two spaces are matched so that a given share is right and the others are random. From the
map that is fitted to them, self-learning goes on as in the search without known pairs: in random
groups of rows, then on all rows. The initializations of that search are measured beside it. Where
the search fails, this tells two causes apart: either the objective is higher at wrong maps than at
the map of the true pairs, or self-learning does not get there from matchings as wrong as those.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt.methods import Settings, initialization, self_learning
from anchor_opt.methods.initialization import Candidate
from anchor_opt.methods.self_learning import Data, State
from anchor_opt.problem import Problem, Run, partly_shared
from anchor_opt.reports import basin as report
from common import multi_step
from common.errors import check_count
from common.linear import preprocess
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs

PARTLY_RIGHT = "partly_right"  # a matching of which a share is right
SEARCH = "search"  # the initializations of the search without known pairs


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every share of right matches and every initialization of the search, in all pairs."""
    check_count("The number of pairs", len(config.pairs))
    measured = partial(measure, values=settings(Settings, config), work=work)
    todo = []
    for case in cases_of(config, cache):
        method = SEARCH if case.fields["sweep_value"] is None else PARTLY_RIGHT
        todo += tasks.grid([case], [method], config.random_seeds)
    rows = tasks.run(todo, measured, work, title="self-learning").rows
    text = f"{results.joined(report.tables(rows, ()))}\n\n{report.NOTES}"
    return records.finish(work, rows, text, {"basin": report.figure(rows)})


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each pair of spaces with each share of right matches, and with those of the search."""
    for pair in config.pairs:
        names = space_pairs.names(pair)
        data = paired_spaces.load(*names, num_words=config.num_rows, cache=cache)
        spaces = preprocess(data.source), preprocess(data.target)
        sizes = {"num_rows": config.num_rows, "num_anchors": 0, "num_pairs": 0, "shared": 1.0}
        for right in (*config.right, None):
            fields = {
                "experiment": config.experiment,
                **space_pairs.fields(names),
                "num_items": config.num_rows,
                "num_pairs": 0,
                "sweep_over": "right",
                "sweep_value": right,
            }
            name = f"{space_pairs.file_name(*names)}-{SEARCH if right is None else f'{right:g}'}"
            yield Case(name, fields, _drawn(spaces, sizes))


def _drawn(spaces: tuple[Float[Array, "n d"], Float[Array, "n e"]], sizes: dict[str, Any]):
    """Random seed -> rows of both spaces in random order."""
    return lambda random_seed: partly_shared(*spaces, **sizes, random_seed=random_seed)


def measure(task: Task, values: Settings, work: Workdir) -> tuple[list[Row], dict[str, Any]]:
    """The fractions of right matches before and after self-learning, and its last objective."""
    problem = task.case.problem(task.random_seed)
    data = Data(problem.source, problem.target, *problem.pairs, jax.random.key(task.seed))
    right, chosen = task.case.fields["sweep_value"], values.bootstrap
    if right is None:
        candidates = initialization.candidates(data, values.start, values.goat)
    else:
        candidates = [partly_right(problem, right, task.seed)]
    rows = []
    for candidate in candidates:
        maps = multi_step.fit_covariance(candidate.covariance, chosen.group_reweights[0])
        states = self_learning.initial_state(maps), learned(candidate, data, task, values, work)
        first, last = (
            self_learning.current_matches(state, data, chosen.neighbours) for state in states
        )
        found = {
            "first_match": np.mean(first.to_target == problem.known_truth),
            "p_at_1": np.mean(last.to_target == problem.known_truth),
            "objective": last.objective,
        }
        labels = {"initialization": candidate.name}
        rows += [task.row(metric, float(value), labels=labels) for metric, value in found.items()]
    return rows, {}


def partly_right(problem: Problem, right: float, random_seed: int) -> Candidate:
    """The covariance of a one-to-one matching, of which a share of the rows is right at least.

    Args:
      problem: of which all rows have a true partner.
      right: the share, rounded to whole rows; the other rows are matched at random.
      random_seed: of the rows and the random partners.
    """
    rng, truth = np.random.default_rng(random_seed), problem.known_truth
    others = rng.permutation(len(truth))[round(right * len(truth)) :]
    partners = truth.copy()
    partners[others] = truth[rng.permutation(others)]
    return Candidate(PARTLY_RIGHT, problem.source.T @ jnp.take(problem.target, partners, axis=0))


def learned(candidate: Candidate, data: Data, task: Task, values: Settings, work: Workdir) -> State:
    """Self-learning in random groups of rows and then on all rows, as the search has it first."""
    settings, run = values.bootstrap, Run(values, work, task.name, task.seed)
    name, state = next(initialization.through_groups([candidate], data, settings, run.train))
    options = {"stage": f"self-learning-{name}", "num_steps": settings.search_steps, "chunk": 4}
    return self_learning.learn(run.train, state, data, settings, **options)
