"""Anchors freed from the common map: each fitted to the matched pairs, on the unit sphere."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from anchor_opt.relative import unit, unit_relative


@partial(jax.jit, static_argnames="sphere")
def refine(
    fixed: Float[Array, "n d_fixed"],
    moving: Float[Array, "m d_moving"],
    anchors: Float[Array, "k d_fixed"],
    to_moving: Int[Array, " n"],
    weight: Float[Array, " n"] | Bool[Array, " n"],
    *,
    sphere: bool = True,
) -> Float[Array, "k d_moving"]:
    """Free anchors of the moving space that fit the matched pairs best: eq. 1 with the match fixed.

    Minimises sum_i weight_i |rr(x_i, A_X) / |rr(x_i, A_X)| - y_match(i) A_Y'|^2, the target being
    the unit relative row that the metrics look at.

    Args:
      fixed: unit rows.
      moving: unit rows.
      anchors: anchors of the fixed space.
      to_moving: the row of `moving` matched with each row of `fixed`.
      weight: of each row of `fixed`; 0 leaves it out.
      sphere: |a| = 1 for each anchor, the paper's constraint, the targets scaled to suit: solved
        exactly, row by row, by its secular equation (G + l I) a = c, |a| = 1, in the eigenbasis of
        G. Otherwise least squares.
    """
    targets = unit_relative(fixed, anchors) * weight[:, None]
    matched = moving[to_moving]
    total = jnp.maximum(weight.sum(), 1)
    gram = (matched * weight[:, None]).T @ matched / total
    cross = targets.T @ matched / total
    values, vectors = jnp.linalg.eigh(gram)
    cross = cross @ vectors
    floor = 1e-7 * values[-1]
    kept = values > floor
    free = jnp.where(kept, cross / jnp.where(kept, values, 1.0), 0.0)
    if not sphere:
        return free @ vectors.T
    # The metrics normalise, so the targets' common scale is ours to choose: that at which the free
    # anchors have length one on the mean, and the sphere bends them least.
    cross = cross / jnp.linalg.norm(free, axis=1).mean()
    # |a(l)| falls from infinity to below one between these two: bisect.
    low = jnp.full(len(cross), floor - values[0])
    high = jnp.linalg.norm(cross, axis=1) - values[0] + floor

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        long = jnp.sum((cross / (values + middle[:, None])) ** 2, axis=1) > 1
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    low, high = lax.fori_loop(0, 60, halve, (low, high))
    return unit(cross / (values + high[:, None])) @ vectors.T
