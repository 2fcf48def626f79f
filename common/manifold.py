"""Any optax optimiser on a product of unit spheres or on the orthogonal group.

Every update projects the gradient to the tangent space, lets the wrapped optimiser turn it into a
step, projects that, retracts the point it leads to, and carries the optimiser's first moments over
to the tangent space there (Absil et al. 2008, sections 3.6, 4.1 and 8.1; Becigneul and Ganea 2019,
"Riemannian adaptive optimization methods"). All are those of the embedding: tangent projection and
transport are the euclidean projection to the tangent space, retraction is that to the manifold.

Second moments stay as the optimiser has them: they are squares, not tangent vectors. Becigneul and
Ganea keep one number for each sphere, Adam here keeps its own one for each coordinate; the step it
rescales is projected again, so it still goes down, but it depends on the choice of coordinates.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

# State fields that are weighted sums of past gradients, by the names optax gives them: most
# optimisers (mu), momentum (trace), AdEMAMix (m1, m2, m), Adan (m), Prodigy and MoMo (exp_avg), ...
FIRST_MOMENTS = frozenset({"mu", "trace", "m", "m1", "m2", "exp_avg", "ema", "previous_gradient"})


@jax.jit
def to_spheres(x: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """Rows (last axis) scaled to unit length; a zero row has no direction and stays zero."""
    length = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return x / jnp.where(length > 0, length, 1.0)


def to_orthogonal(x: Float[Array, "... p d"]) -> Float[Array, "... p d"]:
    """The nearest matrix with orthonormal columns, or orthonormal rows where p < d (polar factor).

    Not unique for x of deficient rank: some nearest matrix is returned.
    """
    if x.shape[-2] < x.shape[-1]:
        return to_orthogonal(x.mT).mT
    left, _, right = jnp.linalg.svd(x, full_matrices=False)
    polar = left @ right
    # A float32 decomposition is off by a few roundings: one Newton-Schulz step takes them away.
    return polar @ (1.5 * jnp.eye(x.shape[-1], dtype=x.dtype) - polar.mT @ polar / 2)


def sphere_tangent(
    x: Float[Array, "... d"], vector: Float[Array, "... d"]
) -> Float[Array, "... d"]:
    """Projects each row of `vector` to the tangent space at the unit row of x: v - <v, x> x."""
    return vector - jnp.sum(vector * x, axis=-1, keepdims=True) * x


def orthogonal_tangent(
    x: Float[Array, "... p d"], vector: Float[Array, "... p d"]
) -> Float[Array, "... p d"]:
    """Projects to the tangent space at x: v - x sym(x' v) (Absil et al. 2008, example 3.6.2)."""
    if x.shape[-2] < x.shape[-1]:  # orthonormal rows: the same of the transposes
        return orthogonal_tangent(x.mT, vector.mT).mT
    inner = x.mT @ vector
    return vector - x @ (inner + inner.mT) / 2


def spheres(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """Turns an optax optimiser into one on a product of unit spheres.

    The last axis of every array of the parameters is a point on a sphere. Put learning rates,
    schedules, clipping and weight decay inside: nothing may follow this in an `optax.chain`. For a
    tree of which only some arrays are on the manifold, use it in `optax.partition`.

    A start off the manifold is put on it by the first update, better by `to_spheres` before that. A
    zero row becomes its first step, normalised; it stays zero for as long as that is zero.

    Args:
      optimiser: any whose state keeps no points: not schedule-free, lookahead, mechanic, L-BFGS.

    Returns:
      A transformation after whose updates `optax.apply_updates` is on the manifold to rounding. Its
      state is that of `optimiser`, its first moments (`FIRST_MOMENTS`) tangent at the new point.

    Raises:
      ValueError: `update` was called without the parameters.
    """
    return _riemannian(optimiser, sphere_tangent, to_spheres)


def orthogonal(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """As `spheres`, on the orthogonal group O(d), and on the Stiefel manifold for p x d arrays.

    The last two axes of every array are a matrix with orthonormal columns, or rows where p < d.
    O(d) has two parts, of determinant 1 and -1: small steps never leave the one they start in.
    Each update costs a singular value decomposition of every matrix.

    Args:
      optimiser: as in `spheres`.

    Returns:
      As `spheres`.

    Raises:
      ValueError: `update` was called without the parameters.
    """
    return _riemannian(optimiser, orthogonal_tangent, to_orthogonal)


def _riemannian(
    optimiser: optax.GradientTransformation, tangent: Callable, retract: Callable
) -> optax.GradientTransformation:
    optimiser = optax.with_extra_args_support(optimiser)

    def update(gradient, state, params=None, **extra_args):
        if params is None:
            raise ValueError(
                "A Riemannian update needs the parameters: update(grads, state, params)."
            )
        gradient = jax.tree.map(tangent, params, gradient)
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
