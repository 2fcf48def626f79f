"""Changing the embedding model of a vector store without embedding its texts again.

The store has the vectors of an old model, and queries come from a new one. The store is mapped into
the new model's space, from some items that both have embedded, or from a few and a sample of both
models in unknown order, which `isthmus.discover` matches. What is kept of the retrieval from the
re-embedded store is measured, beside the estimate that needs no re-embedded store.

Metrics: those of `isthmus.store.remapping.kept`, of which recall_10 is the recall of the ten
nearest and within_N what is left of them among N candidates that the new model puts in order. Of
the chosen map and of the old model, `estimate` of each of them from the pairs alone, its
`uncertainty`, its absolute `error` (label `of`: the metric), and `flagged`, whether the estimate of
recall_10 is said not to be trusted.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from ml_collections import ConfigDict

from common.arrays import AnyArray
from common.errors import check_count
from common.linear import unit
from common.retrieval import top_k
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.reports import new_model as report
from isthmus.align.discovery import discover
from isthmus.store import remapping
from isthmus.store.estimate import estimates_of


class Store(NamedTuple):
    """A store of vectors of an old model, queries of a new one, and what both have embedded.

    Queries are items that are not in the store, whose order is random. A map sees those vectors of
    the new model alone that are in pairs.
    """

    old: Float[AnyArray, "n d_old"]
    new: Float[AnyArray, "n d_new"]  # the same items
    old_queries: Float[AnyArray, "q d_old"]
    new_queries: Float[AnyArray, "q d_new"]  # the same items
    num_pairs: int  # first rows of the store that both models have embedded
    random_seed: int  # of the draw


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Every map from every number of pairs, in both directions of each pair of spaces."""
    values = settings(remapping.Settings, config.remapping)
    measure = partial(measure_maps, search_rows=config.search_rows, values=values)
    todo = tasks.grid(cases_of(config, cache), ["maps"], config.random_seeds)
    rows = results.averaged(tasks.run(todo, measure, work).rows)
    return records.finish(work, rows, report)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each pair of spaces in both directions, at each number of known pairs and with all."""
    for pair in config.pairs:
        names = space_pairs.names(pair)
        check_count("num_queries", config.num_queries)
        needed = config.num_rows + config.num_queries
        data = paired_spaces.load(
            *names, num_words=needed, cache=cache, max_rows=max(needed, config.max_rows)
        )
        forward = names, (data.source, data.target)
        backward = names[::-1], (data.target, data.source)
        for (old, new), vectors in (forward, backward):
            for num_pairs in (*config.known_pairs, config.num_rows):
                fields = {
                    "experiment": config.experiment,
                    "dataset": f"{old} -> {new}",
                    "num_items": config.num_rows,
                    "num_pairs": num_pairs,
                }
                name = f"{space_pairs.file_name(old, new)}-{num_pairs}-pairs"
                yield Case(name, fields, partial(drawn, *vectors, config.num_rows, num_pairs))


def drawn(
    old: Float[AnyArray, "N d_old"],
    new: Float[AnyArray, "N d_new"],
    num_rows: int,
    num_pairs: int,
    random_seed: int,
) -> Store:
    """A random store of so many rows, the rest being queries."""
    order = np.random.default_rng(random_seed).permutation(len(old))
    store, queries = order[:num_rows], order[num_rows:]
    return Store(old[store], new[store], old[queries], new[queries], num_pairs, random_seed)


class Known(NamedTuple):
    """The paired rows to which a map is fitted, and their rows of the store."""

    rows: Int[np.ndarray, " p"]
    old: Float[AnyArray, "p d_old"]
    new: Float[AnyArray, "p d_new"]
    failed: bool  # whether the search that found the pairs reports a failure


def known_pairs(store: Store, search_rows: int) -> Known:
    """The store's known pairs; if they are few, those that a search finds among `search_rows`."""
    num_pairs = store.num_pairs
    if num_pairs >= remapping.MANY_PAIRS:
        old, new = store.old[:num_pairs], store.new[:num_pairs]
        return Known(np.arange(num_pairs), old, new, failed=False)
    shuffled = np.random.default_rng(store.random_seed).permutation(search_rows)
    known: Int[np.ndarray, "p 2"] = np.stack(
        [np.arange(num_pairs), np.argsort(shuffled)[:num_pairs]], axis=1
    )
    old, new = store.old[:search_rows], store.new[shuffled]
    options = {"rows": search_rows, "ordered": False, "random_seed": store.random_seed}
    discovered = discover(old, new, known, keep_failed=True, **options)
    old_rows, new_rows = discovered.anchors.T
    return Known(old_rows, old[old_rows], new[new_rows], discovered.failed)


def measure_maps(
    task: Task, search_rows: int, values: remapping.Settings
) -> tuple[list[Row], dict[str, Any]]:
    """Retrieval by every map, by the chosen one and the old model with their estimates."""
    store = task.case.problem(task.random_seed)
    known = known_pairs(store, search_rows)
    pairs = known.old, known.new
    choice = remapping.choose(*pairs, values)
    aligner = choice.aligner
    old, new, old_queries, new_queries = (
        unit(jnp.asarray(x)) for x in (store.old, store.new, store.old_queries, store.new_queries)
    )
    nearest = np.asarray(top_k(new_queries, new, remapping.NEAREST)[1])
    queries = unit(aligner.normalise_target(store.new_queries))
    chosen_store = unit(aligner.apply(store.old))
    scores = {}
    for candidate in choice.candidates:
        mapped_store = chosen_store
        if candidate != choice.best:
            mapped_store = unit(remapping.fitted(aligner, *pairs, candidate).apply(store.old))
        scores[candidate.method] = remapping.kept(queries, mapped_store, nearest)
    back = unit(aligner.map_back(store.new_queries)), unit(aligner.normalise_source(store.old))
    common = min(old.shape[1], new.shape[1])
    first_numbers = (unit(x[:, :common]) for x in (new_queries, old))
    scores |= {
        "chosen": scores[choice.best.method],
        "mapped queries": remapping.kept(*back, nearest),
        "old model": remapping.kept(old_queries, old, nearest),
        "first numbers": remapping.kept(*first_numbers, nearest),
    }
    rows = [
        task.row(metric, value, method=method)
        for method, of_method in scores.items()
        for metric, value in of_method.items()
    ]
    estimates = estimates_of(choice, known.new, known.rows, [old], store.old, values)
    for method, of_method in (("chosen", estimates.by_map), ("old model", estimates.by_old)):
        for metric, estimate in of_method.items():
            about: dict[str, Any] = {"method": method, "labels": {"of": metric}}
            error = abs(estimate.value - scores[method][metric])
            rows.append(task.row("estimate", estimate.value, **about))
            rows.append(task.row("uncertainty", estimate.uncertainty, **about))
            rows.append(task.row("error", error, **about))
    doubtful = estimates.by_map["recall_10"].uncertainty > values.tolerance
    rows.append(task.row("flagged", known.failed or doubtful, method="chosen"))
    return rows, {"failed": known.failed, "chosen": choice.aligner.method}
