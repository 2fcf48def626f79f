"""The normalisation of rows, by NumPy for its arrays and by JAX for others; JAX is not imported.

A saved map is applied by NumPy alone, in processes that have no JAX, were forked, or have threads.
"""

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from jaxtyping import Float

from common.arrays import SameArray

STEPS = ("unit", "center")  # of a normalisation
NORMALISATION = ("unit", "center", "unit")


def is_jax(*arrays: Any) -> bool:
    """Whether one of the values is an array of JAX, or a tracer; none is where it isn't loaded."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(x, jax.Array) for x in arrays)


def is_traced(*arrays: Any) -> bool:
    """Whether one of the values is a tracer of JAX."""
    return is_jax(*arrays) and any(isinstance(x, sys.modules["jax"].core.Tracer) for x in arrays)


@cache
def by_jax(function: Callable, *static: int) -> Callable:
    """The function, of which the argument `xp` is NumPy or JAX's, compiled for the latter."""
    import jax

    return jax.jit(partial(function, xp=jax.numpy), static_argnums=static)


def unit(x: Float[SameArray, "... d"]) -> Float[SameArray, "... d"]:
    """Rows (last axis) of norm 1, in the library of x; a zero row stays zero, with gradient one."""
    return _unit(x, np) if isinstance(x, np.ndarray) else by_jax(_unit)(x)


def _unit(x, xp) -> Any:
    return _divided(x, xp.sum(x * x, axis=-1, keepdims=True), xp)


def _divided(x, squares, xp) -> Any:
    """Rows of norm 1, by the squares of their lengths."""
    length = xp.sqrt(xp.where(squares > 0, squares, 1))
    # The `where` keeps XLA from multiplying by a reciprocal root, which has one rounding more.
    return x / xp.where(squares > 0, length, 1)


def normalise(x, steps, means, centre_rows, xp) -> tuple[Any, Any, Any, Any]:
    """Normalised rows, the means, and two masks: rows without a direction, rows not finite."""
    not_finite = ~xp.isfinite(x).all(axis=1)
    fitted, min_length = xp.zeros((0, x.shape[1]), x.dtype), xp.zeros(len(x), x.dtype)
    without_direction = xp.zeros(len(x), bool)
    for step in steps:
        squares = xp.sum(x * x, axis=1, keepdims=True)
        length = xp.sqrt(squares)[:, 0]
        if step == "unit":
            without_direction |= ~((min_length < length) & (length < xp.inf))
            x = _divided(x, squares, xp)
        else:  # a vector that centring shortens a million times consists of rounding errors
            min_length = xp.maximum(min_length, 1e-6 * length)
            mean = x[:centre_rows].mean(axis=0) if means is None else means[len(fitted)]
            x, fitted = x - mean, xp.concatenate([fitted, mean[None]])
    return x, fitted, without_direction, not_finite
