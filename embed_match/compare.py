"""Comparison of two embeddings of the same words: rotation, distances, neighbours, transport."""

import itertools
import time
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.stats import spearmanr

from common import alignment, metrics, ot
from common.alignment import Aligner
from common.retrieval import top_k


def rotation(source: Float[np.ndarray, "n d_s"], target: Float[np.ndarray, "n d_t"]) -> Aligner:
    """The orthogonal map of source onto target that minimises |X R - Y|_F (poster, Figure 3).

    Rows are scaled to unit norm first. With d_s < d_t the source is padded with zeros.

    Args:
      source: X, row i the same word as row i of the target; no zero rows; d_s <= d_t.
      target: Y.
    """
    return alignment.fit("procrustes", source, target, normalise=("unit",))


def aligned(
    x: Float[np.ndarray, "n d_x"],
    y: Float[np.ndarray, "n d_y"],
    fit: Int[np.ndarray, " m"] | slice = slice(None),
) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """Both embeddings with unit rows in the space of the one with more dimensions.

    With equal dimensions y is mapped onto x; distances are the same either way, as the map is
    orthogonal. It is fitted on the rows `fit`.
    """
    if x.shape[1] < y.shape[1]:
        return aligned(y, x, fit)[::-1]
    aligner = rotation(y[fit], x[fit])
    return aligner.normalise_target(x), aligner.apply(y)


def distances(x: Float[Array, "n d"], y: Float[Array, "n d"]) -> dict[str, float]:
    """Mean Euclidean distance and mean cosine of corresponding rows."""
    l2 = jnp.linalg.norm(x - y, axis=1)
    return {"l2": float(l2.mean()), "cosine": float(jnp.sum(x * y, axis=1).mean())}


def neighbours(x: Float[Array, "n d"], y: Float[Array, "n d"]) -> dict[str, float]:
    """P@1 and P@5: how often row i of y is among the nearest neighbours of row i of x."""
    found = top_k(x, y, min(5, len(y)))[1]
    truth = jnp.arange(len(x))
    return {f"p_at_{k}": float(metrics.precision_at_k(found, truth, k)) for k in (1, 5)}


def matching(
    x: Float[Array, "n d"],
    y: Float[Array, "n d"],
    *,
    epsilon: float,
    max_iterations: int,
    tolerance: float,
) -> dict[str, float]:
    """Matches the rows of x and y by optimal transport with the cost 1 - cos.

    Args:
      x: unit rows.
      y: unit rows, as many.
      epsilon: regularisation of entropic transport, in units of the cost.
      max_iterations: of Sinkhorn.
      tolerance: L1 error of the marginals at which the iterations stop.

    Returns:
      `ot` and `ot_entropic`, the fraction of rows that are matched with their own index by the
      optimal permutation and by the argmax of each row of the entropic plan; `ot_cost`, the mean
      cost of the permutation; `ot_entropic_error`, the L1 error of the marginals; `ot_seconds` and
      `ot_entropic_seconds`, the duration of each.
    """
    start = time.perf_counter()
    exact = ot.assign(x, y)
    middle = time.perf_counter()
    options = {"iterations": max_iterations, "tolerance": tolerance, "cost": "sqeuclidean"}
    # The squared distance of unit rows is 2 (1 - cos).
    plan = ot.match(x, y, 2 * epsilon, **options, rows=True)
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
    """Spearman correlation, over all pairs, of their distance with their difference in accuracy.

    Args:
      accuracy: of each embedding.
      l2: distance of each pair of embeddings.
    """
    return _spearman(*_distances_and_differences(accuracy, l2), np.arange(len(accuracy)))


def interval(
    accuracy: Mapping[str, float], l2: Mapping[tuple[str, str], float], resamples: int
) -> tuple[float, float]:
    """Both ends of the 95% bootstrap interval of `correlation`.

    Pairs are not independent, since they share embeddings. Therefore embeddings are resampled, not
    pairs; two draws of the same embedding do not form a pair.

    Args:
      accuracy: of each embedding.
      l2: distance of each pair of embeddings.
      resamples: number of bootstrap samples.
    """
    both, n = _distances_and_differences(accuracy, l2), len(accuracy)
    rng = np.random.default_rng(0)
    drawn = np.array([_spearman(*both, rng.integers(n, size=n)) for _ in range(resamples)])
    low, high = np.quantile(drawn[np.isfinite(drawn)], [0.025, 0.975])
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
    return float(spearmanr(distance[i, j], difference[i, j])[0])
