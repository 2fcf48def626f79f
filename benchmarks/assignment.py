"""The permutation of largest total cosine between two embeddings of 5,000 words."""

from functools import partial

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.harness import Case, Implementation, Work
from common import ot
from common.data.packages import cache_dir
from common.spaces import paired_spaces
from embed_match import compare


def load(source: str, n: int) -> tuple[jax.Array, jax.Array]:
    """The n most frequent common words of two spaces, rotated onto each other; unit rows."""
    pair = paired_spaces.load(source, "minilm_input", num_words=n, cache=cache_dir())
    return jax.block_until_ready(compare.aligned(pair.source, pair.target))


def work(data: tuple[jax.Array, jax.Array]) -> Work:
    """2 n^2 d for the cosines and n^2 to read each. Bytes: both embeddings, the permutation."""
    n, dim = data[0].shape
    return Work(2.0 * n * n * dim + n * n, 8.0 * n * dim + 8.0 * n)


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


TITLE = "Assignment of two embeddings"
GOAL = ">= 1"
NOTE = (
    "All implementations start from the embeddings and compute the products of all pairs. "
    "glove has 50 dimensions, minilm and minilm_input 384; the rows have the larger number. "
    "FLOPs: 2 n^2 d + n^2."
)
CASES = (
    Case("glove-1250", 1_250, ("glove", 1_250), "glove"),
    Case("glove-2500", 2_500, ("glove", 2_500), "glove"),
    Case("glove-5000", 5_000, ("glove", 5_000), "glove", memory=True),
    Case("minilm-5000", 5_000, ("minilm", 5_000), "minilm"),
)
QUICK = Case("glove-300", 300, ("glove", 300))
IMPLEMENTATIONS = {
    "isthmus": Implementation(lambda data: partial(ot.assign, *data)),
    "scipy": Implementation(_scipy),
    "POT, network simplex": Implementation(_pot, requires=("ot",), max_n=2_500),
}
