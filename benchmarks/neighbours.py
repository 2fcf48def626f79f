"""Ten nearest neighbours, by cosine and by CSLS, among 200,000 keys of 300 numbers."""

import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Side, Subject, Work, cores
from common.retrieval import csls_top_k, top_k

DIM, K = 300, 10
QUERIES = 2_000  # not 200,000: that is 24 TFLOP a product


def load(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit queries and keys; a query lies near a key, and keys have directions in common."""
    rng = np.random.default_rng(0)
    spread = (np.arange(1, DIM + 1) ** -0.5).astype(np.float32)
    keys = rng.normal(size=(n, DIM)).astype(np.float32) * spread
    queries = keys[:QUERIES] + 0.5 * rng.normal(size=(min(n, QUERIES), DIM)) * spread
    return tuple(
        (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(np.float32) for z in (queries, keys)
    )


def work(n: int, products: int) -> Work:
    """2 q n d a product of all pairs, of which CSLS needs one for each direction's means."""
    q = min(n, QUERIES)
    return Work(2.0 * q * n * DIM * products, 4.0 * (q + n) * DIM + 8.0 * q * K)


def _cosine(data):
    queries, keys = map(jnp.asarray, data[1:])
    return lambda: top_k(queries, keys, K)[1]


def _csls(data):
    queries, keys = map(jnp.asarray, data[1:])
    return lambda: csls_top_k(queries, keys, K)[1]


def _ours(data):
    return _csls(data) if data[0] else _cosine(data)


def _faiss(data):
    import faiss

    faiss.omp_set_num_threads(cores())
    csls, queries, keys = data
    index = faiss.IndexFlatIP(DIM)
    index.add(keys)
    if not csls:
        return lambda: index.search(queries, K)[1]

    def call():
        """The means by two searches, the neighbours by a third with the keys' means appended."""
        back = faiss.IndexFlatIP(DIM)
        back.add(queries)
        hubness = back.search(keys, K)[0].mean(1, keepdims=True)
        longer = faiss.IndexFlatIP(DIM + 1)
        longer.add(np.concatenate([2 * keys, -hubness], 1))
        ones = np.ones((len(queries), 1), np.float32)
        index.search(queries, K)[0].mean(1)  # part of the scores, not of their order
        return longer.search(np.concatenate([queries, ones], 1), K)[1]

    return call


def score(data, found) -> dict[str, float]:
    """The share of queries whose own key is first."""
    return {"right": float(np.mean(np.asarray(found)[:, 0] == np.arange(len(data[1]))))}


def case(n: int, csls: bool, **options) -> Case:
    """So many keys."""
    kind = "CSLS" if csls else "cosine"
    return Case(
        f"{kind}-{n}",
        n,
        lambda: (csls, *load(n)),
        lambda data: work(n, 2 if csls else 1),
        kind,
        **options,
    )


SUBJECT = Subject(
    title=f"Ten nearest neighbours of {QUERIES:,} queries, 300 dimensions",
    goal=">= 1",
    note=(
        f"{QUERIES:,} queries: all pairs of 200,000 are 24 TFLOP a product. FLOPs: 2 q n d, twice "
        "for CSLS, whose means go both ways. faiss has no CSLS: three searches of it give the same."
    ),
    cases=tuple(
        case(n, csls, rounds=rounds, memory=n == 200_000)
        for csls in (False, True)
        for n, rounds in ((50_000, 3), (100_000, 3), (200_000, 5))
    ),
    quick=case(5_000, True, memory=True),
    sides={"isthmus": Side(_ours), "faiss IndexFlatIP": Side(_faiss, needs="faiss")},
    score=score,
    axis="keys",
)
