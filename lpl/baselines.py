"""The closed-form rows of Table 1a: each maps both whole spaces into common coordinates."""

from functools import partial

import jax
from jaxtyping import Array, Float, Int

from common import alignment
from lpl import transforms

Common = tuple[Float[Array, "n r"], Float[Array, "m r"]]


def shigeto_2015(
    source: Float[Array, "n d_x"],
    target: Float[Array, "m d_z"],
    pairs: Int[Array, "k 2"],
    *,
    normalise: tuple[str, ...],
    penalty: float,
) -> Common:
    """Ridge regression from target to source: targets move, which makes fewer hubs."""
    x, z = transforms.normalise(source, normalise), transforms.normalise(target, normalise)
    return x, z @ alignment.ridge(z[pairs[:, 1]], x[pairs[:, 0]], penalty)


@partial(jax.jit, static_argnames=("normalise", "whiten", "reweight", "keep"))
def multi_step(
    source: Float[Array, "n d_x"],
    target: Float[Array, "m d_z"],
    pairs: Int[Array, "k 2"],
    *,
    normalise: tuple[str, ...],
    whiten: bool = False,
    reweight: float = 0.0,
    keep: float = 1.0,
) -> Common:
    """The framework of Artetxe et al. (2018), S0 to S5 in turn; S2 always.

    Args:
      source: the space that is searched from, raw.
      target: the space that is searched in, raw.
      pairs: rows that correspond.
      normalise: S0, 'unit' and 'center' in the order in which each space takes them.
      whiten: S1, undone by S4.
      reweight: S3, power of the cross-correlations by which target coordinates are scaled.
      keep: S5, share of the directions.
    """
    x, z = transforms.normalise(source, normalise), transforms.normalise(target, normalise)
    if whiten:
        white_x = transforms.whitening(x[pairs[:, 0]])
        white_z = transforms.whitening(z[pairs[:, 1]])
        x, z = x @ white_x.matrix, z @ white_z.matrix
    left, values, right = transforms.orthogonal(x[pairs[:, 0]], z[pairs[:, 1]])
    x, z = x @ left, transforms.reweight(z @ right, values, reweight)
    if whiten:
        x = transforms.dewhiten(x, white_x, left)
        z = transforms.dewhiten(z, white_z, right)
    return transforms.reduce(x, keep), transforms.reduce(z, keep)
