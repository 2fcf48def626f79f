"""Weights of locally linear embedding: 20,000 rows of 300 dimensions, ten neighbours each."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Implementation, Work
from lpl import loss

DIM, NEIGHBOURS = 300, 10


def load(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Random vectors and random neighbours; the time does not depend on which rows they are."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(n, DIM)).astype(np.float32)
    return vectors, (np.arange(n)[:, None] + rng.integers(1, n, (n, NEIGHBOURS))) % n


def work(data: tuple[np.ndarray, np.ndarray]) -> Work:
    """Operations: k (k + 1) d for half a Gram matrix, k d, and k^3 / 3 + 2 k^2 to solve.

    Bytes: the neighbours' rows and the row itself, their indices, and the weights.
    """
    n, k = len(data[0]), NEIGHBOURS
    flops = n * (k * (k + 1.0) * DIM + k * DIM + k**3 / 3 + 2 * k**2)
    return Work(flops, 4.0 * n * ((k + 1) * DIM + 2 * k))


def _ours(data):
    vectors, index = map(jnp.asarray, data)
    return partial(loss.lle_weights, vectors, jnp.arange(len(vectors)), index)


def _sklearn(data):
    from sklearn.manifold._locally_linear import barycenter_weights

    vectors, index = data
    return partial(barycenter_weights, vectors, vectors, index, reg=loss.REGULARISATION)


def score(data, weights) -> dict[str, float]:
    """The mean squared distance of a row from the weighted sum of its neighbours."""
    vectors, index = data
    rows = slice(0, 1_000)
    rebuilt = np.einsum("nk,nkd->nd", np.asarray(weights)[rows], vectors[index[rows]])
    return {"error": float(np.mean((rebuilt - vectors[rows]) ** 2))}


TITLE = "LLE weights, ten neighbours, 300 dimensions"
GOAL = ">= 10"
NOTE = "FLOPs for a row: k (k + 1) d + k d + k^3 / 3 + 2 k^2. Both regularise in the same way."
CASES = tuple(Case(str(n), n, (n,), memory=n == 20_000) for n in (2_500, 5_000, 10_000, 20_000))
QUICK = Case("1000", 1_000, (1_000,), memory=True)
IMPLEMENTATIONS = {
    "isthmus": Implementation(_ours),
    "scikit-learn": Implementation(_sklearn, requires=("sklearn",)),
}
