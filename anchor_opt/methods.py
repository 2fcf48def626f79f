"""Each method as one function: a problem and a config in, anchors of the moving space out.

`METHODS` maps the names of config.methods to them; a new method is a function and a line there.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anchor_opt import algorithm1, baselines, bootstrap, search
from anchor_opt.problem import Found, Problem, Run
from anchor_opt.refine import refine
from anchor_opt.relative import unit
from common import train
from common.alignment import procrustes


def gt(problem: Problem, run: Run) -> Found:
    """All true parallel anchors (paper: GT)."""
    del run
    return Found(jnp.take(problem.moving, problem.truth[problem.anchors], axis=0))


def seed(problem: Problem, run: Run) -> Found:
    """The seeds alone (paper: Seed)."""
    del run
    return Found(jnp.take(problem.moving, problem.seeds, axis=0))


def oracle(problem: Problem, run: Run) -> Found:
    """Least squares on the true pairing: the ceiling of anchors that may be any vector."""
    del run
    everyone = np.ones(len(problem.truth), bool)
    anchors = _given(problem)
    found = refine(problem.fixed, problem.moving, anchors, problem.truth, everyone, sphere=False)
    return Found(found)


def run_algorithm1(problem: Problem, run: Run) -> Found:
    """Algorithm 1 as printed."""
    config = run.config.algorithm1
    settings = algorithm1.Settings(
        config.learning_rate,
        config.sinkhorn_epsilon,
        config.sinkhorn_iterations,
        config.permute,
        config.plan,
        config.freeze_seeds,
    )
    anchors = _given(problem)
    data = algorithm1.data(problem.fixed, anchors, problem.moving, len(problem.seeds))
    key = jax.random.key(run.random_seed)
    state = train.run(
        algorithm1.step,
        algorithm1.init(key, problem.moving, problem.seeds, len(anchors), settings),
        data,
        settings,
        num_steps=config.steps,
        chunk=25,
        work=run.work,
        part=run.part,
        evaluate=lambda state: search.mrr_of(problem, state.anchors, run.config.k),
    )
    return Found(state.anchors)


def run_procrustes(problem: Problem, run: Run) -> Found:
    """The orthogonal map of the seeds, applied to the anchors."""
    del run
    seeds = (problem.fixed, problem.fixed_seeds), (problem.moving, problem.seeds)
    transform = procrustes(*(jnp.take(space, rows, axis=0) for space, rows in seeds))
    return _through(problem, transform)


def run_iterated_procrustes(problem: Problem, run: Run) -> Found:
    """Procrustes re-fitted on its own mutual matches."""
    config = run.config.iterated_procrustes
    transform = baselines.iterated_procrustes(
        search.whole(problem), iterations=config.iterations, neighbours=config.neighbours
    )
    return _through(problem, transform)


def run_self_learning(problem: Problem, run: Run) -> Found:
    """Semi-supervised self-learning (Artetxe et al. 2018): the public peer's loop, in ours."""
    config = run.config.self_learning
    data = search.whole(problem)
    settings = bootstrap.Settings(config.neighbours, 0.0, 0.0, config.patience, config.tolerance)
    state = train.run(
        bootstrap.step,
        baselines.self_learning_start(data, config.keep, run.random_seed),
        data,
        settings,
        num_steps=config.steps,
        chunk=25,
        work=run.work,
        part=run.part,
        done=lambda state: bootstrap.done(state, settings),
    )
    found = bootstrap.matches(state, data, config.neighbours)
    maps = baselines.advanced_maps(data, found)
    anchors = baselines.parallel_through(_given(problem), *maps)
    return Found(anchors, (unit(data.fixed @ maps[0]), unit(data.moving @ maps[1])))


def _given(problem: Problem) -> Float[Array, "k d_fixed"]:
    """The anchors of the fixed space."""
    return jnp.take(problem.fixed, problem.anchors, axis=0)


def _through(problem: Problem, transform) -> Found:
    anchors = unit(_given(problem) @ transform)
    return Found(anchors, baselines.map_with(transform, search.whole(problem)))


METHODS: dict[str, Callable[[Problem, Run], Found]] = {
    "gt": gt,
    "seed": seed,
    "algorithm1": run_algorithm1,
    "bootstrap": search.run,
    "oracle": oracle,
    "procrustes": run_procrustes,
    "iterated_procrustes": run_iterated_procrustes,
    "self_learning": run_self_learning,
}
FROM_SEEDS = ("seed", "procrustes", "iterated_procrustes", "self_learning")  # nothing without
