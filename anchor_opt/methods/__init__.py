"""Every method as one function: a problem and a run in, anchors of the target space out.

`METHODS` maps the names of config.methods to them; a new method is a function and a line there.
Maps between the spaces act on the right of rows; a parallel anchor is the image of the source
space's anchor.
"""

import dataclasses
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anchor_opt.methods import algorithm1, bootstrap, disjoint, search, starts, unpaired
from anchor_opt.methods.algorithm1 import Settings as Algorithm1
from anchor_opt.methods.bootstrap import Data, Matches
from anchor_opt.methods.disjoint import Settings as Disjoint
from anchor_opt.methods.goat import Settings as Goat
from anchor_opt.problem import Problem, Result, Run
from common.linear import mapped, procrustes, unit, whitening


@dataclasses.dataclass(frozen=True, kw_only=True)
class IteratedProcrustes:
    """Values of `iterated_procrustes`."""

    iterations: int  # fits after the first one, which is on the known pairs
    neighbours: int  # of CSLS


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfLearning(bootstrap.Loop):
    """Values of `run_self_learning`: an orthogonal map, known pairs at the start alone."""

    reweight: float = 0.0
    pair_weight: float = 0.0
    keep_prob: float  # probability at first that a similarity takes part; doubled on stall
    steps: int  # at most


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of every method; None for methods that are not run."""

    k: int = 10  # list length of the MRR that is logged over the steps
    bootstrap: search.Settings = dataclasses.field(default_factory=search.Settings)
    start: starts.Settings = dataclasses.field(default_factory=starts.Settings)
    disjoint: Disjoint = dataclasses.field(default_factory=Disjoint)
    algorithm1: Algorithm1 | None = None
    iterated_procrustes: IteratedProcrustes | None = None
    self_learning: SelfLearning | None = None
    mini_vec2vec: unpaired.MiniVec2Vec = dataclasses.field(default_factory=unpaired.MiniVec2Vec)
    rosetta: unpaired.Rosetta = dataclasses.field(default_factory=unpaired.Rosetta)
    goat: Goat = dataclasses.field(default_factory=Goat)


def gt(problem: Problem, run: Run) -> Result:
    """All true parallel anchors (paper: GT)."""
    return Result(jnp.take(problem.target, problem.truth[problem.anchors], axis=0))


def seed(problem: Problem, run: Run) -> Result:
    """The anchors of the known pairs alone (paper: Seed)."""
    return Result(jnp.take(problem.target, problem.target_pairs, axis=0))


def lstsq_truth(problem: Problem, run: Run) -> Result:
    """Least squares on the true pairing: a strong reference, not a bound."""
    spaces, anchors = (problem.source, problem.target), problem.source_anchors
    weight = problem.truth >= 0
    found = bootstrap.fit_anchors(*spaces, anchors, problem.truth, weight, unit_anchors=False)
    return Result(found)


def run_algorithm1_printed(problem: Problem, run: Run) -> Result:
    """Algorithm 1 as printed in the paper."""
    return _algorithm1(problem, run, algorithm1.printed(run.settings.algorithm1))


def run_algorithm1(problem: Problem, run: Run) -> Result:
    """Algorithm 1 whose random anchors begin near zero."""
    return _algorithm1(problem, run, run.settings.algorithm1)


def _algorithm1(problem: Problem, run: Run, settings: Algorithm1) -> Result:
    anchors = problem.source_anchors
    key = jax.random.key(run.random_seed)
    state = run.train(
        algorithm1.step,
        algorithm1.init(key, problem.target, problem.target_pairs, len(anchors), settings),
        algorithm1.prepare(problem.source, anchors, problem.target, len(problem.target_pairs)),
        settings,
        num_steps=settings.steps,
        chunk=25,
        evaluate=search.curve(problem, run, lambda state: state.anchors),
    )
    return Result(state.anchors)


def run_procrustes(problem: Problem, run: Run) -> Result:
    """The orthogonal map fitted on the known pairs, applied to the anchors."""
    return _mapped(problem, _fitted_to_pairs(search.all_rows(problem)))


def run_iterated_procrustes(problem: Problem, run: Run) -> Result:
    """The orthogonal map fitted in turn with its own mutual matches (Lample et al. 2018)."""
    settings, found = run.settings.iterated_procrustes, run_procrustes(problem, run)
    for _ in range(settings.iterations):
        both = found.coordinates(problem.source, problem.target)
        matches = bootstrap.csls_matches(*both, neighbours=settings.neighbours)
        found = _mapped(problem, _fitted_to_mutual(problem.source, problem.target, matches))
    return found


@jax.jit
def _fitted_to_pairs(data: Data) -> Float[Array, "d_source d_target"]:
    return procrustes(data.source[data.source_pairs], data.target[data.target_pairs])


@jax.jit
def _fitted_to_mutual(source, target, matches: Matches) -> Float[Array, "d_source d_target"]:
    return procrustes(source * matches.mutual[:, None], target[matches.to_target])


def run_self_learning(problem: Problem, run: Run) -> Result:
    """Semi-supervised self-learning (Artetxe et al. 2018): `bootstrap.step` without re-weighting.

    Similarities are dropped at random, ever fewer; at the end the advanced map is fitted once.
    """
    settings = run.settings.self_learning
    data = search.all_rows(problem)
    maps = bootstrap.common_maps(bootstrap.pair_covariance(data), 0.0)
    start = bootstrap.from_maps(*maps, settings.keep_prob, run.random_seed)
    state = search.run_loop(run, start, data, settings, num_steps=settings.steps, chunk=25)
    found = bootstrap.current_matches(state, data, settings.neighbours)
    source_map, target_map = advanced_maps(data, found)
    # The target vectors of least norm whose coordinates are nearest to those of the anchors.
    anchors = unit(problem.source_anchors @ source_map @ jnp.linalg.pinv(target_map))
    return Result(anchors, (source_map, target_map))


def _unpaired(name: str, problem: Problem, run: Run) -> Result:
    """A method of `unpaired`: its map, applied to the anchors."""
    solve, settings = unpaired.METHODS[name][0], getattr(run.settings, name)
    pairs = problem.source_pairs, problem.target_pairs
    return _mapped(problem, solve(problem.source, problem.target, pairs, settings, run.random_seed))


def _mapped(problem: Problem, transform) -> Result:
    maps = transform, np.eye(problem.target.shape[1], dtype=np.float32)
    return Result(mapped(problem.source_anchors, transform), maps)


@jax.jit
def advanced_maps(
    data: Data, found: Matches
) -> tuple[Float[Array, "d_source r"], Float[Array, "d_target r"]]:
    """Whiten, orthogonal map, re-weight by .5 / .5, de-whiten (Artetxe et al. 2018, steps 1 to 4).

    The dictionary is the union of both directions of `found`. Returns maps into common coordinates.
    """
    source = jnp.concatenate([data.source, data.source[found.to_source]])
    target = jnp.concatenate([data.target[found.to_target], data.target])

    whiten_source, dewhiten_source = whitening(source), whitening(source, -1.0)
    whiten_target, dewhiten_target = whitening(target), whitening(target, -1.0)
    covariance = whiten_source @ (source.T @ target) @ whiten_target
    left, values, right = jnp.linalg.svd(covariance, full_matrices=False)
    scale = jnp.sqrt(values)
    return (
        (whiten_source @ left * scale) @ (left.T @ dewhiten_source @ left),
        (whiten_target @ right.T * scale) @ (right @ dewhiten_target @ right.T),
    )


METHODS: dict[str, Callable[[Problem, Run], Result]] = {
    "gt": gt,
    "seed": seed,
    "algorithm1_printed": run_algorithm1_printed,
    "algorithm1": run_algorithm1,
    "bootstrap": search.run,
    "disjoint": disjoint.run,
    "lstsq_truth": lstsq_truth,
    "procrustes": run_procrustes,
    "iterated_procrustes": run_iterated_procrustes,
    "self_learning": run_self_learning,
    **{name: partial(_unpaired, name) for name in unpaired.METHODS},
}
NEED_PAIRS = ("seed", "procrustes", "iterated_procrustes", "self_learning")
READ_TRUTH = ("gt", "lstsq_truth")
