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
    """What the steps read: all unit rows but for those of `fixed_relative`."""

    fixed: Float[Array, "n d_fixed"]
    fixed_anchors: Float[Array, "k d_fixed"]
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


def data(
    fixed: Float[Array, "n d_fixed"],
    fixed_anchors: Float[Array, "k d_fixed"],
    moving: Float[Array, "m d_moving"],
    num_seeds: int,
) -> Data:
    """What the steps read of two spaces and the anchors of the fixed one."""
    return Data(fixed, fixed_anchors, relative(fixed, fixed_anchors), moving, jnp.int32(num_seeds))


def match(
    data: Data, anchors: Float[Array, "k d_moving"], epsilon: float, **options
) -> ot.Matching:
    """Line 5: the relative spaces' matching; x is the fixed one.

    The relative rows R_X = X A_X' and R_Y = Y A_Y' have k columns, yet R_X R_Y' has no higher rank
    than either space: where one has fewer dimensions than there are anchors, its own rows are
    multiplied instead.

    Args:
      data: both spaces.
      anchors: of the moving one.
      epsilon: of the plan.
      **options: of `common.ot.match`.
    """
    moving = relative(data.moving, anchors)
    k, (d_fixed, d_moving) = len(anchors), (x.shape[1] for x in (data.fixed, data.moving))
    factors = None
    if d_fixed < min(k, d_moving):
        factors = data.fixed, moving @ data.fixed_anchors
    elif d_moving < k:
        factors = data.fixed_relative @ anchors, data.moving
    return ot.match(data.fixed_relative, moving, epsilon, factors=factors, **options)


def step(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """Lines 4 to 8: one estimate of the permutation, one optimiser step."""
    del index
    fixed, moving = data.fixed_relative, relative(data.moving, state.anchors)
    found = match(
        data,
        state.anchors,
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
