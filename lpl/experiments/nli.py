"""Figures 3 to 5 and Table 3: every method on every data set and number of training pairs."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from common.errors import UserError, check_choice, check_count
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from lpl import nli, nli_data, training
from lpl.reports import nli as report


class Measured(NamedTuple):
    """Rows averaged over random seeds; data set -> method -> nearest pairs of a pair (Table 3)."""

    rows: list[Row]
    nearest: dict[str, dict]


class Problem(NamedTuple):
    """A data set, of which each random run has its own training pairs.

    Attributes:
      data: what a training reads.
      parameters: initial ones of all random runs.
      apply: applies the map.
      classify: applies the classifier.
      judged: name -> the texts of pairs whose labels are predicted, and their encoded pairs.
    """

    data: nli.Data
    parameters: dict[str, training.Parameters]
    apply: training.Apply
    classify: training.Apply
    judged: dict[str, tuple[nli_data.SentencePairs, nli.EncodedPairs]]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all methods, and returns the tables."""
    rows, nearest = measure_all(config, work, cache)
    return records.finish(work, rows, report, quoted=report.nearest_tables(nearest))


def measure_all(config: ConfigDict, work: Workdir, cache: Path) -> Measured:
    """Measures all methods on every data set, each in all random runs at once."""
    limits, seeds = settings(nli_data.Limits, config), config.random_seeds
    for name in config.methods:
        check_choice("method", name, nli.METHODS)
    corpora = {name: nli_data.load(name, limits, cache) for name in config.datasets}

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        problem, method = task.case.problem(task.random_seed), nli.METHODS[task.method]
        functions = {"apply": problem.apply, "classify": problem.classify}
        static = settings(nli.Settings, config, **functions, **config[task.method])
        num_pairs = task.case.fields["num_pairs"]
        data = nli.restrict(problem.data, method, num_pairs)
        state = nli.init_state(jax.tree.map(jnp.copy, problem.parameters), static)  # donated
        about = {"work": work, "part": task.name, "runs": len(seeds)}
        state = training.run(nli.step, state, data, static, **about)
        rows, nearest = [], []
        for test, (texts, pairs) in problem.judged.items():
            labels, hidden = nli.predict(state.parameters, data, pairs, static)
            for i, random_seed in enumerate(seeds):
                about = {"labels": {"test": test}, "random_seed": random_seed}
                accuracy = np.mean(np.asarray(labels[i]) == pairs.labels)
                rows.append(task.row("accuracy", accuracy, **about))
                near = nli.nearest_pairs(hidden[i], pairs, config.num_neighbours)
                agreement = nli.neighbour_agreement(near, labels[i], pairs.labels)
                rows.append(task.row("neighbour_agreement", agreement, **about))
                if num_pairs == max(config.num_pairs) and not nearest:
                    nearest = report.nearest_pairs(texts, np.asarray(labels[i]), near)
        return rows, {"nearest": nearest}

    rows, nearest = [], {}
    for name, corpus in corpora.items():
        problem = prepare(corpus, config, cache)
        fields = {"experiment": config.experiment, "dataset": corpus.title, "proxy": corpus.proxy}
        fields |= {"source": config.encoder, "target": config.encoder}
        fields |= {"dim": problem.data.vectors.shape[1], "labels": {"split": config.split}}
        cases = [
            Case(f"{name}-{n}", fields | {"num_pairs": n}, lambda _, problem=problem: problem)
            for n in config.num_pairs
        ]
        grid = tasks.grid(cases, config.methods, [tasks.ALL_SEEDS])
        measured = tasks.run(grid, measure, work, title=corpus.title)
        rows += measured.rows
        nearest[corpus.title] = {
            task.method: pairs for task in grid if (pairs := measured.notes[task.name]["nearest"])
        }
    return Measured(results.averaged(rows + report.gains(rows)), nearest)


def prepare(corpus: nli_data.Corpus, config: ConfigDict, cache: Path) -> Problem:
    """The texts encoded; for each random run its random training pairs, initialisation and batches.

    UserError: fewer training pairs than asked for, or an unknown split or encoder.
    """
    largest, available = max(config.num_pairs), len(corpus.train.labels)
    if largest > available:
        raise UserError(
            f"num_pairs asks for {largest} training pairs, but {corpus.title} has {available}: "
            "lower num_pairs or raise max_train."
        )
    judged = corpus.judged(config.split)
    smallest = min(len(pairs.labels) for pairs in judged.values())
    check_count("num_neighbours", config.num_neighbours, smallest - 1, "other pairs")
    vectors, parts = nli_data.encode(
        corpus, config.encoder, cache, max_pieces=config.max_pieces, smoothing=config.smoothing
    )
    premises = jnp.asarray(np.unique(parts["train"].premises))
    vectors = jnp.asarray(vectors)
    neighbours, weights = nli.premise_neighbours(vectors, premises, config.k, config.regularisation)
    rows = np.array(
        [np.random.default_rng(s).permutation(available)[:largest] for s in config.random_seeds]
    )
    keys = jnp.stack([jax.random.split(jax.random.key(seed)) for seed in config.random_seeds])
    data = nli.Data(
        vectors=vectors,
        neighbours=neighbours,
        weights=weights,
        inputs=jnp.ones(2),
        num_pairs=jnp.array(largest),
        pairs=nli.EncodedPairs(*(jnp.asarray(column[rows]) for column in parts["train"])),
        key=keys[:, 1],
    )
    sizes = vectors.shape[1], config.map_hidden, config.classifier_hidden
    parameters, apply, classify = nli.init(config.map, *sizes, keys[:, 0])
    judged = {name: (texts, parts[name]) for name, texts in judged.items()}
    return Problem(data, parameters, apply, classify, judged)
