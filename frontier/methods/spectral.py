"""Spectral embeddings of two spaces, brought together by canonical correlations of known pairs.

These are the first two of the three steps of SUE (Yacobi et al. 2025, arXiv:2505.21524), each by
scikit-learn. The third, a network that is trained to lessen the maximum mean discrepancy of the two
sets of rows, is left out.
"""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
from sklearn.cross_decomposition import CCA
from sklearn.manifold import SpectralEmbedding

from anchor_opt.problem import Problem, Result, Run
from common.linear import unit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the method."""

    neighbours: int = 30  # of the graph of each space
    eigenvectors: int = 10  # of each graph
    components: int = 8  # canonical correlations; fewer than the known pairs


def run(problem: Problem, run: Run) -> Result:
    """Coordinates of both spaces in which known pairs correlate most, of these rows alone.

    The rows of each space become eigenvectors of the Laplacian of their graph of nearest
    neighbours; canonical correlation analysis of the known pairs maps both onto `components`
    common coordinates.
    """
    settings, embedded = run.settings.spectral, []
    for space in (problem.source, problem.target):
        method = SpectralEmbedding(
            n_components=settings.eigenvectors,
            affinity="nearest_neighbors",
            n_neighbors=settings.neighbours,
            random_state=run.random_seed,
        )
        rows = method.fit_transform(np.asarray(space))
        embedded.append(rows / rows.std(axis=0))
    source, target = embedded
    source_pairs, target_pairs = problem.pairs
    analysis = CCA(n_components=min(settings.components, len(source_pairs) - 1), max_iter=2_000)
    with warnings.catch_warnings():  # of iterations that have not converged
        warnings.simplefilter("ignore")
        analysis.fit(source[source_pairs], target[target_pairs])
    # CCA.transform scales its second argument in place, and returns both.
    source, target = analysis.transform(source, target.copy())
    none = jnp.zeros((0, problem.target.shape[1]))
    return Result(none, placed=(unit(jnp.asarray(source)), unit(jnp.asarray(target))))
