"""Pairs of embedding spaces by name, and noisy copies of a space."""

import jax
from jaxtyping import Array, Float

from common.errors import UserError
from common.linear import preprocess, whitening


def names(pair: str) -> tuple[str, str]:
    """The names of both spaces of a value of config.pairs; UserError if it has no colon."""
    source, colon, target = pair.partition(":")
    if not colon:
        raise UserError(f"'{pair}' of config.pairs is no pair: write SOURCE:TARGET.")
    return source, target


def fields(names: tuple[str, str]) -> dict[str, str]:
    """The fields of a row of results that say which pair of spaces it is about."""
    return {"dataset": " -> ".join(names), "source": names[0], "target": names[1]}


def file_name(source: str, target: str) -> str:
    """A pair of names, or of paths, as a part of the name of a file."""
    return f"{source}-{target}".replace("/", "_").replace(" ", "_")


def noisy_isometry(
    key: jax.Array, x: Float[Array, "n d"], noise: float | Float[Array, ""]
) -> Float[Array, "n d"]:
    """A rotated copy of a space of preprocessed rows, with noise of the space's covariance C.

    y = p((x + noise G C^(1/2)) Q), where G has independent standard normal entries, Q is a random
    orthogonal matrix and p is `preprocess`. In each direction the noise has `noise` times the
    standard deviation of the space. Before p, linear CKA is about 1 / (1 + noise^2) for many rows.
    """
    normal, rotation = jax.random.split(key)
    root = whitening(x - x.mean(axis=0), -1.0)
    moved = x + noise * jax.random.normal(normal, x.shape) @ root
    return preprocess(moved @ jax.random.orthogonal(rotation, x.shape[1]))
