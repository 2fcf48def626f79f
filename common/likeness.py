"""Whether vectors are of a space, by the directions in which the vectors of that space lie.

The vectors of an embedding space fill its dimensions unevenly: a few principal directions hold much
more of their length than others. Vectors of another space, even of as many dimensions, are in other
coordinates, in which these directions are as good as random.
"""

from typing import Any, NamedTuple

from jaxtyping import Float

from common.arrays import AnyArray, Leaf
from common.rows import by_jax

MAX_DIRECTIONS = 10
MIN_EXCESS = 0.5  # of the share over that in random directions, by which a space is recognised


class Profile(NamedTuple):
    """Orthonormal principal directions [d, r] of a space's normalised rows, and other rows' share.

    That is the mean share of their squared length; it is r / d if there are no such directions.
    """

    directions: Leaf
    share: Leaf


def profile(rows: Float[AnyArray, "n d"]) -> Profile:
    """The profile of normalised rows: directions of every other one, share of those not fitted."""
    return by_jax(_profile)(rows)


def _profile(rows, xp) -> Profile:
    count = min(MAX_DIRECTIONS, max(1, rows.shape[1] // 10))
    fitted = rows[::2]
    _, directions = xp.linalg.eigh(fitted.T @ fitted)  # in ascending order of their share
    return Profile(directions[:, -count:], _share(rows[1::2], directions[:, -count:]))


def likeness(space: Profile, rows: Float[AnyArray, "n d"]) -> float | None:
    """(s - r / d) / (share - r / d), where s is the share of new normalised rows.

    It is about 1 for rows of the space and 0 for rows in random coordinates; None if the space has
    no directions by which it is recognised.
    """
    dimension, count = space.directions.shape
    random = count / dimension
    if not space.share > (1 + MIN_EXCESS) * random:
        return None
    return float((_share(rows, space.directions) - random) / (space.share - random))


def _share(rows: Any, directions: Any) -> Any:
    return ((rows @ directions) ** 2).sum(axis=1).mean() / (rows**2).sum(axis=1).mean()
