"""The permutation of largest total cosine between two embeddings of 5,000 words."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

from benchmarks.harness import Benchmark, Case, Implementation, Work
from common import ot
from common.data.packages import cache_dir
from common.ot.assignment import EPSILON, potentials
from common.spaces import paired_spaces
from embed_match import compare


def load(source: str, n: int) -> tuple[jax.Array, jax.Array]:
    """Two spaces with unit rows, rotated onto each other on the true pairs."""
    pair = paired_spaces.load(source, "minilm_input", num_words=n, cache=cache_dir())
    return jax.block_until_ready(compare.aligned(pair.source, pair.target))


def work(n: int, dim: int) -> Work:
    """2 n^2 d for the cosines and n^2 to read each. Bytes: both embeddings, the permutation."""
    return Work(2.0 * n * n * dim + n * n, 8.0 * n * dim + 8.0 * n)


def rounded(x: Float[Array, "n d"], y: Float[Array, "n d"]) -> Int[np.ndarray, " n"]:
    """An approximation of `ot.assign`: an entropic plan, rounded to a permutation.

    A row and a column are matched if most of the mass of both is in their common entry and the
    row's sum is right. The others, few if the embeddings correspond, are assigned exactly among
    themselves.
    """
    scores, best, certain = _scores(x, y)
    certain, matches = np.asarray(certain), np.array(best)
    rows = np.flatnonzero(~certain)
    columns = np.setdiff1d(np.arange(len(matches)), matches[certain])
    cost = -np.asarray(scores)[np.ix_(rows, columns)].astype(np.float64)
    matches[rows] = columns[linear_sum_assignment(cost)[1]]
    return matches


@jax.jit
def _scores(x, y):
    """Similarities plus potentials, the best column of each row, and whether it is certain."""
    similarity, rows, columns, row_sums = potentials(x, y, 10)
    scores = similarity + rows[:, None] + columns
    # Columns sum to one, so at most one entry of each is above a half; .6 allows for rounding.
    largest = scores.max(axis=1) > EPSILON * jnp.log(0.6)
    return scores, scores.argmax(axis=1), largest & (jnp.abs(row_sums - 1) < 0.1)


def _scipy(data):
    def call():
        x, y = map(np.asarray, data)
        return linear_sum_assignment(x @ y.T, maximize=True)[1]

    return call


def _pot(data):
    import ot as pot

    def call():
        x, y = map(np.asarray, data)
        return pot.emd([], [], 1 - (x @ y.T).astype(np.float64)).argmax(1)

    return call


def score(data, columns) -> dict[str, float]:
    """The mean of 1 - cos over matched rows, and the fraction of words matched to themselves."""
    x, y = map(np.asarray, data)
    truth = np.arange(len(x))
    assert len(set(columns)) == len(truth), "not a permutation"
    cosines = np.sum(x * y[columns], axis=1)
    return {"cost": 1 - float(np.mean(cosines)), "correct": float(np.mean(columns == truth))}


def case(source: str, n: int, **options) -> Case:
    """The n most frequent words of an embedding that minilm_input has as well."""
    name, data = f"{source}-{n}", partial(load, source, n)
    return Case(name, n, data, lambda data: work(n, data[0].shape[1]), source, **options)


EXACT, ROUNDED = "isthmus, exact", "isthmus, entropic and rounded"
BENCHMARK = Benchmark(
    title="Assignment of two embeddings",
    goal="exact >= 1; rounded >= 3, its cost within 1%",
    note=(
        "All implementations start from the embeddings and compute the products of all pairs. "
        "glove has 50 dimensions, minilm and minilm_input 384; the rows have the larger number. "
        "FLOPs: 2 n^2 d + n^2."
    ),
    cases=(
        case("glove", 1_250),
        case("glove", 2_500),
        case("glove", 5_000, memory=True),
        case("minilm", 5_000),
    ),
    quick=case("glove", 500, memory=True),
    implementations={
        EXACT: Implementation(lambda data: partial(ot.assign, *data)),
        ROUNDED: Implementation(lambda data: partial(rounded, *data), compared_with=(ROUNDED,)),
        "scipy": Implementation(_scipy, requires=("scipy",), compared_with=(EXACT, ROUNDED)),
        "POT, network simplex": Implementation(
            _pot, requires=("ot",), max_n=2_500, compared_with=(EXACT, ROUNDED)
        ),
    },
    score=score,
    axis="words",
)
