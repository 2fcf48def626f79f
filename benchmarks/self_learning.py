"""Self-learning of a bilingual dictionary in numpy, the loop that Artetxe et al. (2018) publish.

Written here from the paper (sections 3.2 to 3.4), for the benchmark of the bootstrap: an orthogonal
map from the dictionary, a new dictionary by CSLS in both directions under a random drop of
similarities, the share kept doubling as the objective stalls; then symmetric re-weighting, once.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

BATCH = 1_000  # rows of similarities held at once


class Settings(NamedTuple):
    """Values of the paper and its code."""

    cutoff: int  # most frequent words that the dictionary is made from
    neighbours: int = 10  # of CSLS
    keep: float = 0.1  # share of similarities at first
    patience: int = 50  # iterations without gain before the share doubles
    tolerance: float = 1e-6  # least gain
    iterations: int = 1_000  # at most


def align(
    x: Float[np.ndarray, "n d"],
    z: Float[np.ndarray, "m d"],
    pairs: tuple[Int[np.ndarray, " s"], Int[np.ndarray, " s"]],
    frequent: tuple[Int[np.ndarray, " f"], Int[np.ndarray, " f"]],
    settings: Settings,
    random_seed: int,
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "m d"], int]:
    """Both spaces in common coordinates, and the number of iterations.

    Args:
      x: unit rows, centred.
      z: likewise, as many columns.
      pairs: rows of x and z of the known dictionary.
      frequent: rows of each that the dictionary is made from.
      settings: of the loop.
      random_seed: of the drop.
    """
    rng = np.random.default_rng(random_seed)
    source, target = pairs
    small_x, small_z = x[frequent[0]], z[frequent[1]]
    keep, best, gained_at, last = settings.keep, -np.inf, 0, False
    for iteration in range(1, settings.iterations + 1):
        left, _, right = np.linalg.svd(x[source].T @ z[target])
        mapped_x, mapped_z = small_x @ left, small_z @ right.T
        there, there_score = _induce(mapped_x, mapped_z, settings.neighbours, keep, rng)
        back, back_score = _induce(mapped_z, mapped_x, settings.neighbours, keep, rng)
        source = frequent[0][np.concatenate([np.arange(len(small_x)), back])]
        target = frequent[1][np.concatenate([there, np.arange(len(small_z))])]
        if last:
            break
        objective = (there_score + back_score) / 2
        if objective >= best + settings.tolerance:
            best, gained_at = objective, iteration
        elif iteration - gained_at > settings.patience:
            last = keep >= 1
            keep, gained_at = min(1.0, 2 * keep), iteration
    return *_reweighted(x, z, source, target), iteration


def _induce(x, z, neighbours, keep, rng):
    """The best z of each x by CSLS under the drop, and the mean best cosine."""
    hubness = np.empty(len(z), np.float32)
    for start in range(0, len(z), BATCH):
        nearest = np.partition(z[start : start + BATCH] @ x.T, -neighbours)[:, -neighbours:]
        hubness[start : start + BATCH] = nearest.mean(1)
    choice, total = np.empty(len(x), np.int64), 0.0
    for start in range(0, len(x), BATCH):
        similarity = x[start : start + BATCH] @ z.T
        total += similarity.max(1).sum()
        similarity -= hubness / 2
        if keep < 1:
            similarity *= rng.random(similarity.shape, np.float32) < keep
        choice[start : start + BATCH] = similarity.argmax(1)
    return choice, total / len(x)


def _reweighted(x, z, source, target):
    """Whitening, rotation, singular values to the half on each side, de-whitening."""

    def whitener(rows):
        _, values, right = np.linalg.svd(rows, full_matrices=False)
        values = np.maximum(values, 1e-3 * values[0])  # empty dimensions would be noise blown up
        return (right.T / values) @ right, (right.T * values) @ right

    white_x, colour_x = whitener(x[source])
    white_z, colour_z = whitener(z[target])
    left, values, right = np.linalg.svd(white_x @ (x[source].T @ z[target]) @ white_z)
    scale = np.sqrt(values)
    map_x = white_x @ (left * scale) @ left.T @ colour_x @ left
    map_z = white_z @ (right.T * scale) @ right @ colour_z @ right.T
    return x @ map_x, z @ map_z
