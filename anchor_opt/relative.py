"""Relative representations (Moschella et al. 2023).

The relative representation of a vector is the list of its similarities to the anchors of its space.
Two spaces are comparable if their anchors are parallel: anchor j of both spaces is the same item.
"""

import jax
from jaxtyping import Array, Float

from common.arrays import SameArray
from common.linear import unit


def relative(
    x: Float[SameArray, "n d"], anchors: Float[SameArray, "k d"]
) -> Float[SameArray, "n k"]:
    """rr(x, A) = x A': the cosine of each row with each anchor (paper, section 2).

    Args:
      x: unit rows.
      anchors: rows, not normalised here: an anchor's length scales its column.
    """
    return x @ anchors.T


@jax.jit
def unit_relative(x: Float[Array, "n d"], anchors: Float[Array, "k d"]) -> Float[Array, "n k"]:
    """`relative` with unit rows, which all metrics use."""
    return unit(relative(x, anchors))
