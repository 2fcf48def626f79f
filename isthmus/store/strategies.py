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
from jaxtyping import Float, Int

from common import metrics
from common.arrays import AnyArray
from common.retrieval import in_order, top_k
from isthmus.store.remapping import LENGTHS

DEPTH = 100  # documents of a list
RESAMPLES = 2_000  # of the bootstrap over queries


class Searched(NamedTuple):
    """Unit rows of queries, and of the documents among which they are sought."""

    queries: Float[AnyArray, "q d"]
    documents: Float[AnyArray, "n d"]


class Ranking(NamedTuple):
    """The first documents of each query, by the name of the strategy."""

    strategy: str
    candidates: int | None  # that the new model has put in order; None: it has not
    documents: Int[AnyArray, "q k"]  # rows of the store, best first, at most `DEPTH`
    embedded: Int[AnyArray, "q c"] | None  # the candidates, which the new model has to embed


def rankings(
    old: Searched,
    new: Searched,
    mapped: Searched,
    others: Mapping[str, Searched] | None = None,
    lengths: Iterable[int] = tuple(LENGTHS),
) -> list[Ranking]:
    """The lists of every strategy, with each number of candidates; `others` are further searches.

    `mapped` are the new model's queries among the documents that are mapped into its space.
    """
    searched = {"old model": old, "re-embedded": new, "mapped store": mapped, **(others or {})}
    longest = min(max(*lengths, DEPTH), len(old.documents))
    first = {name: np.asarray(top_k(*pair, longest).index) for name, pair in searched.items()}
    lists = [Ranking(name, None, rows[:, :DEPTH], None) for name, rows in first.items()]
    for strategy, source in (
        ("old candidates", "old model"),
        ("mapped candidates", "mapped store"),
    ):
        for length in lengths:
            candidates = first[source][:, :length]
            order = in_order(*map(jnp.asarray, (*new, candidates)))
            lists.append(Ranking(strategy, length, np.asarray(order)[:, :DEPTH], candidates))
    return lists


class Judgement(NamedTuple):
    """The quality of a ranking, a mean over queries."""

    ranking: Ranking
    ndcg_10: float  # normalised discounted cumulative gain of the first ten documents
    recall_10: float  # share of the relevant documents, of at most ten, among the first ten
    recall_100: float  # the same of the first hundred
    gain: float  # ndcg_10 beyond that of the old model
    gain_low: float  # end of its 95% interval, by a paired bootstrap over queries
    gain_high: float


def judge(lists: Iterable[Ranking], relevant: Int[np.ndarray, "r 2"]) -> list[Judgement]:
    """Judges rankings of the same queries, of which one has to be that of the old model.

    A row of `relevant` is a query and a document; queries without one are left out.
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
    # Ten columns at least, where a store has fewer documents.
    padded = [np.pad(hits, ((0, 0), (0, max(0, 10 - hits.shape[1])))) for hits in found]
    ndcg = [np.asarray(metrics.ndcg(hits, num_relevant)) for hits in padded]
    baseline = ndcg[[ranking.strategy for ranking in lists].index("old model")]
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
