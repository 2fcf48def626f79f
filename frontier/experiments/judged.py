"""Changing the embedding model, judged by relevance: does it find what was asked for?

A headline is a query, and its own article, or the article's sentences, are what it asks for
(`frontier/judged.py`). The old model's vectors of all documents are there; of some documents
the new model's as well, to which maps are fitted. The strategies are those of
`isthmus/store/strategies.py`, and

  first numbers   the new model's queries in the old store, the longer vectors cut
  mapped queries  the new model's queries, mapped into the old model's store
  advised         what `advise` chooses from the pairs alone, also for an old model that
                  is gone

Metrics: those of `strategies.Judgement`; `embedded`, the share of the store that the new model has
embedded after so many queries (label `queries`), if it embeds candidates when they are asked for.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common.linear import unit
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from frontier import judged
from frontier.reports import judged as report
from isthmus.store import remapping, strategies
from isthmus.store.estimate import estimates_of
from isthmus.store.migration import Advice, advise
from isthmus.store.strategies import Ranking, Searched

AFTER_QUERIES = (10, 100, 1_000)
MEASURES = ("ndcg_10", "recall_10", "recall_100", "gain", "gain_low", "gain_high")


class Collection(NamedTuple):
    """Unit rows of queries and documents by both models, and to which documents maps are fitted."""

    old_queries: Float[Array, "q d_old"]
    old: Float[Array, "n d_old"]
    new_queries: Float[Array, "q d_new"]
    new: Float[Array, "n d_new"]  # maps see those of `pairs`
    query_of: Int[np.ndarray, " n"]  # the query to which each document is relevant
    pairs: Int[np.ndarray, " p"]  # rows of documents


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every strategy from every number of pairs, between all encoders."""
    values = settings(remapping.Settings, config.remapping)
    measure = partial(measure_strategies, values=values)
    todo = tasks.grid(cases_of(config, cache), ["all"], config.random_seeds)
    rows = results.averaged(tasks.run(todo, measure, work).rows)
    return records.finish(work, rows, report, appendix=report.details(rows))


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each collection, each change from one encoder to another, and each number of pairs."""
    for collection in config.collections:
        by_encoder = {name: judged.load(collection, name, cache) for name in config.encoders}
        for old, new in itertools.permutations(config.encoders, 2):
            for num_pairs in config.known_pairs:
                fields = {
                    "experiment": config.experiment,
                    "dataset": f"{old} -> {new}",
                    "num_items": len(by_encoder[old].documents),
                    "num_pairs": num_pairs,
                    "labels": {"collection": collection},
                }
                name = f"{collection}-{old}-{new}-{num_pairs}-pairs"
                yield Case(
                    name, fields, partial(drawn, by_encoder[old], by_encoder[new], num_pairs)
                )


def drawn(old: judged.Judged, new: judged.Judged, num_pairs: int, random_seed: int) -> Collection:
    """The collection with so many random documents as pairs."""
    order = np.random.default_rng(random_seed).permutation(len(old.documents))
    vectors = (old.queries, old.documents, new.queries, new.documents)
    return Collection(*(unit(jnp.asarray(x)) for x in vectors), old.query_of, order[:num_pairs])


def measure_strategies(task: Task, values: remapping.Settings) -> tuple[list[Row], dict[str, Any]]:
    """The metrics of every strategy."""
    data = task.case.problem(task.random_seed)
    lists, advice = rankings(data, values)
    relevant = np.stack([data.query_of, np.arange(len(data.query_of))], axis=1)
    rows = []
    for judgement in strategies.judge(lists, relevant):
        ranking = judgement.ranking
        labels = {"candidates": ranking.candidates} if ranking.candidates else {}
        about: dict[str, Any] = {"method": ranking.strategy, "labels": labels}
        rows += [task.row(name, getattr(judgement, name), **about) for name in MEASURES]
        if ranking.embedded is not None:
            for count in AFTER_QUERIES:
                embedded = np.union1d(ranking.embedded[:count], data.pairs)
                about["labels"] = labels | {"queries": count}
                rows.append(task.row("embedded", len(embedded) / len(data.old), **about))
    return rows, {name: list(chosen) for name, chosen in advice.items()}


def rankings(
    data: Collection, values: remapping.Settings
) -> tuple[list[Ranking], dict[str, Advice]]:
    """The lists of all strategies, those that are advised among them, and what is advised."""
    pairs = data.old[data.pairs], data.new[data.pairs]
    choice = remapping.choose(*pairs, values)
    aligner = choice.aligner
    mapped_store = unit(aligner.apply(data.old))
    common = min(data.old.shape[1], data.new.shape[1])
    lists = strategies.rankings(
        Searched(data.old_queries, data.old),
        Searched(data.new_queries, data.new),
        Searched(unit(aligner.normalise_target(data.new_queries)), mapped_store),
        {
            "mapped queries": Searched(
                unit(aligner.map_back(data.new_queries)), unit(aligner.normalise_source(data.old))
            ),
            "first numbers": Searched(*(unit(x[:, :common]) for x in (data.new_queries, data.old))),
        },
    )
    estimates = estimates_of(choice, pairs[1], data.pairs, [data.old], data.old, values)
    by_name = {(ranking.strategy, ranking.candidates): ranking for ranking in lists}
    advice = {
        name: advise(estimates, old_model_runs, values)
        for name, old_model_runs in (("advised", True), ("advised, old model gone", False))
    }
    lists += [
        by_name[chosen]._replace(strategy=name, candidates=None) for name, chosen in advice.items()
    ]
    return lists, advice
