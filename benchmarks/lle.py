"""Weights of locally linear embedding: 20,000 rows of 300 numbers from ten neighbours each."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Side, Subject, Work
from lpl import loss

DIM, NEIGHBOURS = 300, 10


def load(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors, and neighbours as they come: any rows cost the same."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(n, DIM)).astype(np.float32)
    return vectors, (np.arange(n)[:, None] + rng.integers(1, n, (n, NEIGHBOURS))) % n


def work(n: int) -> Work:
    """For half a Gram matrix k (k + 1) d, k d for the offsets, k^3 / 3 + 2 k^2 for the solution.

    Bytes: the neighbours' rows and the row itself, their numbers, and the weights.
    """
    k = NEIGHBOURS
    return Work(
        n * (k * (k + 1.0) * DIM + k * DIM + k**3 / 3 + 2 * k**2),
        4.0 * n * ((k + 1) * DIM + 2 * k),
    )


def _ours(data):
    vectors, index = map(jnp.asarray, data)
    return partial(loss.lle_weights, vectors, jnp.arange(len(vectors)), index)


def _sklearn(data):
    from sklearn.manifold._locally_linear import barycenter_weights

    vectors, index = data
    return partial(barycenter_weights, vectors, vectors, index, reg=loss.REGULARISATION)


def score(data, found) -> dict[str, float]:
    """The mean squared distance between a row and what its weights make of its neighbours."""
    vectors, index = data
    some = slice(0, 1_000)
    rebuilt = np.einsum("nk,nkd->nd", np.asarray(found)[some], vectors[index[some]])
    return {"error": float(np.mean((rebuilt - vectors[some]) ** 2))}


def case(n: int, **options) -> Case:
    """So many rows."""
    return Case(str(n), n, partial(load, n), lambda data: work(n), **options)


SUBJECT = Subject(
    title="LLE weights, ten neighbours, 300 dimensions",
    goal=">= 10",
    note="FLOPs a row: k (k + 1) d + k d + k^3 / 3 + 2 k^2. Both regularise alike.",
    cases=(case(2_500), case(5_000), case(10_000), case(20_000, memory=True, rounds=5)),
    quick=case(1_000, memory=True),
    sides={"isthmus": Side(_ours), "scikit-learn": Side(_sklearn, needs="sklearn")},
    score=score,
    axis="rows",
)
