"""Ways to answer queries when the embedding model of a vector store changes, and their judgement.

  old model          its queries in its store: nothing is changed
  re-embedded        the new model's queries in its own store: everything is embedded again
  mapped store       the new model's queries in the store that is mapped into its space
  mapped candidates  the first documents of the mapped store, embedded by the new model and put in
                     its order
  old candidates     the first documents of the old model, likewise

Quality is judged by documents that are known to be relevant to a query.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from common import metrics
from common.alignment import Aligner
from common.arrays import AnyArray
from common.linear import unit
from common.retrieval import in_order, top_k
from isthmus.store.remapping import LENGTHS

DEPTH = 100  # documents of a list
RESAMPLES = 2_000  # of the bootstrap over queries


class Searched(NamedTuple):
    """Unit rows of queries, and of the documents among which they are sought."""

    queries: Float[AnyArray, "q d"]
    documents: Float[AnyArray, "n d"]


def first_numbers(queries: Float[Array, "q d_new"], documents: Float[Array, "n d_old"]) -> Searched:
    """The new model's queries among old documents as they are, the longer vectors cut."""
    common = min(queries.shape[1], documents.shape[1])
    return Searched(unit(queries[:, :common]), unit(documents[:, :common]))


def mapped_back(
    aligner: Aligner,
    queries: Float[AnyArray, "q d_target"],
    documents: Float[AnyArray, "n d_source"],
) -> Searched:
    """The new model's queries, mapped to the old documents; all are raw rows."""
    normalised = aligner.normalise_source(documents)
    return Searched(unit(aligner.map_back(queries)), unit(normalised))


class Ranking(NamedTuple):
    """The first documents of each query.

    Attributes:
      strategy: its name.
      candidates: number of documents that the new model has put in order; None: it has not.
      documents: rows of the store, best first, at most `DEPTH`.
      embedded: the candidates that the new model has to embed; None if there are none.
    """

    strategy: str
    candidates: int | None
    documents: Int[AnyArray, "q k"]
    embedded: Int[AnyArray, "q c"] | None


def rankings(
    old: Searched, new: Searched, mapped: Searched, others: Mapping[str, Searched] | None = None
) -> list[Ranking]:
    """The lists of every strategy, with as many candidates as in `LENGTHS`.

    Args:
      old: by the old model.
      new: by the new model.
      mapped: the new model's queries, and the documents mapped into its space.
      others: further searches, by name.
    """
    searched = {"old model": old, "re-embedded": new, "mapped store": mapped, **(others or {})}
    longest = min(max(*LENGTHS, DEPTH), len(old.documents))
    first = {name: np.asarray(top_k(*pair, longest).index) for name, pair in searched.items()}
    lists = [Ranking(name, None, rows[:, :DEPTH], None) for name, rows in first.items()]
    for strategy, source in (
        ("old candidates", "old model"),
        ("mapped candidates", "mapped store"),
    ):
        for length in LENGTHS:
            candidates = first[source][:, :length]
            order = in_order(*map(jnp.asarray, (*new, candidates)))
            lists.append(Ranking(strategy, length, np.asarray(order)[:, :DEPTH], candidates))
    return lists


class Judgement(NamedTuple):
    """The quality of a ranking, a mean over queries.

    Attributes:
      ranking: what was judged.
      ndcg_10: normalised discounted cumulative gain of the first ten documents.
      recall_10: share of the relevant documents, of at most ten, that are among the first ten.
      recall_100: the same of the first hundred.
      gain: ndcg_10 beyond that of the old model.
      gain_low: lower end of its 95% interval, by a paired bootstrap over queries.
      gain_high: upper end.
    """

    ranking: Ranking
    ndcg_10: float
    recall_10: float
    recall_100: float
    gain: float
    gain_low: float
    gain_high: float


def judge(lists: Iterable[Ranking], relevant: Int[np.ndarray, "r 2"]) -> list[Judgement]:
    """Judges rankings, of which one has to be that of the old model.

    Args:
      lists: of the same queries.
      relevant: (query, document) of which the document is relevant to the query; queries without
        one are left out.
    """
    lists = list(lists)
    count = max(int(ranking.documents.max()) for ranking in lists) + 1
    count = max(count, int(relevant[:, 1].max()) + 1)
    known = np.unique(relevant[:, 0].astype(np.int64) * count + relevant[:, 1])
    asked, num_relevant = np.unique(known // count, return_counts=True)
    found = [
        np.isin(asked[:, None] * count + np.asarray(ranking.documents)[asked], known)
        for ranking in lists
    ]
    ndcg = [np.asarray(metrics.ndcg(_padded(hits), num_relevant)) for hits in found]
    baseline = next(
        values
        for ranking, values in zip(lists, ndcg, strict=True)
        if ranking.strategy == "old model"
    )
    sample = np.random.default_rng(0).integers(len(asked), size=(RESAMPLES, len(asked)))
    judgements = []
    for ranking, hits, values in zip(lists, found, ndcg, strict=True):
        gain = values - baseline
        low, high = np.quantile(gain[sample].mean(axis=1), (0.025, 0.975))
        recalls = [
            float((hits[:, :k].sum(axis=1) / np.minimum(num_relevant, k)).mean()) for k in (10, 100)
        ]
        scores = (values.mean(), *recalls, gain.mean(), low, high)
        judgements.append(Judgement(ranking, *map(float, scores)))
    return judgements


def _padded(hits: np.ndarray) -> np.ndarray:
    """At least ten columns, where a store has fewer documents."""
    return np.pad(hits, ((0, 0), (0, max(0, 10 - hits.shape[1]))))
