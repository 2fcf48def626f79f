"""The second phase: a map trained by gradient descent on pairs, neighbours' weights frozen."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from lpl import loss, maps


class Settings(NamedTuple):
    """What a step is compiled for; the values are explained in configs/lpl/word_alignment.py."""

    apply: maps.Apply
    learning_rate: float
    momentum: float
    batch: int
    updates: int
    updates_per_step: int
    beta: float
    orthogonality: float


class Data(NamedTuple):
    """Training pairs, padded to one shape so that runs on fewer share a compilation.

    Attributes:
      source: units of the pairs.
      targets: their partners.
      neighbours: of each unit, in the source space.
      weights: of each neighbour, from the first phase.
      count: of pairs that are no padding.
      key: from which each update's draw is folded.
    """

    source: Float[Array, "n d_in"]
    targets: Float[Array, "n d_out"]
    neighbours: Float[Array, "n k d_in"]
    weights: Float[Array, "n k"]
    count: Int[Array, ""]
    key: Array


class State(NamedTuple):
    """Of the loop."""

    parameters: maps.Parameters
    optimiser: optax.OptState


def init(parameters: maps.Parameters, settings: Settings) -> State:
    """The state before the first update."""
    return State(parameters, _optimiser(settings).init(parameters))


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`updates_per_step` updates, each on a batch drawn with replacement; their mean losses."""

    def update(state, number):
        draw = jax.random.fold_in(data.key, number)
        rows = jax.random.randint(draw, (settings.batch,), 0, data.count)
        (_, terms), gradient = jax.value_and_grad(objective, has_aux=True)(
            state.parameters, data, rows, settings
        )
        change, optimiser = _optimiser(settings).update(gradient, state.optimiser, state.parameters)
        return State(optax.apply_updates(state.parameters, change), optimiser), terms

    numbers = index * settings.updates_per_step + jnp.arange(settings.updates_per_step)
    state, terms = lax.scan(update, state, numbers)
    return state, {name: values.mean() for name, values in terms.items()}


def objective(
    parameters: maps.Parameters, data: Data, rows: Int[Array, " b"], settings: Settings
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """L_mse + beta L_lpl + L_ortho of a batch (eq. 7), and its terms."""

    def mapped(x):
        return settings.apply(parameters, x)

    linear = settings.apply is maps.linear
    targets = data.targets[rows]
    terms = {"mse": loss.mse(mapped(data.source[rows]), targets).mean()}
    total = terms["mse"]
    if settings.beta:
        near, weights = data.neighbours[rows], data.weights[rows]
        if linear:  # the same by one vector for k, see `loss.lpl`
            terms["lpl"] = loss.mse(mapped(loss.combine(near, weights)), targets).mean()
        else:
            terms["lpl"] = loss.lpl(mapped(near), weights, targets).mean()
        total += settings.beta * terms["lpl"]
    if linear and settings.orthogonality:
        terms["orthogonality"] = loss.orthogonality(parameters)
        total += settings.orthogonality * terms["orthogonality"]
    return total, terms


def _optimiser(settings: Settings) -> optax.GradientTransformation:
    decay = optax.cosine_decay_schedule(settings.learning_rate, settings.updates)
    return optax.sgd(decay, momentum=settings.momentum)
