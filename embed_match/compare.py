"""Two embeddings of the same words: rotation, distances, neighbours, and matching by transport."""

import time
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from common import alignment, assignment, metrics, ot
from common.alignment import Aligner
from common.retrieval import top_k


class Transport(NamedTuple):
    """Choices of entropic matching; see configs/embed_match/match.py."""

    epsilon: float  # in units of 1 - cos
    iterations: int
    tolerance: float


def rotation(b: Float[np.ndarray, "n d_b"], a: Float[np.ndarray, "n d_a"]) -> Aligner:
    """The optimal rotation of b into a, unit rows, d_b <= d_a (poster, Figure 3).

    With d_b < d_a it is that of b padded with zeros.

    Args:
      b: row i the same word as in a; none zero.
      a: likewise.
    """
    names = {"moving": "second", "fixed": "first"}
    return alignment.fit("procrustes", b, a, normalise=("unit",), **names)


def aligned(
    a: Float[np.ndarray, "n d_a"], b: Float[np.ndarray, "n d_b"]
) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """Both embeddings with unit rows in one space; the one of fewer dimensions moves, else b."""
    if a.shape[1] < b.shape[1]:
        return aligned(b, a)[::-1]
    aligner = rotation(b, a)
    return aligner.normalise_fixed(a), aligner.apply(b)


def distances(a: Float[Array, "n d"], b: Float[Array, "n d"]) -> dict[str, float]:
    """Mean Euclidean distance and mean cosine of rows that are the same word, of `aligned`."""
    apart = jnp.linalg.norm(a - b, axis=1)
    return {"l2": float(apart.mean()), "cosine": float(jnp.sum(a * b, axis=1).mean())}


def neighbours(a: Float[Array, "n d"], b: Float[Array, "n d"]) -> dict[str, float]:
    """How often the word itself is the nearest, or among the five nearest, in b of its row in a."""
    found = top_k(a, b, min(5, len(b)))[1]
    own = jnp.arange(len(a))
    return {f"p_at_{k}": float(metrics.precision_at_k(found, own, k)) for k in (1, 5)}


def matching(
    a: Float[Array, "n d"], b: Float[Array, "n d"], settings: Transport
) -> dict[str, float]:
    """Accuracy of the words' matching by transport, exact and entropic, and the seconds of each.

    Of the exact one also the cost, the mean of 1 - cos over matched words; of the entropic one,
    whose match is the argmax of the plan's rows, the error of its marginals.
    """
    began = time.perf_counter()
    exact = assignment.exact(a, b)  # transport without regularisation
    middle = time.perf_counter()
    plan = ot.match(
        a,
        b,
        2 * settings.epsilon,  # the squared distance of unit rows is 2 (1 - cos)
        iterations=settings.iterations,
        tolerance=settings.tolerance,
        rows=True,
        cost="sqeuclidean",
    )
    entropic = np.asarray(plan.to_y)
    end = time.perf_counter()
    own = np.arange(len(a))
    return {
        "ot": float(np.mean(exact == own)),
        "ot_cost": cost(a, b, exact),
        "ot_seconds": middle - began,
        "ot_entropic": float(np.mean(entropic == own)),
        "ot_entropic_error": float(plan.error),
        "ot_entropic_seconds": end - middle,
    }


def cost(a: Float[Array, "n d"], b: Float[Array, "n d"], matched: Int[np.ndarray, " n"]) -> float:
    """The mean of 1 - cos over matched rows."""
    return 1 - float(np.mean(np.sum(np.asarray(a, np.float64) * np.asarray(b)[matched], axis=1)))
