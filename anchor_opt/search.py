"""The bootstrap as a method: search from the seeds or the geometry, sharpen, free the anchors.

The mathematics is in bootstrap.py and starts.py; here it is run, judged without labels and logged.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from anchor_opt import bootstrap, starts
from anchor_opt.bootstrap import Data, State
from anchor_opt.problem import Found, Problem, Run
from anchor_opt.refine import refine
from anchor_opt.relative import unit
from common import cli, train
from common.metrics import mrr
from common.retrieval import top_k


class Converged(NamedTuple):
    """Where the loop has ended.

    Attributes:
      state: its maps, of the rows of `data`.
      data: all rows of the problem, partly whitened.
      maps: the same maps, of the problem's own rows: into common coordinates, up to length.
      notes: objective, chance, failed and start of the search.
    """

    state: State
    data: Data
    maps: tuple[Float[Array, "d_fixed r"], Float[Array, "d_moving r"]]
    notes: dict


def check(config: ConfigDict) -> None:
    """Values of config.bootstrap and config.start that can't be meant are said at the start.

    Raises:
      UserError: there is one.
    """
    cli.choose(starts.STARTS, config.start.name, "start.name")
    cli.positive(config, *(f"start.{name}" for name in config.start if name != "name"))
    positive = ("neighbours", "search_words", "patience", "successes")
    positive += ("anneal_epsilon", "anneal_steps", "anneal_iterations")
    cli.positive(config, *(f"bootstrap.{name}" for name in positive))
    if config.bootstrap.anneal_words:
        cli.positive(config, "bootstrap.anneal_words")
    cli.two(config, "bootstrap.anneal_epsilon")


def run(problem: Problem, run: Run) -> Found:
    """Seed coordinates, matching and mapping in turn, sharpening on all words, free anchors."""
    config = run.config.bootstrap
    state, data, _, notes = converge(problem, run)
    found = bootstrap.matches(state, data, config.neighbours)
    anchors = _fit(problem, problem.fixed, problem.moving, found, config)
    seeds = data.fixed_seeds, data.moving_seeds
    notes["disbelieved"] = disbelieved(found.to_moving, found.to_fixed, *seeds)
    return Found(anchors, bootstrap.coordinates(state, data), notes)


def converge(problem: Problem, run: Run) -> Converged:
    """All of it but the free anchors: also where the truth is unknown and the sizes differ."""
    config = run.config.bootstrap
    state, notes = _search(problem, run)

    # Sharpen: all words, both spaces partly whitened so that minor directions count as well. The
    # rows of a whitened space times the inverse are the rows they were, up to length.
    powers = config.whiten, -config.whiten
    fixed_map, fixed_back = (bootstrap.whitening(problem.fixed, power) for power in powers)
    moving_map, moving_back = (bootstrap.whitening(problem.moving, power) for power in powers)
    data = whole(problem)._replace(
        fixed=unit(problem.fixed @ fixed_map), moving=unit(problem.moving @ moving_map)
    )
    start = bootstrap.at(fixed_back @ state.from_fixed, moving_back @ state.from_moving)
    # The seeds have no extra weight here: what the other matches do not bear out is disbelieved.
    settings = bootstrap.Settings(
        config.neighbours, config.sharpen_reweight, 0.0, 1, config.sharpen_tolerance
    )

    def evaluate(state):
        found = bootstrap.matches(state, data, config.neighbours)
        return mrr_of(
            problem, _fit(problem, problem.fixed, problem.moving, found, config), run.config.k
        )

    state = train.run(
        bootstrap.step,
        start,
        data,
        settings,
        num_steps=config.sharpen_steps,
        chunk=2,
        work=run.work,
        part=f"{run.part}/sharpen",
        evaluate=None if problem.truth is None else evaluate,
        done=lambda state: bootstrap.done(state, settings),
    )
    maps = fixed_map @ state.from_fixed, moving_map @ state.from_moving
    return Converged(state, data, maps, notes)


def disbelieved(
    to_moving: Int[Array, " n"], to_fixed: Int[Array, " m"], fixed_seeds, moving_seeds
) -> list[int]:
    """Numbers of the seed pairs of which neither side is the other's match."""
    to_moving, to_fixed = np.asarray(to_moving), np.asarray(to_fixed)
    agreed = (to_moving[fixed_seeds] == moving_seeds) | (to_fixed[moving_seeds] == fixed_seeds)
    return np.flatnonzero(~agreed).tolist()


