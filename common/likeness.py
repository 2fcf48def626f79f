"""Whether vectors are of a space, by the directions in which the vectors of that space lie.

The vectors of an embedding space fill its dimensions unevenly: a few principal directions hold much
more of their length than others. Vectors of another space, even of as many dimensions, are in other
coordinates, in which these directions are as good as random.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from common.arrays import Leaf

MAX_DIRECTIONS = 10
MIN_EXCESS = 0.5  # of the share over that in random directions, by which a space is recognised


class Profile(NamedTuple):
    """A summary of a space.

    Attributes:
      directions: [d, r] orthonormal principal directions of its normalised rows.
      share: mean share of the squared length of other rows of the space in these directions. It is
        r / d if the space has no such directions.
    """

    directions: Leaf
    share: Leaf


@jax.jit
def profile(rows: Float[Array, "n d"]) -> Profile:
    """The profile of a space of normalised rows: directions by every other row, share by the rest.

    The share is not measured on the rows to which the directions are fitted, where it is larger.
    """
    count = min(MAX_DIRECTIONS, max(1, rows.shape[1] // 10))
    fitted = rows[::2]
    _, directions = jnp.linalg.eigh(fitted.T @ fitted)  # in ascending order of their share
    return Profile(directions[:, -count:], _share(rows[1::2], directions[:, -count:]))


def likeness(space: Profile, rows: Float[Array, "n d"]) -> float | None:
    """(s - r / d) / (share - r / d), where s is the share of new normalised rows.

    It is about 1 for rows of the space and 0 for rows in random coordinates; None if the space has
    no directions by which it is recognised.
    """
    dimension, count = space.directions.shape
    random = count / dimension
    if not space.share > (1 + MIN_EXCESS) * random:
        return None
    return float((_share(rows, space.directions) - random) / (space.share - random))


def _share(rows: Float[Array, "n d"], directions: Float[Array, "d r"]) -> Float[Array, ""]:
    return ((rows @ directions) ** 2).sum(axis=1).mean() / (rows**2).sum(axis=1).mean()
