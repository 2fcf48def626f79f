import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import polar

from common import manifold
from common.linear import unit
from tests.samples import normal


def along(x, v):
    """Twice the products of points on spheres and vectors there: zero for tangent vectors."""
    return 2 * jnp.sum(x * v, axis=-1)


def symmetric(x, v):
    """Zero for tangent vectors at a matrix of orthonormal columns or rows, whose product is I."""
    product = x @ v.mT if x.shape[-2] < x.shape[-1] else x.mT @ v
    return product + product.mT


MANIFOLDS = {  # optimiser of optax -> one on the manifold; nearest point; projection; as above
    "spheres": (manifold.spheres, unit, manifold.sphere_tangent, along),
    "orthogonal": (
        manifold.orthogonal,
        manifold.to_orthogonal,
        manifold.orthogonal_tangent,
        symmetric,
    ),
}
DECAY = optax.cosine_decay_schedule(0.05, 1000)
every_manifold = pytest.mark.parametrize(
    ("wrap", "nearest", "tangent", "inner"), MANIFOLDS.values(), ids=MANIFOLDS
)


def minimised(optimiser, loss, params, steps=1000):
    """The parameters after `steps` steps down the gradient of loss(params, index of the step)."""

    @jax.jit
    def run(params):
        def step(i, carry):
            params, state = carry
            updates, state = optimiser.update(jax.grad(loss)(params, i), state, params)
            return optax.apply_updates(params, updates), state

        return jax.lax.fori_loop(0, steps, step, (params, optimiser.init(params)))[0]

    return run(params)


def off_manifold(inner, x):
    product = np.asarray(inner(x, x), np.float64) / 2
    return np.abs(product - (1 if product.ndim == 1 else np.eye(len(product)))).max()


def spectrum(seed, values):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    return (q * np.asarray(values)) @ q.T


@pytest.mark.parametrize("optimiser", [optax.sgd(0.02, 0.9), optax.adam(DECAY)])
def test_the_rayleigh_quotient_is_largest_at_the_leading_eigenvector(optimiser):
    matrices = np.stack([spectrum(0, [2, 1, 0.5, 0.1, -1]), spectrum(1, [3, 2, 1, 1, 0])])
    a = jnp.asarray(matrices, jnp.float32)
    loss = lambda x, i: -jnp.einsum("ni,nij,nj", x, a, x)  # noqa: E731
    x = minimised(manifold.spheres(optimiser), loss, unit(normal(2, 2, 5)))
    for maximiser, matrix in zip(np.asarray(x), matrices, strict=True):
        leading = np.linalg.eigh(matrix)[1][:, -1]
        assert abs(maximiser @ leading) > 1 - 1e-6
    assert off_manifold(along, x) < 1e-6


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_the_nearest_orthogonal_matrix_is_the_polar_factor(shape):
    """It has the largest product with a matrix; O(4) has two parts, of which I is in one."""
    matrix = np.eye(*shape) + normal(0, *shape) / 5
    loss = lambda w, i: -jnp.sum(w * matrix)  # noqa: E731
    w = minimised(manifold.orthogonal(optax.sgd(0.05, 0.5)), loss, jnp.eye(*shape), 400)
    np.testing.assert_allclose(w, polar(matrix)[0], atol=2e-4)
    assert off_manifold(symmetric, w) < 1e-6


@pytest.mark.slow
@every_manifold
def test_parameters_stay_on_the_manifold_for_1000_steps(wrap, nearest, tangent, inner):
    """Steps of constant size with random gradients do not converge, so that drift accumulates."""
    start = nearest(normal(0, 16, 16))
    loss = lambda x, i: jnp.sum(x * jax.random.normal(jax.random.key(i), x.shape))  # noqa: E731
    end = minimised(wrap(optax.adam(0.05)), loss, start)
    assert off_manifold(inner, end) < 1e-6
    assert np.abs(end - np.asarray(start)).max() > 0.1


@every_manifold
@given(st.integers(0, 10_000), st.sampled_from([(4, 4), (5, 3), (3, 5), (2, 4, 4)]))
@settings(max_examples=15)
def test_the_tangent_is_the_orthogonal_projection(wrap, nearest, tangent, inner, seed, shape):
    x, v, w = (jnp.asarray(normal(seed + i, *shape)) for i in range(3))
    x = nearest(x)
    projected = tangent(x, v)
    np.testing.assert_allclose(inner(x, projected), 0, atol=5e-6)
    np.testing.assert_allclose(tangent(x, projected), projected, atol=5e-6)
    residual = v - projected  # normal to every tangent vector
    product = jnp.sum(residual * tangent(x, w), axis=(-2, -1))
    np.testing.assert_allclose(product, 0, atol=2e-5)


MOMENTUM = {
    "adam": optax.adam(0.1),
    "momentum": optax.sgd(0.1, momentum=0.9),
    "chain": optax.chain(optax.clip(0.5), optax.adamw(optax.linear_schedule(0.1, 0.0, 10))),
    "accumulated": optax.MultiSteps(optax.adam(0.1), 2).gradient_transformation(),
}


