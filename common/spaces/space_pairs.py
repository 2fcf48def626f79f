"""Pairs of embedding spaces by name, and noisy copies of a space."""

import jax
from jaxtyping import Array, Float

from common.errors import UserError
from common.linear import preprocess, whitening


def names(pair: str) -> tuple[str, str]:
    """The names of both spaces of a pair.

    Args:
      pair: SOURCE:TARGET, a value of config.pairs.

    Raises:
      UserError: the pair has no colon.
    """
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
    """A rotated copy of a space, with Gaussian noise of the space's own covariance.

    y = p((x + noise G C^(1/2)) Q), where C is the covariance of the rows of x, G has independent
    standard normal entries, Q is a random orthogonal matrix and p is `common.linear.preprocess`. In
    each direction the noise has `noise` times the standard deviation of the space. Before p, the
    linear CKA of x and y is about 1 / (1 + noise^2) for many rows.

    Args:
      key: of the random numbers.
      x: preprocessed rows.
      noise: at least 0; 0 is an isometry.

    Returns:
      Preprocessed rows; row i is the copy of row i of x.
    """
    normal, rotation = jax.random.split(key)
    root = whitening(x - x.mean(axis=0), -1.0)
    moved = x + noise * jax.random.normal(normal, x.shape) @ root
    return preprocess(moved @ jax.random.orthogonal(rotation, x.shape[1]))
