"""Optax optimisers on products of unit spheres and on orthogonal matrices.

An update projects the gradient to the tangent space at the current point, passes it to the wrapped
optimiser, projects the optimiser's step to the tangent space, retracts the resulting point to the
manifold, and transports the optimiser's first moments to the tangent space there (Absil et al.
2008, "Optimization algorithms on matrix manifolds", sections 3.6, 4.1 and 8.1; Becigneul and Ganea
2019, "Riemannian adaptive optimization methods"). All operations are those of the embedding:
tangent projection and transport are the Euclidean projection to the tangent space, retraction is
the Euclidean projection to the manifold.

Second moments are not transported: they are squares, not tangent vectors. Becigneul and Ganea use
one second moment for each sphere. Adam here keeps one for each coordinate; its rescaled step is
projected again, so it is a descent direction, but it depends on the choice of coordinates.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from common.arrays import AnyArray
from common.linear import polar, unit

# State fields of optax that are weighted sums of past gradients: mu (most optimisers), trace
# (momentum), m1, m2 and m (AdEMAMix, Adan), exp_avg (Prodigy, MoMo), ...
FIRST_MOMENTS = frozenset({"mu", "trace", "m", "m1", "m2", "exp_avg", "ema", "previous_gradient"})


def to_orthogonal(x: Float[AnyArray, "... p d"]) -> Float[Array, "... p d"]:
    """The nearest matrix with orthonormal columns, or orthonormal rows if p < d (polar factor).

    It is not unique if x is rank-deficient; one of the nearest matrices is returned.
    """
    if x.shape[-2] < x.shape[-1]:
        return to_orthogonal(x.mT).mT
    nearest = jnp.vectorize(polar, signature="(p,d)->(p,d)")(x)
    # One Newton-Schulz step removes the rounding errors of the float32 decomposition.
    return nearest @ (1.5 * jnp.eye(x.shape[-1], dtype=x.dtype) - nearest.mT @ nearest / 2)


def sphere_tangent(
    x: Float[AnyArray, "... d"], vector: Float[AnyArray, "... d"]
) -> Float[AnyArray, "... d"]:
    """Projects each row v of `vector` to the tangent space at the unit row x: v - <v, x> x."""
    return vector - jnp.sum(vector * x, axis=-1, keepdims=True) * x


def orthogonal_tangent(
    x: Float[AnyArray, "... p d"], vector: Float[AnyArray, "... p d"]
) -> Float[AnyArray, "... p d"]:
    """Projects to the tangent space at x: v - x sym(x' v) (Absil et al. 2008, example 3.6.2)."""
    if x.shape[-2] < x.shape[-1]:  # orthonormal rows: the same for the transposes
        return orthogonal_tangent(x.mT, vector.mT).mT
    inner = x.mT @ vector
    return vector - x @ (inner + inner.mT) / 2


def spheres(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """Turns an optax optimiser into one on a product of unit spheres.

    The last axis of each parameter array is a point on a sphere. Learning rates, schedules,
    clipping and weight decay belong inside: nothing may follow in an `optax.chain`. If only some
    arrays of a tree are on the manifold, use it in `optax.partition`.

    An initial point off the manifold is moved onto it by the first update; better, pass it through
    `linear.unit` first. A zero row becomes its first nonzero step, normalised.

    Args:
      optimiser: any whose state has no points, so not schedule-free, lookahead, mechanic, L-BFGS.

    Returns:
      A transformation after whose updates `optax.apply_updates` is on the manifold up to rounding.
      Its state is that of `optimiser`; first moments (`FIRST_MOMENTS`) are tangent at the new
      point.

    Raises:
      ValueError: `update` is called without the parameters.
    """
    return _riemannian(optimiser, sphere_tangent, unit)


def orthogonal(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """As `spheres`, on the orthogonal group O(d), and on the Stiefel manifold for p x d arrays.

    The last two axes of each array are a matrix with orthonormal columns, or rows if p < d. O(d)
    has two components, of determinant 1 and -1, and small steps never leave the initial one. Each
    update costs a singular value decomposition of each matrix.
    """
    return _riemannian(optimiser, orthogonal_tangent, to_orthogonal)


def _riemannian(
    optimiser: optax.GradientTransformation, tangent: Callable, retract: Callable
) -> optax.GradientTransformation:
    optimiser = optax.with_extra_args_support(optimiser)

    def update(updates, state, params=None, **extra_args):
        if params is None:
            raise ValueError(
                "A Riemannian update needs the parameters: update(grads, state, params)."
            )
        gradient = jax.tree.map(tangent, params, updates)
        step, state = optimiser.update(gradient, state, params, **extra_args)
        moved = jax.tree.map(lambda x, v: retract(x + tangent(x, v)), params, step)
        return jax.tree.map(jnp.subtract, moved, params), _transport(tangent, state, moved)

    return optax.GradientTransformationExtraArgs(optimiser.init, update)


def _transport(tangent: Callable, state: optax.OptState, params: optax.Params) -> optax.OptState:
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
