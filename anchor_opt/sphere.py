"""Adam and SGD of optax on products of unit spheres.

An update projects the gradient to the tangent space at the current point, passes it to the wrapped
optimiser, projects the optimiser's step to the tangent space, normalises the resulting point, and
transports the optimiser's first moments to the tangent space there (Absil et al. 2008,
"Optimization algorithms on matrix manifolds", sections 3.6, 4.1 and 8.1; Becigneul and Ganea 2019,
"Riemannian adaptive optimization methods").

Second moments are not transported: they are squares, not tangent vectors. Becigneul and Ganea use
one second moment for each sphere. Adam here keeps one for each coordinate; its rescaled step is
projected again, so it is a descent direction, but it depends on the choice of coordinates.
"""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from common.arrays import AnyArray
from common.linear import unit

FIRST_MOMENTS = ("mu", "trace")  # in the states of Adam and of SGD with momentum


def tangent(
    x: Float[AnyArray, "... d"], vector: Float[AnyArray, "... d"]
) -> Float[AnyArray, "... d"]:
    """Projects each row v of `vector` to the tangent space at the unit row x: v - <v, x> x."""
    return vector - jnp.sum(vector * x, axis=-1, keepdims=True) * x


def spheres(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """Turns Adam or SGD, with or without momentum, into one on a product of unit spheres.

    The last axis of each parameter array is a point on a sphere; an initial point off it is moved
    onto it by the first update. Learning rates, schedules, clipping and weight decay belong inside:
    nothing may follow in an `optax.chain`. ValueError: `update` without the parameters.
    """

    def update(updates, state, params=None):
        if params is None:
            raise ValueError(
                "A Riemannian update needs the parameters: update(grads, state, params)."
            )
        gradient = jax.tree.map(tangent, params, updates)
        step, state = optimiser.update(gradient, state, params)
        moved = jax.tree.map(lambda x, v: unit(x + tangent(x, v)), params, step)
        for name in FIRST_MOMENTS:
            moments = optax.tree_utils.tree_get(state, name)
            if moments is not None:
                transported = jax.tree.map(tangent, moved, moments)
                state = optax.tree_utils.tree_set(state, **{name: transported})
        return jax.tree.map(jnp.subtract, moved, params), state

    return optax.GradientTransformation(optimiser.init, update)
