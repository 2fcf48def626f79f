"""Readings of Algorithm 1: what the paper prints in two ways, or leaves open."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from anchor_opt.methods import algorithm1
from anchor_opt.methods.algorithm1 import Data, State, sinkhorn_matching
from anchor_opt.problem import Problem, Result, Run
from anchor_opt.relative import relative
from common import manifold, ot
from common.arrays import AnyArray
from common.errors import UserError, check_choice
from common.linear import unit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(algorithm1.Settings):
    """`permute` 'source' compares each target row with the source row that the plan gives it (eq.
    1), 'target' the other way round (line 6). With `plan` 'hard' that row is the argmax of the
    plan, with 'soft' the plan's weighted mean of all rows. At the paper's epsilon many entries of
    the plan are equally large in float32: with `ties` 'first' the first of these rows is taken,
    with 'random' one that depends on the step alone.
    """  # noqa: D205

    permute: str = "source"
    plan: str = "hard"
    freeze_pairs: bool = False  # whether the anchors in known pairs are held constant
    ties: str = "first"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading(algorithm1.Step):
    """Values of one step; the first `num_frozen` anchors are held constant."""

    permute: str
    plan: str
    ties: str
    num_frozen: int


def run(problem: Problem, run: Run) -> Result:
    """Algorithm 1 with the settings of the run, whose random anchors begin near zero.

    Raises:
      UserError: an unknown value of a reading.
    """
    settings, values = run.settings.algorithm1, algorithm1.values_of(run.settings.algorithm1)
    reading = settings.permute, settings.plan, settings.ties
    check_choice("rule of ties", settings.ties, ("first", "random"))
    if reading == ("source", "hard", "first") and not settings.freeze_pairs:
        return algorithm1.solve(problem, run, settings, values)
    num_frozen = settings.freeze_pairs * len(problem.target_pairs)
    choices = dict(zip(("permute", "plan", "ties"), reading, strict=True))
    values = Reading(**dataclasses.asdict(values), **choices, num_frozen=num_frozen)
    return algorithm1.solve(problem, run, settings, values, STEPS)


def sphere_step(state: State, index, data: Data, reading: Reading) -> tuple[State, dict]:
    """As that of Algorithm 1."""
    state = state._replace(anchors=unit(state.anchors))
    optimiser = manifold.spheres(optax.adam(reading.learning_rate))
    return _step(state, index, data, reading, optimiser)


def free_step(state: State, index, data: Data, reading: Reading) -> tuple[State, dict]:
    """As that of Algorithm 1."""
    return _step(state, index, data, reading, optax.adam(reading.learning_rate))


STEPS = {"tied": algorithm1.tied_step, "free": free_step, "sphere": sphere_step}


def _step(state: State, index, data: Data, reading: Reading, optimiser) -> tuple[State, dict]:
    if reading.ties == "random":
        data = shuffled(data, jax.random.key(index))
    x, y = matched_rows(data, state.anchors, reading)
    moved, metrics = algorithm1.descend(state, x, y, data, optimiser)
    frozen = jnp.arange(len(moved.anchors))[:, None] < reading.num_frozen
    return moved._replace(anchors=jnp.where(frozen, state.anchors, moved.anchors)), metrics


def shuffled(data: Data, key: jax.Array) -> Data:
    """The rows of each space in a random order, so that their given order decides no tie."""
    spaces = data.source, data.target
    order, target_order = map(jax.random.permutation, jax.random.split(key), map(len, spaces))
    return data._replace(
        source=data.source[order],
        source_relative=data.source_relative[order],
        target=data.target[target_order],
    )


def matched_rows(
    data: Data, anchors: Float[Array, "k d_target"], reading: Reading
) -> tuple[Float[AnyArray, "r d_source"], Float[AnyArray, "r d_target"]]:
    """Rows of the source, and the rows of the target matched with them.

    With a soft plan the rows of the permuted space are the plan's weighted means.

    Raises:
      UserError: an unknown value of `permute` or `plan`.
    """
    source, target = data.source_relative, relative(data.target, anchors)
    rows, epsilon = (reading.permute, reading.plan) == ("target", "hard"), reading.sinkhorn_epsilon
    matching = sinkhorn_matching(data, anchors, reading, rows=rows)
    match reading.permute, reading.plan:
        case "source", "hard":
            return data.source[matching.to_x], data.target
        case "source", "soft":
            return ot.barycentric(target, source, matching.u, data.source, epsilon), data.target
        case "target", "hard":
            return data.source, data.target[matching.to_y]
        case "target", "soft":
            return data.source, ot.barycentric(source, target, matching.v, data.target, epsilon)
        case other:
            raise UserError(
                f"algorithm1 permutes the '{other[0]}' with the plan '{other[1]}': choose "
                "permute 'source' or 'target', and plan 'hard' or 'soft'."
            )
