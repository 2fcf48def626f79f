"""Ten nearest neighbours, by cosine and by CSLS, among up to a million keys of 300 dimensions."""

import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Benchmark, Case, Implementation, Work, cores
from common.csls import top_k as csls_top_k
from common.linear import unit
from common.retrieval import top_k

DIM, K = 300, 10
LARGEST = 1_000_000  # keys


def queries(n: int) -> int:
    """Their number; as many as keys would be 24 TFLOP a product for 200,000."""
    return 10_000 if n == LARGEST else min(n, 2_000)


def load(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit queries and keys; each query is a noisy key, and the keys share dominant directions."""
    rng = np.random.default_rng(0)
    spread = (np.arange(1, DIM + 1) ** -0.5).astype(np.float32)
    keys = rng.normal(size=(n, DIM)).astype(np.float32) * spread
    noisy = keys[: queries(n)] + 0.5 * rng.normal(size=(queries(n), DIM)) * spread
    return tuple(unit(z).astype(np.float32) for z in (noisy, keys))


def work(n: int, products: int) -> Work:
    """2 q n d for a product of all pairs; CSLS needs one for the means of each direction."""
    q = queries(n)
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


def case(n: int, csls: bool, **options) -> Case:
    """A case of n keys."""
    kind = "CSLS" if csls else "cosine"
    return Case(
        f"{kind}-{n}",
        n,
        lambda: (csls, *load(n)),
        lambda data: work(n, 2 if csls else 1),
        kind,
        **options,
    )


BENCHMARK = Benchmark(
    title="Ten nearest neighbours of 2,000 queries, 300 dimensions",
    goal=">= 1",
    note=(
        "2,000 queries, 10,000 among a million keys; all pairs of 200,000 rows would be 24 TFLOP. "
        "FLOPs: 2 q n d, twice that for CSLS, which needs means in both directions. faiss has no "
        "CSLS; three of its searches give the same result."
    ),
    cases=tuple(
        case(n, csls, rounds=rounds, memory=n >= 200_000)
        for csls in (False, True)
        for n, rounds in ((50_000, 3), (100_000, 3), (200_000, 5), (LARGEST, 1))
    ),
    quick=case(5_000, True, memory=True),
    implementations={
        "isthmus": Implementation(_ours),
        "faiss IndexFlatIP": Implementation(_faiss, requires=("faiss",)),
    },
    score=score,
    axis="keys",
)
