"""What anchor optimisation has to beat: maps between the spaces from the same seeds.

All maps here act on the right of rows; a parallel anchor is the image of the fixed space's anchor.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from anchor_opt.bootstrap import Data, Matches, State, at, match
from anchor_opt.relative import unit
from common.alignment import procrustes


@partial(jax.jit, static_argnames=("iterations", "neighbours"))
def iterated_procrustes(
    data: Data, *, iterations: int, neighbours: int = 10
) -> Float[Array, "d_fixed d_moving"]:
    """Procrustes on the seeds, then on the mutual CSLS matches of each map (Lample et al. 2018).

    Args:
      data: both spaces and the seeds.
      iterations: re-fits after the one on the seeds.
      neighbours: of CSLS.
    """

    def refit(_, transform):
        fixed, moving = map_with(transform, data)
        found = match(fixed, moving, neighbours=neighbours)
        pairs = data.fixed * found.mutual[:, None]
        return procrustes(pairs, data.moving[found.to_moving])

    first = procrustes(data.fixed[data.fixed_seeds], data.moving[data.moving_seeds])
    return lax.fori_loop(0, iterations, refit, first)


def map_with(
    transform: Float[Array, "d_fixed d_moving"], data: Data
) -> tuple[Float[Array, "n d_moving"], Float[Array, "m d_moving"]]:
    """The fixed rows mapped into the moving space, unit again, and the moving rows."""
    return unit(data.fixed @ transform), data.moving


def self_learning_start(data: Data, keep: float, salt: int) -> State:
    """The orthogonal maps of the seeds alone, for the self-learning loop (Artetxe et al. 2018).

    The loop itself is `bootstrap.step` at reweight 0, seed weight 0 and a kept share from .1.
    """
    covariance = data.fixed[data.fixed_seeds].T @ data.moving[data.moving_seeds]
    left, _, right = jnp.linalg.svd(covariance, full_matrices=False)
    return at(left, right.T, keep, salt)


@jax.jit
def advanced_maps(
    data: Data, found: Matches
) -> tuple[Float[Array, "d_fixed r"], Float[Array, "d_moving r"]]:
    """Whiten, orthogonal map, re-weight by .5 / .5, de-whiten (Artetxe et al. 2018, steps 1 to 4).

    Args:
      data: both spaces.
      found: the dictionary is the union of its two directions.

    Returns:
      The maps of the two spaces into common coordinates.
    """
    fixed = jnp.concatenate([data.fixed, data.fixed[found.to_fixed]])
    moving = jnp.concatenate([data.moving[found.to_moving], data.moving])

    def whitener(pairs):
        values, vectors = jnp.linalg.eigh(pairs.T @ pairs)
        root = jnp.sqrt(jnp.maximum(values, 1e-6 * values[-1]))
        return (vectors / root) @ vectors.T, (vectors * root) @ vectors.T

    whiten_fixed, colour_fixed = whitener(fixed)
    whiten_moving, colour_moving = whitener(moving)
    covariance = whiten_fixed @ (fixed.T @ moving) @ whiten_moving
    left, values, right = jnp.linalg.svd(covariance, full_matrices=False)
    scale = jnp.sqrt(values)
    return (
        (whiten_fixed @ left * scale) @ (left.T @ colour_fixed @ left),
        (whiten_moving @ right.T * scale) @ (right @ colour_moving @ right.T),
    )


@jax.jit
def parallel_through(
    anchors: Float[Array, "k d_fixed"],
    from_fixed: Float[Array, "d_fixed r"],
    from_moving: Float[Array, "d_moving r"],
) -> Float[Array, "k d_moving"]:
    """Least-norm vectors of the moving space whose coordinates come nearest to the anchors'."""
    return unit(anchors @ from_fixed @ jnp.linalg.pinv(from_moving))
