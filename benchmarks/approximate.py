"""Exact and approximate nearest neighbours by cosine: seconds beside the part that is found."""

import numpy as np

from benchmarks import neighbours
from benchmarks.harness import Case, Implementation, cores
from benchmarks.neighbours import DIM, K

load, work = neighbours.load, neighbours.work
LINKS = 32  # of a vector in the graph (M)
EFFORT = 64  # candidates that a search keeps (efSearch)
EXACT = neighbours.IMPLEMENTATIONS["isthmus"]


def _graph(keys):
    import faiss

    faiss.omp_set_num_threads(cores())
    index = faiss.IndexHNSWFlat(DIM, LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efSearch = EFFORT
    index.add(keys)
    return index


def _search(data):
    _, queries, keys = data
    index = _graph(keys)
    return lambda: index.search(queries, K)[1]


def score(data, nearest) -> dict[str, float]:
    """The fraction of the ten nearest keys that are found."""
    exact = np.asarray(EXACT.prepare(data)())
    shares = [np.isin(a, b).mean() for a, b in zip(exact, nearest, strict=True)]
    return {"found": float(np.mean(shares))}


TITLE = "Ten nearest neighbours of 2,000 queries, 300 dimensions, exact and approximate"
GOAL = "none: where an index pays"
NOTE = (
    f"HNSW of faiss with {LINKS} links and a search among {EFFORT}, in float32. Exact search "
    "needs no index. An index pays once it is searched for more queries than exact search "
    "answers while it is built."
)
CASES = (
    Case("cosine-50000", 50_000, (False, 50_000), rounds=1),
    Case("cosine-200000", 200_000, (False, 200_000), rounds=1),
)
QUICK = Case("cosine-2000", 2_000, (False, 2_000))
IMPLEMENTATIONS = {
    "isthmus": EXACT,
    "faiss HNSW": Implementation(_search, requires=("faiss",)),
    "faiss HNSW, index built": Implementation(
        lambda data: lambda: _search(data)(), requires=("faiss",), warm_up=False
    ),
}