@every_manifold
@pytest.mark.parametrize("optimiser", MOMENTUM.values(), ids=MOMENTUM)
def test_moments_are_tangent_at_the_new_point(wrap, nearest, tangent, inner, optimiser):
    params = {"a": nearest(normal(0, 4, 4)), "b": (nearest(normal(1, 5, 3)),)}
    optimiser = wrap(optimiser)
    state = optimiser.init(params)
    update = jax.jit(optimiser.update)
    for i in range(3):
        gradient = jax.tree.map(lambda x, i=i: normal(i, *x.shape), params)
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    moments = [
        value
        for name in ("mu", "trace")
        for _, value in optax.tree_utils.tree_get_all_with_path(state, name)
    ]
    assert len(moments) == 1
    assert jax.tree.structure(moments[0]) == jax.tree.structure(params)
    for moment, point in zip(*map(jax.tree.leaves, (moments[0], params)), strict=True):
        assert np.abs(moment).max() > 1e-3
        np.testing.assert_allclose(tangent(point, moment), moment, atol=1e-6)


def test_one_step_of_adam_agrees_with_its_definition():
    x, gradient = unit(normal(0, 3, 4)), normal(1, 3, 4)
    plain, optimiser = optax.adam(0.5), manifold.spheres(optax.adam(0.5))
    updates, state = optimiser.update(gradient, optimiser.init(x), x)

    def tangent(v):
        return v - np.sum(v * x, axis=1, keepdims=True) * x

    expected = x - tangent(0.5 * np.sign(tangent(gradient)))  # the first step of Adam is the sign
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(x + updates, expected, atol=1e-5)
    second = plain.update(tangent(gradient), plain.init(x), x)[1][0].nu  # not transported
    np.testing.assert_allclose(state[0].nu, second, atol=1e-6)
    with pytest.raises(ValueError, match="needs the parameters"):
        optimiser.update(gradient, state)


def test_moments_have_the_dtype_that_the_optimiser_chose():
    optimiser, x = manifold.spheres(optax.adam(0.1, mu_dtype=jnp.bfloat16)), unit(normal(0, 3, 4))
    before = optimiser.init(x)
    _, after = optimiser.update(normal(1, 3, 4), before, x)
    assert jax.tree.map(jnp.dtype, after) == jax.tree.map(jnp.dtype, before)


@given(st.integers(0, 10_000), st.sampled_from([(16, 16), (30, 5), (5, 30)]))
@settings(max_examples=10)
def test_to_orthogonal_is_the_polar_factor_to_rounding(seed, shape):
    x = normal(seed, *shape)
    factor = manifold.to_orthogonal(x)
    left, _, right = np.linalg.svd(x.astype(np.float64), full_matrices=False)
    np.testing.assert_allclose(factor, left @ right, atol=1e-3)
    assert off_manifold(symmetric, factor) < 4e-7


def test_partition_puts_some_arrays_of_a_tree_on_a_manifold():
    params = {"anchors": unit(normal(0, 3, 4)), "map": jnp.eye(3), "bias": jnp.ones(2)}
    labels = {"anchors": "spheres", "map": "orthogonal", "bias": "free"}
    adam = optax.adam(0.1)
    parts = {"spheres": manifold.spheres(adam), "orthogonal": manifold.orthogonal(adam)}
    optimiser = optax.partition(parts | {"free": adam}, labels)
    gradient = jax.tree.map(lambda x: normal(5, *x.shape), params)
    updates, state = optimiser.update(gradient, optimiser.init(params), params)
    new = optax.apply_updates(params, updates)
    assert off_manifold(along, new["anchors"]) < 1e-6
    assert off_manifold(symmetric, new["map"]) < 1e-6
    np.testing.assert_allclose(new["bias"], 1 - 0.1 * np.sign(gradient["bias"]), atol=1e-6)
    moment = state.inner_states["spheres"].inner_state[0].mu["anchors"]
    np.testing.assert_allclose(jnp.sum(moment * new["anchors"], axis=1), 0, atol=1e-6)


def test_an_initial_point_off_the_manifold_is_moved_onto_it_and_zero_rows_stay():
    optimiser = manifold.spheres(optax.sgd(0.1))
    params = jnp.array([[3.0, 4.0], [0.0, 0.0], [0.0, 0.0]])
    gradient = jnp.array([[0.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    updates, _ = optimiser.update(gradient, optimiser.init(params), params)
    new = optax.apply_updates(params, updates)
    np.testing.assert_allclose(new, [[0.6, 0.8], [0, -1], [0, 0]], atol=1e-6)
    optimiser = manifold.orthogonal(optax.sgd(0.1))
    params = 2 * jnp.eye(3)
    updates, _ = optimiser.update(jnp.zeros((3, 3)), optimiser.init(params), params)
    np.testing.assert_allclose(optax.apply_updates(params, updates), np.eye(3), atol=1e-6)
