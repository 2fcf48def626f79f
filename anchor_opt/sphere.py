"""Optax optimisers on products of unit spheres.

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

# State fields of optax that are weighted sums of past gradients: mu (most optimisers), trace
# (momentum), m1, m2 and m (AdEMAMix, Adan), exp_avg (Prodigy, MoMo), ...
FIRST_MOMENTS = frozenset({"mu", "trace", "m", "m1", "m2", "exp_avg", "ema", "previous_gradient"})


def tangent(
    x: Float[AnyArray, "... d"], vector: Float[AnyArray, "... d"]
) -> Float[AnyArray, "... d"]:
    """Projects each row v of `vector` to the tangent space at the unit row x: v - <v, x> x."""
    return vector - jnp.sum(vector * x, axis=-1, keepdims=True) * x


def spheres(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """Turns an optax optimiser into one on a product of unit spheres.

    The last axis of each parameter array is a point on a sphere; an initial point off it is moved
    onto it by the first update. Learning rates, schedules, clipping and weight decay belong inside:
    nothing may follow in an `optax.chain`. The optimiser's state must have no points, as that of
    schedule-free, lookahead, mechanic and L-BFGS has. ValueError: `update` without the parameters.
    """
    optimiser = optax.with_extra_args_support(optimiser)

    def update(updates, state, params=None, **extra_args):
        if params is None:
            raise ValueError(
                "A Riemannian update needs the parameters: update(grads, state, params)."
            )
        gradient = jax.tree.map(tangent, params, updates)
        step, state = optimiser.update(gradient, state, params, **extra_args)
        moved = jax.tree.map(lambda x, v: unit(x + tangent(x, v)), params, step)
        return jax.tree.map(jnp.subtract, moved, params), _transport(state, moved)

    return optax.GradientTransformationExtraArgs(optimiser.init, update)


def _transport(state: optax.OptState, params: optax.Params) -> optax.OptState:
    points = dict(jax.tree_util.tree_flatten_with_path(params)[0])

    def transport(path, leaf):
        # The first moment of the array at params[path] is at state[..., "mu", path].
        for depth, key in enumerate(path):
            if getattr(key, "name", None) in FIRST_MOMENTS:
                point = points.get(path[depth + 1 :])
                if point is not None and point.shape == leaf.shape:
                    return tangent(point, leaf).astype(leaf.dtype)
        return leaf

    return jax.tree_util.tree_map_with_path(transport, state)
