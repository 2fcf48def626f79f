"""Ten nearest neighbours, by cosine and by CSLS, among up to a million keys of 300 dimensions."""

import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Implementation, Work, cores
from common.csls import top_k as csls_top_k
from common.linear import unit
from common.retrieval import top_k

DIM, K = 300, 10


def load(csls: bool, n: int) -> tuple[bool, np.ndarray, np.ndarray]:
    """Unit queries and keys; each query is a noisy key, and the keys share dominant directions.

    As many queries as keys would be 24 TFLOP a product for 200,000.
    """
    rng = np.random.default_rng(0)
    spread = (np.arange(1, DIM + 1) ** -0.5).astype(np.float32)
    keys = rng.normal(size=(n, DIM)).astype(np.float32) * spread
    count = 10_000 if n >= 1_000_000 else min(n, 2_000)
    noisy = keys[:count] + 0.5 * rng.normal(size=(count, DIM)) * spread
    return csls, *(unit(z).astype(np.float32) for z in (noisy, keys))


def work(data: tuple[bool, np.ndarray, np.ndarray]) -> Work:
    """2 q n d for a product of all pairs; CSLS needs one for the means of each direction."""
    q, n, products = len(data[1]), len(data[2]), 2 if data[0] else 1
    return Work(2.0 * q * n * DIM * products, 4.0 * (q + n) * DIM + 8.0 * q * K)


def _ours(data):
    csls, *arrays = data
    queries, keys = map(jnp.asarray, arrays)
    search = csls_top_k if csls else top_k
    return lambda: search(queries, keys, K)[1]


def _faiss(data):
    import faiss

    faiss.omp_set_num_threads(cores())
    csls, queries, keys = data
    index = faiss.IndexFlatIP(DIM)
    index.add(keys)
    if not csls:
        return lambda: index.search(queries, K)[1]

    def call():
        """Two searches for the means, and a third with the means of the keys appended."""
        reverse = faiss.IndexFlatIP(DIM)
        reverse.add(queries)
        hubness = reverse.search(keys, K)[0].mean(1, keepdims=True)
        extended = faiss.IndexFlatIP(DIM + 1)
        extended.add(np.concatenate([2 * keys, -hubness], 1))
        ones = np.ones((len(queries), 1), np.float32)
        index.search(queries, K)[0].mean(1)  # a part of the scores that does not change their order
        return extended.search(np.concatenate([queries, ones], 1), K)[1]

    return call


def score(data, result) -> dict[str, float]:
    """The fraction of queries whose own key is retrieved first."""
    return {"correct": float(np.mean(np.asarray(result)[:, 0] == np.arange(len(data[1]))))}


TITLE = "Ten nearest neighbours of 2,000 queries, 300 dimensions"
GOAL = ">= 1"
NOTE = (
    "2,000 queries, 10,000 among a million keys; all pairs of 200,000 rows would be 24 TFLOP. "
    "FLOPs: 2 q n d, twice that for CSLS, which needs means in both directions. faiss has no "
    "CSLS; three of its searches give the same result."
)
CASES = tuple(
    Case(f"{kind}-{n}", n, (kind == "CSLS", n), kind, rounds=rounds, memory=n >= 200_000)
    for kind in ("cosine", "CSLS")
    for n, rounds in ((50_000, 3), (100_000, 3), (200_000, 5), (1_000_000, 1))
)
QUICK = Case("CSLS-2000", 2_000, (True, 2_000))
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "faiss IndexFlatIP": Implementation(_faiss, requires=("faiss",)),
}
