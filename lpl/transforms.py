"""The transforms S0 to S5 of Table 1b, by the definitions of Artetxe et al. (2018)."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from common.manifold import to_spheres

EPSILON = float(np.finfo(np.float32).eps)


class Whitening(NamedTuple):
    """A symmetric matrix and its inverse, both zero on directions that the rows leave open."""

    matrix: Float[Array, "d d"]
    inverse: Float[Array, "d d"]


NORMALISATIONS = {"unit": to_spheres, "center": lambda x: x - x.mean(axis=0)}


@partial(jax.jit, static_argnames="steps")
def normalise(x: Float[Array, "n d"], steps: tuple[str, ...]) -> Float[Array, "n d"]:
    """S0: 'unit' and 'center' in their order, over all words of a space; backpropagates."""
    for step in steps:
        x = NORMALISATIONS[step](x)
    return x


def whitening(pairs: Float[Array, "k d"]) -> Whitening:
    """S1: V diag(1/s) V', by which the rows of a dictionary, U diag(s) V', become V's basis."""
    _, values, right = jnp.linalg.svd(pairs, full_matrices=False)
    kept = values > EPSILON * max(pairs.shape) * values[0]
    gain = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    return Whitening((right.T * gain) @ right, (right.T * values * kept) @ right)


def orthogonal(
    x: Float[Array, "k d_x"], z: Float[Array, "k d_z"]
) -> tuple[Float[Array, "d_x r"], Float[Array, " r"], Float[Array, "d_z r"]]:
    """S2: U, s, V of x' z = U diag(s) V', by which x U and z V correspond; r = min(d_x, d_z)."""
    left, values, right = jnp.linalg.svd(x.T @ z, full_matrices=False)
    return left, values, right.T


def reweight(
    x: Float[Array, "n r"], values: Float[Array, " r"], power: float
) -> Float[Array, "n r"]:
    """S3: each direction by its cross-correlation to a power."""
    return x * values**power


def dewhiten(
    x: Float[Array, "n r"], white: Whitening, rotation: Float[Array, "d r"]
) -> Float[Array, "n r"]:
    """S4: x R' W^-1 R, the whitening undone in rotated coordinates."""
    return x @ (rotation.T @ white.inverse @ rotation)


def reduce(x: Float[Array, "n r"], share: float) -> Float[Array, "n s"]:
    """S5: the first directions, those of largest cross-correlation; one at least."""
    return x[:, : max(1, round(share * x.shape[1]))]
