"""Natural language inference: Figures 3 to 5 and Table 3."""

import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common import cli, report, train
from common.errors import UserError
from common.workdir import Workdir, write_atomically, write_json
from lpl import loss, maps, nli, nli_data, nli_report, paper
from lpl.nli_data import Corpus, Part

STEPS = 10  # compiled at once; as many records and two checkpoints are left of a training


class Task(NamedTuple):
    """One set, ready for training.

    Attributes:
      corpus: the texts.
      table: a vector a text.
      parts: pairs as rows of the table: train, and those that are measured.
      near: neighbours of training premises and their weights, by text.
      sampled: rows of the training part, one line a random seed, of which a size takes the first.
      start: state before the first update, of every method.
      draws: key of each random seed's batches.
      settings: of the steps.
    """

    corpus: Corpus
    table: Float[Array, "m d"]
    parts: dict[str, Part]
    near: tuple
    sampled: Int[np.ndarray, "r n"]
    start: nli.State
    draws: Array
    settings: nli.Settings


def nli_experiment(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every method on every set and number of training pairs.

    Args:
      config: of configs/lpl/nli.py.
      work: the run's folder.
      cache: the cache directory of data.

    Returns:
      The tables for the terminal.

    Raises:
      UserError: values that do not fit, or data that can't be read.
    """
    _check(config)
    corpora = {name: nli_data.load(name, config, cache) for name in config.datasets}
    for corpus in corpora.values():
        _check_sizes(corpus, config)
    measured, near = [], {}
    for name, corpus in corpora.items():
        task = _task(corpus, config, cache)
        for size in config.sizes:
            for method in config.methods:
                part = f"{name}-{method}-{size}"

                def compute(task=task, method=method, size=size, part=part):
                    return _measure(task, method, size, config, work, part)

                values, shown = work.part(part, compute)
                shared = {"dataset": corpus.title, "method": method, "num_pairs": size}
                shared |= {"standin": corpus.standin, "dim": task.table.shape[1]}
                measured += [shared | value for value in values]
                if shown:
                    near.setdefault(corpus.title, {})[method] = shown
    rows = [_row(row, config) for row in report.summarise(measured)]
    table = nli_report.tables(config, rows, measured, near)
    write_json(work.path / "results.json", rows)
    write_atomically(work.path / "table.md", table.encode())
    nli_report.figures(config, rows, work.path)
    return table


def _task(corpus: Corpus, config: ConfigDict, cache: Path) -> Task:
    table, parts = nli_data.encode(corpus, config, cache)
    premises = np.unique(parts["train"].premises)
    if config.k >= len(premises):
        raise UserError(
            f"k is {config.k}: {corpus.title} has {len(premises)} training premises, each of which "
            f"has 1 to {len(premises) - 1} neighbours."
        )
    table = jnp.asarray(table)
    near = nli.neighbourhoods(table, jnp.asarray(premises), config.k, config.regularisation)
    wanted = corpus.tests if config.split == "test" else ("validation",)
    parts = {name: part for name, part in parts.items() if name in ("train", *wanted)}
    seeds, pool = config.random_seeds, len(corpus.train.labels)
    sampled = [np.random.default_rng(s).permutation(pool)[: max(config.sizes)] for s in seeds]
    keys = [jax.random.split(jax.random.key(random_seed)) for random_seed in seeds]
    starts, draws = (jnp.stack(part) for part in zip(*keys, strict=True))
    start, apply, classify = nli.init(
        config.map, table.shape[1], config.map_hidden, config.hidden, starts
    )
    settings = nli.Settings(
        apply=apply,
        classify=classify,
        delta=tuple(config.delta[label] for label in nli_data.LABELS),
        floor=config.floor,
        batch=config.batch,
        updates=config.updates,
        updates_per_step=config.updates // STEPS,
    )
    return Task(corpus, table, parts, near, np.array(sampled), start, draws, settings)


def _measure(
    task: Task, method: str, size: int, config: ConfigDict, work: Workdir, part: str
) -> list:
    """One method from one number of pairs: its values in all runs, and neighbours as in Table 3."""
    terms = nli.METHODS[method]
    data = nli.Data(
        task.table,
        *(task.near if terms.lpl else [part[:, :0] for part in task.near]),
        jnp.array([terms.map, terms.premise], jnp.float32),
        jnp.array(config[method].get("gamma", 0.0)),
        jnp.array(config[method].learning_rate),
        jnp.array(size),
        *(jnp.asarray(column[task.sampled]) for column in task.parts["train"]),
        task.draws,
    )
    began = time.perf_counter()
    state = train.run(
        nli.step,
        jax.tree.map(jnp.copy, task.start),  # it is donated
        data,
        task.settings,
        num_steps=STEPS,
        chunk=STEPS // 2,
        work=work,
        part=part,
    )
    jax.block_until_ready(state)
    pairs = config.updates * config.batch * len(config.random_seeds)
    work.log(f"{part}/throughput", 0, {"pairs_per_second": pairs / (time.perf_counter() - began)})
    values, shown = [], {}
    for test, pairs in list(task.parts.items())[1:]:
        labels, hidden = nli.predict(
            state.parameters,
            data.table,
            data.seen,
            jnp.asarray(pairs.premises),
            jnp.asarray(pairs.hypotheses),
            task.settings,
        )
        if not bool(jnp.isfinite(hidden).all()):
            raise UserError(
                f"The training of {part} diverged: lower {method}.learning_rate "
                f"({config[method].learning_rate})."
            )
        runs = zip(config.random_seeds, labels, hidden, strict=True)
        for random_seed, predicted, representation in runs:
            found = {"accuracy": np.mean(np.asarray(predicted) == pairs.labels)}
            if terms.premise:
                found["neighbour_agreement"] = _agreement(representation, pairs.labels, config)
            values += [
                {"test": test, "random_seed": random_seed, "metric": name, "value": float(value)}
                for name, value in found.items()
            ]
        if size == max(config.sizes) and terms.premise and not shown:
            texts = task.corpus.tests.get(test, task.corpus.validation)
            shown = nli_report.surroundings(texts, np.asarray(labels[0]), hidden[0], config)
    train.forget_checkpoints(work, part)
    return [values, shown]


def _agreement(hidden, labels, config) -> float:
    """The share of each pair's neighbours, as in Table 3, that have its label."""
    near = loss.neighbours(hidden, jnp.arange(len(hidden)), config.num_neighbours)
    return np.mean(labels[np.asarray(near)] == labels[:, None])


def _check_sizes(corpus: Corpus, config: ConfigDict) -> None:
    pool = len(corpus.train.labels)
    if max(config.sizes) > pool:
        raise UserError(
            f"sizes asks for {max(config.sizes)} training pairs, {corpus.title} has {pool}: lower "
            f"sizes or raise max_train ({config.max_train})."
        )


def _check(config: ConfigDict) -> None:
    for method in config.methods:
        cli.choose(nli.METHODS, method, "method")
    for name in config.datasets:
        cli.choose(nli_data.CORPORA, name, "set of sentence pairs")
    names = ("sizes", "hidden", "map_hidden", "num_neighbours", "batch", "updates", "k")
    cli.positive(config, *names)
    cli.multiple(config, STEPS, "updates")
    cli.choose(dict.fromkeys(("test", "validation")), config.split, "split")
    cli.choose(maps.MAPS, config.map, "map")
    if config.floor > 0:
        raise UserError(
            f"floor is {config.floor}: a divergence is negative, give a number below 0."
        )
    cli.at_least(config, 3, "max_pieces")
    for method in config.methods:
        cli.positive(config, f"{method}.learning_rate")


def _row(row: dict, config: ConfigDict) -> dict:
    """A summarised row in the form of results.json."""
    key = row["dataset"], row["method"], row["num_pairs"]
    return row | {
        "experiment": config.experiment,
        "source": config.encoder,
        "target": config.encoder,
        "split": config.split,
        "paper_value": paper.NLI.get(key) if row["metric"] == "accuracy" else None,
    }
