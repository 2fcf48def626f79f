"""Several encoders in common coordinates, judged by relevance: can one store hold them all?

Some documents are known by all encoders. Generalised Procrustes analysis rotates every encoder's
vectors into common coordinates that agree on these documents (`methods/generalised_procrustes.py`).
A headline of BBC news, by one encoder, then asks for its article among documents by another one, or
among documents of which each is by a random one. Methods:

  own model            queries and documents by one encoder, as they are
  maps of two          maps that are fitted to two encoders at a time, without common coordinates
  common coordinates   the rotations of all encoders; `mixed` is the store in which each document is
                       by a random encoder, and `mean` the mean of the vectors of all encoders
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from anchor_opt.methods import generalised_procrustes
from anchor_opt.reports import joined as report
from common import metrics
from common.errors import check_count
from common.linear import apply_map, preprocess, procrustes, unit
from common.retrieval import top_k
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import judged
from common.strategies import Searched

MIXED, MEAN = "mixed", "mean"


class Collection(NamedTuple):
    """Queries and documents by several encoders.

    Attributes:
      spaces: encoder -> its queries and documents, unit rows.
      query_of: the query to which each document is relevant.
      pairs: documents that are known by all encoders, to which maps are fitted.
      encoder_of: the number of the encoder of each document in the mixed store.
    """

    spaces: dict[str, Searched]
    query_of: Int[np.ndarray, " n"]
    pairs: Int[np.ndarray, " p"]
    encoder_of: Int[np.ndarray, " n"]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Each method from each number of known documents, between all encoders."""
    grid = tasks.grid(cases_of(config, cache), SEARCHES, config.random_seeds)
    rows = results.averaged(tasks.run(grid, measure, work).rows)
    text = f"{results.joined(report.tables(rows))}\n\n{report.NOTES}"
    return records.finish(work, rows, text)


def cases_of(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Each collection with each number of known documents."""
    for collection in config.collections:
        by_encoder = {name: judged.load(collection, name, cache) for name in config.encoders}
        num_documents = len(by_encoder[config.encoders[0]].documents)
        for num_pairs in config.known_pairs[collection]:
            check_count("known_pairs", num_pairs, num_documents, f"documents of {collection}")
            fields = {
                "experiment": config.experiment,
                "dataset": collection,
                "num_items": num_documents,
                "num_pairs": num_pairs,
            }
            yield Case(f"{collection}-{num_pairs}-pairs", fields, _drawn(by_encoder, num_pairs))


def _drawn(by_encoder: Mapping[str, judged.Judged], num_pairs: int):
    """Random seed -> the collection with so many random documents that all encoders know."""
    first = next(iter(by_encoder.values()))

    def draw(random_seed: int) -> Collection:
        rng = np.random.default_rng(random_seed)
        pairs = rng.permutation(len(first.documents))[:num_pairs]
        encoder_of = rng.integers(len(by_encoder), size=len(first.documents))
        spaces = {
            name: Searched(*(unit(jnp.asarray(x)) for x in (space.queries, space.documents)))
            for name, space in by_encoder.items()
        }
        return Collection(spaces, first.query_of, pairs, encoder_of)

    return draw


def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
    """nDCG@10 and recall@10 of a method, by the encoders of the queries and of the documents."""
    data = task.case.problem(task.random_seed)
    num_relevant = np.bincount(data.query_of, minlength=len(_queries(data)))
    rows = []
    for (source, target), searched in SEARCHES[task.method](data):
        nearest = np.asarray(top_k(*searched, report.LENGTH).index)
        relevant = data.query_of[nearest] == np.arange(len(nearest))[:, None]
        ndcg = metrics.ndcg(jnp.asarray(relevant), jnp.asarray(num_relevant), report.LENGTH)
        recall = relevant.sum(axis=1) / np.minimum(num_relevant, report.LENGTH)
        for metric, value in (("ndcg_10", ndcg.mean()), ("recall_10", recall.mean())):
            rows.append(task.row(metric, float(value), source=source, target=target))
    return rows, {}


Searches = Iterator[tuple[tuple[str, str], Searched]]  # (queries by, documents by) -> vectors


def own_models(data: Collection) -> Searches:
    """Each encoder alone, as it is."""
    for name, space in data.spaces.items():
        yield (name, name), space


def maps_of_two(data: Collection) -> Searches:
    """The queries of each encoder in each other one's space, by the orthogonal map of the two."""
    spaces = _centred(data)
    for source, target in itertools.permutations(spaces, 2):
        known = [spaces[name].documents[data.pairs] for name in (source, target)]
        queries = apply_map(spaces[source].queries, procrustes(*known))
        yield (source, target), Searched(queries, spaces[target].documents)


def common_coordinates(data: Collection) -> Searches:
    """Queries and documents of all encoders in the coordinates of that of most dimensions."""
    spaces = _centred(data)
    known = {name: space.documents[data.pairs] for name, space in spaces.items()}
    rows = np.repeat(np.arange(len(data.pairs))[:, None], 2, axis=1)
    links = dict.fromkeys(itertools.combinations(known, 2), rows)
    reference = max(known, key=lambda name: known[name].shape[1])
    maps = generalised_procrustes.fit(known, links, reference)
    mapped = {
        name: Searched(*(apply_map(x, maps[name]) for x in space)) for name, space in spaces.items()
    }
    stores = {name: space.documents for name, space in mapped.items()}
    stacked = jnp.stack(list(stores.values()))
    stores[MIXED] = stacked[data.encoder_of, jnp.arange(stacked.shape[1])]
    for (source, space), (target, store) in itertools.product(mapped.items(), stores.items()):
        yield (source, target), Searched(space.queries, store)
    queries = jnp.stack([space.queries for space in mapped.values()])
    yield (MEAN, MEAN), Searched(unit(queries.mean(axis=0)), unit(stacked.mean(axis=0)))


SEARCHES = {
    "own model": own_models,
    "maps of two": maps_of_two,
    "common coordinates": common_coordinates,
}


def _centred(data: Collection) -> dict[str, Searched]:
    """Unit rows, less the mean of the known documents of their encoder, and unit rows again."""
    return {
        name: Searched(*(preprocess(x, space.documents[data.pairs]) for x in space))
        for name, space in data.spaces.items()
    }


def _queries(data: Collection) -> Float[Array, "q d"]:
    return next(iter(data.spaces.values())).queries
