"""Baselines and references: the truth, the known pairs alone, and published methods of words.

Maps between the spaces act on the right of rows; a parallel anchor is the image of the source
space's anchor.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from anchor_opt.methods import self_learning as loop
from anchor_opt.methods.anchors import fit_anchors
from anchor_opt.methods.self_learning import Data
from anchor_opt.problem import Problem, Result, Run
from common import csls, linear, multi_step
from common.csls import Matches
from common.linear import Maps, unit


@dataclasses.dataclass(frozen=True, kw_only=True)
class IteratedProcrustes:
    """Values of `iterated_procrustes`."""

    iterations: int  # fits after the first one, which is on the known pairs
    neighbours: int  # of CSLS


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfLearning(loop.Settings):
    """Values of `self_learning`: an orthogonal map, known pairs in the initialization alone."""

    reweight: float = 0.0
    pair_weight: float = 0.0
    keep_prob: float  # probability at first that a similarity takes part; doubled on stall
    steps: int  # at most


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
    matrix = _fitted_to_pairs(problem.source, problem.target, *problem.pairs)
    return Result.of_map(problem, matrix)


def iterated_procrustes(problem: Problem, run: Run) -> Result:
    """The orthogonal map fitted in turn with its own mutual matches (Lample et al. 2018)."""
    settings, result = run.settings.iterated_procrustes, procrustes(problem, run)
    for _ in range(settings.iterations):
        spaces = result.coordinates(problem.source, problem.target)
        matches = csls.matches(*spaces, neighbours=settings.neighbours)
        matrix = _fitted_to_mutual(problem.source, problem.target, matches)
        result = Result.of_map(problem, matrix)
    return result


@jax.jit
def _fitted_to_pairs(source, target, source_pairs, target_pairs) -> Float[Array, "d e"]:
    return linear.procrustes(source[source_pairs], target[target_pairs])


@jax.jit
def _fitted_to_mutual(source, target, matches: Matches) -> Float[Array, "d e"]:
    return linear.procrustes(source * matches.mutual[:, None], target[matches.to_target])


def self_learning(problem: Problem, run: Run) -> Result:
    """Semi-supervised self-learning (Artetxe et al. 2018): steps of the loop without re-weighting.

    Similarities are dropped at random, ever fewer; at the end the whole framework of
    `common.multi_step` is fitted once.
    """
    settings = run.settings.self_learning
    key = jax.random.key(run.random_seed)
    data = Data(problem.source, problem.target, *problem.pairs, key)
    maps = multi_step.fit_covariance(data.pair_covariance, 0.0)
    state = loop.initial_state(maps, settings.keep_prob)
    state = loop.learn(run.train, state, data, settings, num_steps=settings.steps, chunk=25)
    maps = dictionary_maps(data, loop.current_matches(state, data, settings.neighbours))
    # The target vectors of least norm whose coordinates are nearest to those of the anchors.
    anchors = unit(problem.source_anchors @ maps.source @ jnp.linalg.pinv(maps.target))
    return Result(anchors, maps)


@jax.jit
def dictionary_maps(data: Data, matches: Matches) -> Maps:
    """Maps by `multi_step.fit` with re-weighting by .5 / .5, as Artetxe et al. 2018 have it.

    The dictionary is the union of both directions of the matches.
    """
    source = jnp.concatenate([data.source, data.source[matches.to_source]])
    target = jnp.concatenate([data.target[matches.to_target], data.target])
    return multi_step.fit(source, target, whiten=linear.regularised_whitening, reweight=(0.5, 0.5))
