"""The permutation of largest cosines between two embeddings of 5,000 words, exact and rounded."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Case, Side, Subject, Work
from common import assignment
from common.data import words
from common.data.wheels import cache_dir
from embed_match import compare


def load(source: str, n: int) -> tuple[jax.Array, jax.Array]:
    """Both with unit rows in one space, rotated on the true pairs."""
    a, b = (words.load(name, n, cache_dir()).vectors for name in (source, "minilm_input"))
    return jax.block_until_ready(compare.aligned(a, b))


def work(n: int, dim: int) -> Work:
    """2 n^2 d for the cosines; n^2 for a look at each. Bytes: both embeddings, the permutation."""
    return Work(2.0 * n * n * dim + n * n, 8.0 * n * dim + 8.0 * n)


def _scipy(data):
    from scipy.optimize import linear_sum_assignment

    def call():
        a, b = map(np.asarray, data)
        return linear_sum_assignment(a @ b.T, maximize=True)[1]

    return call


def _pot(data):
    import ot as pot

    def call():
        a, b = map(np.asarray, data)
        return pot.emd([], [], 1 - (a @ b.T).astype(np.float64)).argmax(1)

    return call


def score(data, found) -> dict[str, float]:
    """The mean of 1 - cos over matched rows, and the share of words matched to themselves."""
    a, b = map(jnp.asarray, data)
    own = np.arange(len(a))
    assert len(set(found)) == len(own), "not a permutation"
    return {"cost": compare.cost(a, b, found), "right": float(np.mean(found == own))}


def case(source: str, n: int, **options) -> Case:
    """So many words of an embedding and of minilm_input."""
    name, data = f"{source}-{n}", partial(load, source, n)
    return Case(name, n, data, lambda data: work(n, data[0].shape[1]), source, **options)


EXACT, ROUNDED = "isthmus, exact", "isthmus, entropic and rounded"
SUBJECT = Subject(
    title="Assignment of two embeddings",
    goal="exact >= 1; rounded >= 3, its cost within 1%",
    note=(
        "All sides start from the embeddings, the products of all pairs included. "
        "glove has 50 dimensions, minilm and minilm_input 384; rows are those of the "
        "larger. FLOPs: 2 n^2 d + n^2."
    ),
    cases=(
        case("glove", 1_250),
        case("glove", 2_500),
        case("glove", 5_000, memory=True),
        case("minilm", 5_000),
    ),
    quick=case("glove", 500, memory=True),
    sides={
        EXACT: Side(lambda data: partial(assignment.exact, *data)),
        ROUNDED: Side(lambda data: partial(assignment.rounded, *data), like=(ROUNDED,)),
        "scipy": Side(_scipy, needs="scipy", like=(EXACT, ROUNDED)),
        "POT, network simplex": Side(_pot, needs="ot", most=2_500, like=(EXACT, ROUNDED)),
    },
    score=score,
    axis="words",
)
