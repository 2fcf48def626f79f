"""The nearest class mean (section 3 of the paper): pure functions on arrays."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def means(x: Float[Array, "n d"], labels: Int[Array, " n"], classes: int) -> Float[Array, "c d"]:
    """The mean of each class, mu_c = sum_i [y_i = c] x_i / sum_i [y_i = c] (equation 1).

    Args:
      x: training rows.
      labels: their classes, 0 to `classes` - 1; every class has a row.
      classes: number of classes, c.
    """
    member = jax.nn.one_hot(labels, classes, axis=0)
    return member @ x / member.sum(axis=1, keepdims=True)


def classify(x: Float[Array, "n d"], centres: Float[Array, "c d"]) -> Int[Array, " n"]:
    """The class with the nearest mean, argmin_c |x - mu_c|^2 (equation 2)."""
    # |x - mu|^2 = |x|^2 - 2 x mu + |mu|^2, of which |x|^2 is the same for all classes.
    return jnp.argmax(x @ centres.T - (centres**2).sum(axis=1) / 2, axis=1)