def _search(problem: Problem, run: Run) -> tuple[State, dict]:
    """The loop on the most frequent words, from one start after the other until enough succeed.

    The best objective wins. Failure needs no labels: an objective no better than that of the same
    loop started from pairs that are known to be wrong.
    """
    config = run.config.bootstrap
    rows, moving_rows = problem.frequent(min(config.search_words, problem.most_rows))
    seeds = np.arange(len(problem.seeds))
    data = Data(
        jnp.take(problem.fixed, rows, axis=0),
        jnp.take(problem.moving, moving_rows, axis=0),
        seeds,
        seeds,
    )
    settings = bootstrap.Settings(
        config.neighbours, config.reweight, config.seed_weight, config.patience, config.tolerance
    )

    def evaluate(state):
        found = bootstrap.matches(state, data, config.neighbours)
        return mrr_of(problem, _fit(problem, data.fixed, data.moving, found, config), run.config.k)

    def search(name, start, data, num_steps, evaluate=None):
        if problem.truth is None:
            evaluate = None
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
        # Of the last state: the first may be in coordinates of other weights, which do not compare.
        return float(bootstrap.matches(state, data, config.neighbours).objective), state

    # Rows in orders that say nothing about each other: pairs of them are wrong.
    some = np.arange(max(len(seeds), 15))
    wrong = data._replace(fixed_seeds=some, moving_seeds=(some + 1) % len(moving_rows))
    chance, _ = search("chance", bootstrap.init(wrong), wrong, config.chance_steps)
    # Of far spaces the objective is below zero: there, too, success must be the higher.
    success = chance + (config.success_ratio - 1) * abs(chance)
    best, state, start_of_best, successes = -jnp.inf, None, None, 0
    for name, start in _starts(problem, data, run):
        objective, found = search(f"search-{name}", start, data, config.search_steps, evaluate)
        if objective > best:
            best, state, start_of_best = objective, found, name
        successes += objective >= success
        if successes >= config.successes:
            break
    failed = best < success
    if failed:
        logging.warning(
            "%s has failed: its objective %.3f is no better than from wrong seeds (%.3f); give it "
            "more seeds or closer spaces.",
            run.part,
            best,
            chance,
        )
    return state, {"objective": best, "chance": chance, "failed": failed, "start": start_of_best}


def _starts(problem: Problem, data: Data, run: Run) -> Iterator[tuple[str, State]]:
    """Yields (name, state), the likeliest first: the seeds, the seeds annealed, the geometry.

    Lazily: each takes longer than the one before it.
    """
    config = run.config.bootstrap
    if len(problem.seeds):
        yield "seeds", bootstrap.init(data)
        for words in dict.fromkeys(min(w, problem.most_rows) for w in config.anneal_words):
            yield f"anneal-{words}", _anneal(problem, run, words)
    for candidate in starts.candidates(problem, run.config.start, run.random_seed):
        yield candidate.name, bootstrap.at(*bootstrap.maps(candidate.covariance, config.reweight))


def _anneal(problem: Problem, run: Run, words: int) -> State:
    """Soft matches from the seeds' coordinates, ever harder, in partly whitened spaces."""
    config = run.config.bootstrap
    rows, moving_rows = problem.frequent(words)
    fixed_map = bootstrap.whitening(problem.fixed, config.anneal_whiten)
    moving_map = bootstrap.whitening(problem.moving, config.anneal_whiten)
    seeds = np.arange(len(problem.seeds))
    data = Data(
        unit(jnp.take(problem.fixed, rows, axis=0) @ fixed_map),
        unit(jnp.take(problem.moving, moving_rows, axis=0) @ moving_map),
        seeds,
        seeds,
    )
    epsilon = np.geomspace(*config.anneal_epsilon, config.anneal_steps)
    state = train.run(
        bootstrap.soft_step,
        bootstrap.init(data),
        data,
        bootstrap.Annealing(
            tuple(epsilon.tolist()),
            config.anneal_iterations,
            config.anneal_reweight,
            config.seed_weight,
        ),
        num_steps=config.anneal_steps,
        chunk=20,
        work=run.work,
        part=f"{run.part}/anneal-{words}",
    )
    return bootstrap.at(fixed_map @ state.from_fixed, moving_map @ state.from_moving)


def _fit(problem: Problem, fixed, moving, found: bootstrap.Matches, config) -> Array:
    """Free anchors fitted to the mutual matches between `fixed` and `moving`, unwhitened rows."""
    anchors = jnp.take(problem.fixed, problem.anchors, axis=0)
    return refine(fixed, moving, anchors, found.to_moving, found.mutual, sphere=config.sphere)


def whole(problem: Problem) -> Data:
    """All rows of both spaces, and the seeds."""
    return Data(problem.fixed, problem.moving, problem.fixed_seeds, problem.seeds)


def mrr_of(problem: Problem, anchors: Float[Array, "k d_moving"], k: int) -> dict:
    """MRR of the fixed words in the moving space, for the curve over iterations only."""
    fixed, moving = problem.relative(anchors)
    return {"mrr": mrr(top_k(fixed, moving, k)[1], np.arange(len(fixed)))}
