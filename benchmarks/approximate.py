"""Exact and approximate nearest neighbours by cosine: seconds beside the part that is found."""

import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Benchmark, Case, Implementation, cores
from benchmarks.neighbours import DIM, K, load, work
from common.retrieval import top_k

LINKS = 32  # of a vector in the graph (M)
EFFORT = 64  # candidates that a search keeps (efSearch)


def _exact(data):
    queries, keys = map(jnp.asarray, data)
    return lambda: top_k(queries, keys, K)[1]


def _graph(keys):
    import faiss

    faiss.omp_set_num_threads(cores())
    index = faiss.IndexHNSWFlat(DIM, LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efSearch = EFFORT
    index.add(keys)
    return index


def _search(data):
    queries, keys = data
    index = _graph(keys)
    return lambda: index.search(queries, K)[1]


def _build_and_search(data):
    queries, keys = data
    return lambda: _graph(keys).search(queries, K)[1]


def score(data, nearest) -> dict[str, float]:
    """The fraction of the ten nearest keys that are found."""
    exact = np.asarray(_exact(data)())
    return {
        "found": float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, nearest, strict=True)]))
    }


def case(n: int, **options) -> Case:
    """A case of n keys."""
    return Case(f"cosine-{n}", n, lambda: load(n), lambda data: work(n, 1), **options)


BENCHMARK = Benchmark(
    title="Ten nearest neighbours of 2,000 queries, 300 dimensions, exact and approximate",
    goal="none: where an index pays",
    note=(
        f"HNSW of faiss with {LINKS} links and a search among {EFFORT}, in float32. Exact search "
        "needs no index. An index pays once it is searched for more queries than exact search "
        "answers while it is built."
    ),
    cases=(case(50_000, rounds=1), case(200_000, rounds=1)),
    quick=case(5_000),
    implementations={
        "isthmus": Implementation(_exact),
        "faiss HNSW": Implementation(_search, requires=("faiss",)),
        "faiss HNSW, index built": Implementation(
            _build_and_search, requires=("faiss",), warm_up=False
        ),
    },
    score=score,
    axis="keys",
)
