"""Comparison of two embeddings of the same words: rotation, distances, neighbours, transport."""

import dataclasses
import itertools
import time
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from common import alignment, metrics, ot
from common.alignment import Aligner
from common.retrieval import top_k


@dataclasses.dataclass(frozen=True, kw_only=True)
class Transport:
    """Settings of entropic transport.

    Attributes:
      epsilon: regularisation, in units of the cost.
      max_iterations: of Sinkhorn.
      tolerance: L1 error of the marginals at which the iterations stop.
    """

    epsilon: float
    max_iterations: int
    tolerance: float


def rotation(source: Float[np.ndarray, "n d_s"], target: Float[np.ndarray, "n d_t"]) -> Aligner:
    """The orthogonal map of source onto target that minimises |X R - Y|_F (poster, Figure 3).

    Rows, none of them zero, are scaled to unit norm first; d_s <= d_t, by zeros that are added.
    """
    return alignment.fit("procrustes", source, target, normalise=("unit",))


def aligned(
    x: Float[np.ndarray, "n d_x"],
    y: Float[np.ndarray, "n d_y"],
    fit: Int[np.ndarray, " m"] | slice = slice(None),
) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """The embeddings with unit rows in the space of the one with more dimensions.

    With equal dimensions y is mapped onto x; distances are the same either way, as the map is
    orthogonal. It is fitted on the rows `fit`.
    """
    if x.shape[1] < y.shape[1]:
        y_rows, x_rows = aligned(y, x, fit)
        return x_rows, y_rows
    aligner = rotation(y[fit], x[fit])
    return aligner.normalise_target(x), aligner.apply(y)


def scores(
    x: Float[Array, "n d"], y: Float[Array, "n d"], transport: Transport
) -> dict[str, float]:
    """Metric -> value, of unit rows: `distances`, `neighbours` and `matching`."""
    return distances(x, y) | neighbours(x, y) | matching(x, y, transport)


def distances(x: Float[Array, "n d"], y: Float[Array, "n d"]) -> dict[str, float]:
    """Mean Euclidean distance (`l2`) and mean `cosine` of corresponding rows."""
    l2 = jnp.linalg.norm(x - y, axis=1)
    return {"l2": float(l2.mean()), "cosine": float(jnp.sum(x * y, axis=1).mean())}


def neighbours(x: Float[Array, "n d"], y: Float[Array, "n d"]) -> dict[str, float]:
    """How often row i of y is among the one or five nearest neighbours of row i of x."""
    nearest = top_k(x, y, min(5, len(y)))[1]
    truth = jnp.arange(len(x))
    return {f"p_at_{k}": float(metrics.precision_at_k(nearest, truth, k)) for k in (1, 5)}


def matching(
    x: Float[Array, "n d"], y: Float[Array, "n d"], transport: Transport
) -> dict[str, float]:
    """How well as many unit rows are matched by optimal transport with the cost 1 - cos.

    `ot` is the fraction of rows that the optimal permutation, of mean cost `ot_cost`, matches with
    their own index; `ot_entropic` that of rows whose own index is the argmax of their row of the
    entropic plan, whose marginals have the L1 error `ot_entropic_error`.
    """
    start = time.perf_counter()
    exact = ot.assign(x, y)
    middle = time.perf_counter()
    options = {"iterations": transport.max_iterations, "tolerance": transport.tolerance}
    # The squared distance of unit rows is 2 (1 - cos).
    plan = ot.match(x, y, 2 * transport.epsilon, **options, cost="sqeuclidean", rows=True)
    entropic = np.asarray(plan.to_y)
    end = time.perf_counter()
    truth = np.arange(len(x))
    cosines = np.sum(np.asarray(x, np.float64) * np.asarray(y)[exact], axis=1)
    return {
        "ot": float(np.mean(exact == truth)),
        "ot_cost": 1 - float(np.mean(cosines)),
        "ot_seconds": middle - start,
        "ot_entropic": float(np.mean(entropic == truth)),
        "ot_entropic_error": float(plan.error),
        "ot_entropic_seconds": end - middle,
    }


def correlation(accuracy: Mapping[str, float], l2: Mapping[tuple[str, str], float]) -> float:
    """Spearman correlation, over all pairs, of their distance with their difference in accuracy."""
    return _spearman(*_distances_and_differences(accuracy, l2), np.arange(len(accuracy)))


def interval(
    accuracy: Mapping[str, float], l2: Mapping[tuple[str, str], float], resamples: int
) -> tuple[float, float]:
    """The ends of the 95% bootstrap interval of `correlation`; NaN if it is defined in no sample.

    Pairs are not independent, since they share embeddings. Therefore embeddings are resampled, not
    pairs; an embedding does not form a pair with itself.
    """
    distance, difference = _distances_and_differences(accuracy, l2)
    rng, n = np.random.default_rng(0), len(accuracy)
    samples = (rng.integers(n, size=n) for _ in range(resamples))
    values = np.array([_spearman(distance, difference, sample) for sample in samples])
    defined = values[np.isfinite(values)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (np.nan, np.nan)
    return float(low), float(high)


def _distances_and_differences(accuracy, l2) -> tuple[np.ndarray, np.ndarray]:
    """Of all pairs of embeddings: the distance and the difference in accuracy, [n, n] each."""
    distance = [[l2.get((a, b), l2.get((b, a), 0.0)) for b in accuracy] for a in accuracy]
    values = np.array(list(accuracy.values()))
    return np.array(distance), np.abs(values[:, None] - values)


def _spearman(distance, difference, chosen) -> float:
    """The correlation over the pairs of the chosen rows; NaN if there are too few."""
    i, j = np.array(list(itertools.combinations(chosen, 2))).T
    i, j = i[i != j], j[i != j]
    if len(set(distance[i, j])) < 3 or len(set(difference[i, j])) < 3:
        return np.nan
    return metrics.spearman(distance[i, j], difference[i, j])
