"""Each method as one function: a problem and a config in, anchors of the moving space out.

`METHODS` maps the names of config.methods to them; a new method is a function and a line there.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from absl import logging
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt import algorithm1, baselines, bootstrap, starts
from anchor_opt.problem import Problem
from anchor_opt.relative import relative, unit, unit_relative
from common import train
from common.alignment import procrustes
from common.metrics import mrr
from common.retrieval import top_k
from common.workdir import Workdir


class Run(NamedTuple):
    """Where a method runs: the config, the folder, the part's name and the random seed."""

    config: ConfigDict
    work: Workdir
    part: str
    random_seed: int


class Found(NamedTuple):
    """What a method found.

    Attributes:
      anchors: [k, d_moving], parallel to the fixed space's first k anchors.
      coordinates: the method's own common coordinates of both spaces, unit rows; None without.
      notes: what the method can say about itself without labels.
    """

    anchors: Float[Array, "k d_moving"]
    coordinates: tuple[Float[Array, "n r"], Float[Array, "n r"]] | None = None
    notes: dict = {}  # noqa: RUF012  # never written to


def gt(problem: Problem, run: Run) -> Found:
    """All true parallel anchors (paper: GT)."""
    del run
    return Found(problem.moving[problem.truth[problem.anchors]])


def seed(problem: Problem, run: Run) -> Found:
    """The seeds alone (paper: Seed)."""
    del run
    return Found(problem.moving[problem.seeds])


def oracle(problem: Problem, run: Run) -> Found:
    """Least squares on the true pairing: the ceiling of anchors that may be any vector."""
    del run
    weight = jnp.ones(len(problem.truth))
    anchors = problem.fixed[problem.anchors]
    truth = jnp.asarray(problem.truth)
    return Found(
        bootstrap.refine(problem.fixed, problem.moving, anchors, truth, weight, sphere=False)
    )


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
    anchors = problem.fixed[problem.anchors]
    data = algorithm1.Data(
        relative(problem.fixed, anchors), problem.moving, jnp.int32(len(problem.seeds))
    )
    key = jax.random.key(run.random_seed)
    state = train.run(
        algorithm1.step,
        algorithm1.init(key, problem.moving, problem.seeds, len(anchors), settings),
        data,
        settings,
        num_steps=config.steps,
        chunk=min(25, config.steps),
        work=run.work,
        part=run.part,
        evaluate=lambda state: _mrr(problem, state.anchors, run.config.k),
    )
    return Found(state.anchors)


def run_bootstrap(problem: Problem, run: Run) -> Found:
    """Seed coordinates, matching and mapping in turn, sharpening on all words, free anchors."""
    config = run.config.bootstrap
    state, notes = _search(problem, run)

    # Sharpen: all words, both spaces partly whitened so that minor directions count as well. The
    # rows of a whitened space times the inverse are the rows they were, up to length.
    powers = config.whiten, -config.whiten
    fixed_map, fixed_back = (bootstrap.whitening(problem.fixed, power) for power in powers)
    moving_map, moving_back = (bootstrap.whitening(problem.moving, power) for power in powers)
    data = _data(problem)._replace(
        fixed=unit(problem.fixed @ fixed_map), moving=unit(problem.moving @ moving_map)
    )
    start = bootstrap.at(fixed_back @ state.from_fixed, moving_back @ state.from_moving)
    # The seeds have no extra weight here: what the other matches do not bear out is disbelieved.
    settings = bootstrap.Settings(
        config.neighbours, config.sharpen_reweight, 0.0, 1, config.sharpen_tolerance
    )

    def matched_and_fitted(state):
        found = bootstrap.matches(state, data, config.neighbours)
        return found, _fit(problem, problem.fixed, problem.moving, found, config)

    state = train.run(
        bootstrap.step,
        start,
        data,
        settings,
        num_steps=config.sharpen_steps,
        chunk=2,
        work=run.work,
        part=f"{run.part}/sharpen",
        evaluate=lambda state: _mrr(problem, matched_and_fitted(state)[1], run.config.k),
        done=lambda state: bootstrap.done(state, settings),
    )
    found, anchors = matched_and_fitted(state)
    notes["disbelieved"] = _disbelieved(data, found)
    return Found(anchors, bootstrap.coordinates(state, data), notes)


def _disbelieved(data: bootstrap.Data, found: bootstrap.Matches) -> list[int]:
    """Numbers of the seed pairs of which neither side is the other's match."""
    agreed = (found.to_moving[data.fixed_seeds] == data.moving_seeds) | (
        found.to_fixed[data.moving_seeds] == data.fixed_seeds
    )
    return [int(i) for i in jnp.flatnonzero(~agreed)]


