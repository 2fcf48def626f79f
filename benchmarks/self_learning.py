"""Self-learning of a bilingual dictionary in numpy (Artetxe et al. 2018, sections 3.2 to 3.4).

Each iteration computes an orthogonal map from the dictionary, and a new dictionary by CSLS in both
directions, with similarities dropped at random. The probability to keep one is doubled when the
objective stalls. Symmetric re-weighting follows, once. Written from the paper, as the peer of the
bootstrap.
"""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

BLOCK_ROWS = 1_000  # rows of similarities that are stored at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the paper and its code."""

    neighbours: int = 10  # of CSLS
    keep_prob: float = 0.1  # probability to keep a similarity, at the start
    patience: int = 50  # iterations without improvement before the probability is doubled
    tolerance: float = 1e-6  # smallest improvement
    max_iterations: int = 1_000


def align(
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "m d"],
    pairs: tuple[Int[np.ndarray, " s"], Int[np.ndarray, " s"]],
    frequent: tuple[Int[np.ndarray, " f"], Int[np.ndarray, " f"]],
    settings: Settings,
    random_seed: int,
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "m d"], int]:
    """Both spaces in common coordinates, and the number of iterations.

    Args:
      x: unit rows, centred.
      y: likewise, with the same number of columns.
      pairs: rows of x and of y in the known pairs.
      frequent: rows of each space from which the dictionary is made.
      settings: of the loop.
      random_seed: of the dropped similarities.
    """
    rng = np.random.default_rng(random_seed)
    source, target = pairs
    small_x, small_y = x[frequent[0]], y[frequent[1]]
    keep_prob, best, improved_at, last = settings.keep_prob, -np.inf, 0, False
    for iteration in range(1, settings.max_iterations + 1):
        left, _, right = np.linalg.svd(x[source].T @ y[target])
        mapped_x, mapped_y = small_x @ left, small_y @ right.T
        to_y, score_x = _induce(mapped_x, mapped_y, settings.neighbours, keep_prob, rng)
        to_x, score_y = _induce(mapped_y, mapped_x, settings.neighbours, keep_prob, rng)
        source = frequent[0][np.concatenate([np.arange(len(small_x)), to_x])]
        target = frequent[1][np.concatenate([to_y, np.arange(len(small_y))])]
        if last:
            break
        objective = (score_x + score_y) / 2
        if objective >= best + settings.tolerance:
            best, improved_at = objective, iteration
        elif iteration - improved_at > settings.patience:
            last = keep_prob >= 1
            keep_prob, improved_at = min(1.0, 2 * keep_prob), iteration
    return *_reweighted(x, y, source, target), iteration


def _induce(x, y, neighbours, keep_prob, rng):
    """The best row of y for each row of x by CSLS with dropout, and the mean best cosine."""
    hubness = np.empty(len(y), np.float32)
    for start in range(0, len(y), BLOCK_ROWS):
        nearest = np.partition(y[start : start + BLOCK_ROWS] @ x.T, -neighbours)[:, -neighbours:]
        hubness[start : start + BLOCK_ROWS] = nearest.mean(1)
    choice, total = np.empty(len(x), np.int64), 0.0
    for start in range(0, len(x), BLOCK_ROWS):
        similarity = x[start : start + BLOCK_ROWS] @ y.T
        total += similarity.max(1).sum()
        similarity -= hubness / 2
        if keep_prob < 1:
            similarity *= rng.random(similarity.shape, np.float32) < keep_prob
        choice[start : start + BLOCK_ROWS] = similarity.argmax(1)
    return choice, total / len(x)


def _reweighted(x, y, source, target):
    """Whitening, rotation, weighting by the square roots of the singular values, de-whitening."""

    def whitening(rows):
        _, values, right = np.linalg.svd(rows, full_matrices=False)
        values = np.maximum(values, 1e-3 * values[0])  # else empty dimensions are amplified noise
        return (right.T / values) @ right, (right.T * values) @ right

    whiten_x, unwhiten_x = whitening(x[source])
    whiten_y, unwhiten_y = whitening(y[target])
    left, values, right = np.linalg.svd(whiten_x @ (x[source].T @ y[target]) @ whiten_y)
    scale = np.sqrt(values)
    map_x = whiten_x @ (left * scale) @ left.T @ unwhiten_x @ left
    map_y = whiten_y @ (right.T * scale) @ right @ unwhiten_y @ right.T
    return x @ map_x, y @ map_y
