"""Baselines and references: the truth, the known pairs alone, and published methods of words.

Maps between the spaces act on the right of rows; a parallel anchor is the image of the source
space's anchor.
"""

import dataclasses

import jax.numpy as jnp

from anchor_opt.methods.anchors import fit_anchors
from anchor_opt.problem import Problem, Result, Run
from common import csls, linear


@dataclasses.dataclass(frozen=True, kw_only=True)
class IteratedProcrustes:
    """Values of `iterated_procrustes`."""

    iterations: int  # fits after the first one, which is on the known pairs
    neighbours: int  # of CSLS


def gt(problem: Problem, run: Run) -> Result:
    """All true parallel anchors (paper: GT)."""
    return Result(jnp.take(problem.target, problem.known_truth[problem.anchors], axis=0))


def seed(problem: Problem, run: Run) -> Result:
    """The anchors of the known pairs alone (paper: Seed)."""
    return Result(jnp.take(problem.target, problem.target_pairs, axis=0))


def lstsq_truth(problem: Problem, run: Run) -> Result:
    """Least squares on the true pairing: a strong reference, not a bound."""
    spaces, anchors = (problem.source, problem.target), problem.source_anchors
    truth = problem.known_truth
    return Result(fit_anchors(*spaces, anchors, truth, truth >= 0, unit_anchors=False))


def procrustes(problem: Problem, run: Run) -> Result:
    """The orthogonal map fitted on the known pairs, applied to the anchors."""
    rows, partners = problem.pairs
    matrix = linear.procrustes(problem.source[rows], problem.target[partners])
    return Result.of_map(problem, matrix)


def iterated_procrustes(problem: Problem, run: Run) -> Result:
    """The orthogonal map fitted in turn with its own mutual matches (Lample et al. 2018)."""
    settings, result = run.settings.iterated_procrustes, procrustes(problem, run)
    for _ in range(settings.iterations):
        spaces = result.coordinates(problem.source, problem.target)
        matches = csls.matches(*spaces, neighbours=settings.neighbours)
        mutual = problem.source * matches.mutual[:, None]
        matrix = linear.procrustes(mutual, problem.target[matches.to_target])
        result = Result.of_map(problem, matrix)
    return result
