"""Relative representations (Moschella et al. 2023): a vector as its similarities to the anchors."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


@jax.jit
def unit(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Rows divided by their Euclidean norm; rows must not be zero."""
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


@jax.jit
def preprocess(
    x: Float[Array, "n d"], centre_of: Float[Array, "m d"] | None = None
) -> Float[Array, "n d"]:
    """Unit rows, centred, unit rows again.

    Without the centring the relative spaces of two encoders do not correspond: each has one common
    direction of its own, which every similarity then carries.

    Args:
      x: rows, none zero.
      centre_of: rows whose mean, once they are of unit length, is the centre: the training rows
        when x are those of a test; None: x itself.
    """
    centre = unit(x if centre_of is None else centre_of).mean(axis=0)
    return unit(unit(x) - centre)


def relative(x: Float[Array, "n d"], anchors: Float[Array, "k d"]) -> Float[Array, "n k"]:
    """rr(x, A): the cosine of each row with each anchor (paper, section 2).

    Args:
      x: unit rows.
      anchors: rows of any length; it counts (unit for the cosine).
    """
    return x @ anchors.T


@jax.jit
def unit_relative(x: Float[Array, "n d"], anchors: Float[Array, "k d"]) -> Float[Array, "n k"]:
    """`relative` with unit rows, which all metrics use."""
    return unit(relative(x, anchors))


@jax.jit
def relative_pair(
    fixed: Float[Array, "n d_fixed"],
    moving: Float[Array, "m d_moving"],
    truth: Int[Array, " n"],
    rows: Int[Array, " k"],
    anchors: Float[Array, "k d_moving"],
) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
    """`unit_relative` rows of both spaces, row i of both the same item.

    Args:
      fixed: unit rows.
      moving: unit rows.
      truth: the row of `moving` that is the same item as each row of `fixed`.
      rows: of `fixed` that are its anchors.
      anchors: of `moving`, parallel to them.
    """
    return unit_relative(fixed, fixed[rows]), unit_relative(moving[truth], anchors)