def _search(problem: Problem, run: Run) -> tuple[bootstrap.State, dict]:
    """The loop on the most frequent words, from one start after the other until one succeeds.

    Failure needs no labels: an objective no better than that of the same loop started from pairs
    that are known to be wrong.
    """
    config = run.config.bootstrap
    count = min(config.search_words, len(problem.truth))
    rows, moving_rows = problem.frequent(count)
    seeds = jnp.arange(len(problem.seeds))
    data = bootstrap.Data(problem.fixed[rows], problem.moving[moving_rows], seeds, seeds)
    settings = bootstrap.Settings(
        config.neighbours, config.reweight, config.seed_weight, config.patience, config.tolerance
    )

    def evaluate(state):
        found = bootstrap.matches(state, data, config.neighbours)
        return _mrr(problem, _fit(problem, data.fixed, data.moving, found, config), run.config.k)

    def search(name, start, data, num_steps, evaluate=None):
        state = train.run(
            bootstrap.step,
            start,
            data,
            settings,
            num_steps=num_steps,
            chunk=4,
            work=run.work,
            part=f"{run.part}/{name}",
            evaluate=evaluate,
            done=lambda state: bootstrap.done(state, settings),
        )
        return float(state.best), state

    # Rows in orders that say nothing about each other: pairs of them are wrong.
    some = jnp.arange(max(len(seeds), 15))
    wrong = data._replace(fixed_seeds=some, moving_seeds=(some + 1) % count)
    chance, _ = search("chance", bootstrap.init(wrong), wrong, config.chance_steps)
    best, state, start_of_best = -jnp.inf, None, None
    for name, start in _starts(problem, data, run):
        objective, found = search(f"search-{name}", start, data, config.search_steps, evaluate)
        if objective > best:
            best, state, start_of_best = objective, found, name
        if best >= config.success_ratio * chance:
            break
    failed = best < config.success_ratio * chance
    if failed:
        logging.warning(
            "%s has failed: its objective %.3f is no better than from wrong seeds (%.3f); give it "
            "more seeds or closer spaces.",
            run.part,
            best,
            chance,
        )
    return state, {"objective": best, "chance": chance, "failed": failed, "start": start_of_best}


def _starts(problem: Problem, data: bootstrap.Data, run: Run):
    """Yields (name, state), the likeliest first: the seeds, the geometry, the seeds with dropping.

    Lazily: the geometry takes longer than the seeds, and is only asked when they have failed.
    """
    config = run.config.bootstrap
    if len(problem.seeds):
        yield "seeds", bootstrap.init(data)
    for candidate in starts.candidates(problem, run.config.start, run.random_seed):
        yield candidate.name, bootstrap.at(*bootstrap.maps(candidate.covariance, config.reweight))
    for number in range(config.restarts if len(problem.seeds) else 0):
        salt = 10_000 * (1 + 100 * run.random_seed + number)  # far apart: a step moves it by two
        yield f"drop{number}", bootstrap.init(data, config.restart_keep, salt)


def _fit(problem: Problem, fixed, moving, found: bootstrap.Matches, config) -> Array:
    """Free anchors fitted to the mutual matches between `fixed` and `moving`, unwhitened rows."""
    weight = found.mutual.astype(jnp.float32)
    anchors = problem.fixed[problem.anchors]
    return bootstrap.refine(fixed, moving, anchors, found.to_moving, weight, sphere=config.sphere)


def _mrr(problem: Problem, anchors: Float[Array, "k d_moving"], k: int) -> dict:
    """MRR of the fixed words in the moving space, for the curve over iterations only."""
    fixed = unit_relative(problem.fixed, problem.fixed[problem.anchors[: len(anchors)]])
    moving = unit_relative(problem.moving[problem.truth], anchors)
    return {"mrr": mrr(top_k(fixed, moving, k)[1], jnp.arange(len(fixed)))}


def run_procrustes(problem: Problem, run: Run) -> Found:
    """The orthogonal map of the seeds, applied to the anchors."""
    del run
    transform = procrustes(problem.fixed[problem.fixed_seeds], problem.moving[problem.seeds])
    return _through(problem, transform)


def run_iterated_procrustes(problem: Problem, run: Run) -> Found:
    """Procrustes re-fitted on its own mutual matches."""
    config = run.config.iterated_procrustes
    transform = baselines.iterated_procrustes(
        _data(problem), iterations=config.iterations, neighbours=config.neighbours
    )
    return _through(problem, transform)


def run_self_learning(problem: Problem, run: Run) -> Found:
    """Semi-supervised self-learning (Artetxe et al. 2018): the public peer's loop, in ours."""
    config = run.config.self_learning
    data = _data(problem)
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
    anchors = baselines.parallel_through(problem.fixed[problem.anchors], *maps)
    return Found(anchors, (unit(data.fixed @ maps[0]), unit(data.moving @ maps[1])))


def _data(problem: Problem) -> bootstrap.Data:
    return bootstrap.Data(
        problem.fixed,
        problem.moving,
        jnp.asarray(problem.fixed_seeds),
        jnp.asarray(problem.seeds),
    )


def _through(problem: Problem, transform) -> Found:
    anchors = unit(problem.fixed[problem.anchors] @ transform)
    return Found(anchors, baselines.map_with(transform, _data(problem)))


METHODS: dict[str, Callable[[Problem, Run], Found]] = {
    "gt": gt,
    "seed": seed,
    "algorithm1": run_algorithm1,
    "bootstrap": run_bootstrap,
    "oracle": oracle,
    "procrustes": run_procrustes,
    "iterated_procrustes": run_iterated_procrustes,
    "self_learning": run_self_learning,
}
FROM_SEEDS = ("seed", "procrustes", "iterated_procrustes", "self_learning")  # nothing without
