"""Algorithm 1 of the paper as printed: Sinkhorn, permute, one Adam step on the sphere, repeat."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from anchor_opt.relative import relative, unit
from common import manifold, ot
from common.retrieval import top_k


class Settings(NamedTuple):
    """Table 3, and what the paper leaves open (`permute`, `plan`, `freeze_seeds`)."""

    learning_rate: float
    epsilon: float
    sinkhorn_iterations: int
    permute: str  # 'fixed': each moving row takes a fixed row, Π: Y -> X (eq. 1); or 'moving'
    plan: str  # 'hard': the argmax of the plan; 'soft': its weighted mean
    freeze_seeds: bool


class State(NamedTuple):
    """Anchors of the moving space, unit rows, and the state of the optimiser."""

    anchors: Float[Array, "k d_moving"]
    optimiser: optax.OptState


class Data(NamedTuple):
    """What the steps read: all unit rows."""

    fixed_relative: Float[Array, "n k"]
    moving: Float[Array, "m d_moving"]
    num_seeds: Int[Array, ""]


def optimiser(settings: Settings) -> optax.GradientTransformation:
    """Adam on a product of unit spheres (Table 3; the paper uses GeoTorch)."""
    return manifold.spheres(optax.adam(settings.learning_rate))


@partial(jax.jit, static_argnames=("num_anchors", "settings"))
def init(
    key: jax.Array,
    moving: Float[Array, "m d_moving"],
    seeds: Int[Array, " s"],
    num_anchors: int,
    settings: Settings,
) -> State:
    """Line 1: the seeds, and N(0, I) for the rest, put on the sphere."""
    noise = jax.random.normal(key, (num_anchors - len(seeds), moving.shape[1]))
    anchors = unit(jnp.concatenate([moving[jnp.asarray(seeds)], noise]))
    return State(anchors, optimiser(settings).init(anchors))


def step(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """Lines 4 to 8: one estimate of the permutation, one optimiser step."""
    del index
    fixed, moving = data.fixed_relative, relative(data.moving, state.anchors)
    found = ot.match(
        fixed,
        moving,
        settings.epsilon,
        iterations=settings.sinkhorn_iterations,
        rows=settings.permute == "moving" and settings.plan == "hard",
    )

    def mse(anchors):
        mine = relative(data.moving, anchors)
        match settings.permute, settings.plan:
            case "fixed", "hard":
                return jnp.mean((fixed[found.to_x] - mine) ** 2)
            case "fixed", "soft":
                mean = ot.barycentric(moving, fixed, found.u, fixed, settings.epsilon)
                return jnp.mean((mean - mine) ** 2)
            case "moving", "hard":
                return jnp.mean((fixed - mine[found.to_y]) ** 2)
            case "moving", "soft":
                mean = ot.barycentric(fixed, moving, found.v, mine, settings.epsilon)
                return jnp.mean((fixed - mean) ** 2)

    loss, gradient = jax.value_and_grad(mse)(state.anchors)
    if settings.freeze_seeds:
        gradient = jnp.where(jnp.arange(len(gradient))[:, None] < data.num_seeds, 0.0, gradient)
    updates, optimiser_state = optimiser(settings).update(gradient, state.optimiser, state.anchors)
    return State(optax.apply_updates(state.anchors, updates), optimiser_state), {"loss": loss}


@jax.jit
def discretise(anchors: Float[Array, "k d"], vectors: Float[Array, "n d"]) -> Int[Array, " k"]:
    """Line 10: the row of `vectors` (unit) nearest to each anchor in cosine."""
    return top_k(unit(anchors), vectors, 1)[1][:, 0]
