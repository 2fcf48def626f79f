"""Anchors of the target space that are fitted to matched rows."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from common.linear import unit

BISECTIONS = 60


@partial(jax.jit, static_argnames="unit_anchors")
def fit_anchors(
    source: Float[Array, "n d_source"],
    target: Float[Array, "m d_target"],
    anchors: Float[Array, "k d_source"],
    to_target: Int[Array, " n"],
    weight: Float[Array, " n"] | Bool[Array, " n"],
    *,
    unit_anchors: bool = True,
) -> Float[Array, "k d_target"]:
    """Anchors of the target that fit the matched pairs best: eq. 1 with the permutation fixed.

    Minimises sum_i weight_i |rr(x_i, A_X) / |rr(x_i, A_X)| - y_match(i) A_Y'|^2 over A_Y. The first
    term is the unit relative row, which the metrics compare.

    Args:
      source: unit rows.
      target: unit rows.
      anchors: of the source.
      to_target: the row of `target` matched with each row of `source`.
      weight: of each row of `source`; 0 leaves it out.
      unit_anchors: whether |a| = 1 for each anchor, as in the paper. The problem is then solved
        exactly, anchor by anchor, by its secular equation (G + l I) a = c, |a| = 1, in the
        eigenbasis of the Gram matrix G. Otherwise it is least squares.
    """
    relative_rows = unit(source @ anchors.T) * weight[:, None]
    partners = target[to_target]
    total = jnp.maximum(weight.sum(), 1)
    gram = (partners * weight[:, None]).T @ partners / total
    cross = relative_rows.T @ partners / total
    values, vectors = jnp.linalg.eigh(gram)
    cross = cross @ vectors
    floor = 1e-7 * values[-1]
    regular = values > floor
    least_squares = jnp.where(regular, cross / jnp.where(regular, values, 1.0), 0.0)
    if not unit_anchors:
        return least_squares @ vectors.T
    # The metrics normalise rows, so the common scale of the relative rows is arbitrary. It is set
    # so that the least-squares anchors have mean length one, which changes them least.
    cross = cross / jnp.linalg.norm(least_squares, axis=1).mean()
    # |a(l)| falls from infinity to below one between these two bounds: bisection.
    low = jnp.full(len(cross), floor - values[0])
    high = jnp.linalg.norm(cross, axis=1) - values[0] + floor

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        long = jnp.sum((cross / (values + middle[:, None])) ** 2, axis=1) > 1
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    low, high = lax.fori_loop(0, BISECTIONS, halve, (low, high))
    return unit(cross / (values + high[:, None])) @ vectors.T
