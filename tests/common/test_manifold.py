from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import brentq

from common import manifold
from common.linear import unit
from tests.samples import normal


def minimise(optimiser, loss, params, steps):
    """The parameters and the optimiser's state after `steps` steps."""

    @jax.jit
    def run(params):
        def step(_, carry):
            params, state = carry
            updates, state = optimiser.update(jax.grad(loss)(params), state, params)
            return optax.apply_updates(params, updates), state

        return jax.lax.fori_loop(0, steps, step, (params, optimiser.init(params)))

    return run(params)


def off_spheres(x):
    return np.abs(np.linalg.norm(np.asarray(x, np.float64), axis=-1) - 1).max()


def off_orthogonal(x):
    x = np.asarray(x, np.float64)
    small = x if x.shape[0] < x.shape[1] else x.T
    return np.abs(small @ small.T - np.eye(len(small))).max()


OPTIMISERS = {
    "sgd": optax.sgd(0.05),
    "momentum": optax.sgd(0.02, momentum=0.9),
    "nesterov": optax.sgd(0.02, momentum=0.9, nesterov=True),
    "adam": optax.adam(optax.cosine_decay_schedule(0.05, 1000)),
    "clipped adam": optax.chain(
        optax.clip_by_global_norm(1.0), optax.adam(optax.exponential_decay(0.05, 100, 0.5))
    ),
}
every_optimiser = pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)


def spectrum(seed, values):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    return (q * np.asarray(values)) @ q.T


@every_optimiser
def test_the_rayleigh_quotient_is_largest_at_the_leading_eigenvector(optimiser):
    matrices = np.stack([spectrum(0, [2, 1, 0.5, 0.1, -1]), spectrum(1, [3, 2, 1, 1, 0])])
    a = jnp.asarray(matrices, jnp.float32)
    start = unit(normal(2, 2, 5))
    x, _ = minimise(
        manifold.spheres(optimiser), lambda x: -jnp.einsum("ni,nij,nj", x, a, x), start, 1000
    )
    for maximiser, matrix in zip(np.asarray(x), matrices, strict=True):
        leading = np.linalg.eigh(matrix)[1][:, -1]
        assert abs(maximiser @ leading) > 1 - 1e-6
    assert off_spheres(x) < 1e-6


@every_optimiser
def test_least_squares_on_the_sphere_solves_the_secular_equation(optimiser):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(30, 4)) / 5
    b = a @ [0.3, -1.5, 0.8, 0.2] + rng.normal(size=30) / 20
    gram, cross = a.T @ a, a.T @ b

    def at(multiplier):
        return np.linalg.solve(gram + multiplier * np.eye(4), cross)

    lowest = np.linalg.eigvalsh(gram)[0]
    multiplier = brentq(lambda m: np.linalg.norm(at(m)) - 1, -lowest + 1e-9, 1e3, xtol=1e-12)
    start = unit(normal(1, 4))
    a, b = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    loss = lambda x: jnp.sum((a @ x - b) ** 2)  # noqa: E731
    x, _ = minimise(manifold.spheres(optimiser), loss, start, 1000)
    np.testing.assert_allclose(x, at(multiplier), atol=1e-4)


@every_optimiser
def test_orthogonal_reaches_the_procrustes_optimum(optimiser):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6))
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    rotation[0] *= np.sign(np.linalg.det(rotation))  # the part of O(6) that the identity is in
    y = x @ rotation + rng.normal(size=x.shape) / 10
    expected = orthogonal_procrustes(x, y)[0]
    assert np.linalg.det(expected) > 0
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    loss = lambda w: jnp.sum((x @ w - y) ** 2) / len(x)  # noqa: E731
    w, _ = minimise(manifold.orthogonal(optimiser), loss, jnp.eye(6), 1000)
    np.testing.assert_allclose(w, expected, atol=2e-4)
    assert off_orthogonal(w) < 1e-6


@pytest.mark.parametrize("wide", [False, True])
def test_stiefel_reaches_the_leading_subspace(wide):
    a = spectrum(3, [4, 3, 1, 0.5, 0.1])
    orient = (lambda w: w.mT) if wide else (lambda w: w)
    start = manifold.to_orthogonal(orient(jnp.asarray(normal(0, 5, 2))))
    matrix = jnp.asarray(a, jnp.float32)
    loss = lambda w: -jnp.trace(orient(w).mT @ matrix @ orient(w))  # noqa: E731
    w, _ = minimise(manifold.orthogonal(optax.sgd(0.05, 0.5)), loss, start, 400)
    leading = np.linalg.eigh(a)[1][:, -2:]
    np.testing.assert_allclose(orient(w) @ orient(w).mT, leading @ leading.T, atol=1e-5)
    assert off_orthogonal(w) < 1e-6


# Steps of constant size with random gradients do not converge, so that drift would accumulate.
@pytest.mark.slow
@pytest.mark.parametrize("optimiser", [optax.adam(0.05), optax.sgd(0.05, momentum=0.9)])
@pytest.mark.parametrize(
    ("wrap", "start", "off"),
    [
        (manifold.spheres, unit(normal(0, 50, 384)), off_spheres),
        (manifold.orthogonal, manifold.to_orthogonal(normal(0, 16, 16)), off_orthogonal),
    ],
    ids=["spheres", "orthogonal"],
)
def test_parameters_stay_on_the_manifold_for_1000_steps(wrap, start, off, optimiser):
    optimiser = wrap(optimiser)

    @jax.jit
    def run(params):
        def step(i, carry):
            params, state = carry
            gradient = jax.random.normal(jax.random.key(i), params.shape)
            updates, state = optimiser.update(gradient, state, params)
            return optax.apply_updates(params, updates), state

        return jax.lax.fori_loop(0, 1000, step, (params, optimiser.init(params)))[0]

    end = run(start)
    assert off(end) < 1e-6
    assert np.abs(np.asarray(end) - np.asarray(start)).max() > 0.1


random_seeds = st.integers(0, 10_000)


@given(random_seeds)
@settings(max_examples=25)
def test_sphere_tangent_is_the_orthogonal_projection(seed):
    x, (v, w) = unit(normal(seed, 3, 4)), normal(seed + 1, 2, 3, 4)
    tangent = manifold.sphere_tangent(x, v)
    np.testing.assert_allclose(jnp.sum(tangent * x, axis=1), 0, atol=2e-6)
    np.testing.assert_allclose(manifold.sphere_tangent(x, tangent), tangent, atol=2e-6)
    residual = v - tangent  # normal to every tangent vector
    np.testing.assert_allclose(
        jnp.sum(residual * manifold.sphere_tangent(x, w), axis=1), 0, atol=1e-5
    )


@given(random_seeds, st.sampled_from([(4, 4), (5, 3), (3, 5), (2, 4, 4)]))
@settings(max_examples=25)
def test_orthogonal_tangent_is_the_orthogonal_projection(seed, shape):
    x = manifold.to_orthogonal(jnp.asarray(normal(seed, *shape)))
    v, w = jnp.asarray(normal(seed + 1, *shape)), jnp.asarray(normal(seed + 2, *shape))
    tangent = manifold.orthogonal_tangent(x, v)
    product = x @ tangent.mT if shape[-2] < shape[-1] else x.mT @ tangent
    np.testing.assert_allclose(product + product.mT, 0, atol=5e-6)  # skew
    np.testing.assert_allclose(manifold.orthogonal_tangent(x, tangent), tangent, atol=5e-6)
    inner = jnp.sum((v - tangent) * manifold.orthogonal_tangent(x, w), axis=(-2, -1))
    np.testing.assert_allclose(inner, 0, atol=2e-5)


@given(random_seeds)
@settings(max_examples=10)
def test_sgd_does_not_depend_on_the_choice_of_coordinates(seed):
    x, gradient = unit(jnp.asarray(normal(seed, 3, 4))), normal(seed + 1, 3, 4)
    rotation = manifold.to_orthogonal(jnp.asarray(normal(seed + 2, 4, 4)))
    optimiser = manifold.spheres(optax.sgd(0.3))
    state = optimiser.init(x)
    updates, _ = optimiser.update(gradient, state, x)
    rotated, _ = optimiser.update(gradient @ rotation, state, x @ rotation)
    np.testing.assert_allclose(rotated, updates @ rotation, atol=2e-6)


MOMENTUM = {
    "adam": optax.adam(0.1),
    "momentum": optax.sgd(0.1, momentum=0.9),
    "lion": optax.lion(0.1),
    "chain": optax.chain(optax.clip(0.5), optax.adamw(optax.linear_schedule(0.1, 0.0, 10))),
    "injected": optax.inject_hyperparams(optax.adam)(learning_rate=0.1),
    "accumulated": optax.MultiSteps(optax.adam(0.1), 2).gradient_transformation(),
}


@pytest.mark.parametrize("optimiser", MOMENTUM.values(), ids=MOMENTUM)
@pytest.mark.parametrize("kind", ["spheres", "orthogonal"])
def test_moments_are_tangent_at_the_new_point(kind, optimiser):
    tangent = getattr(manifold, kind.removesuffix("s") + "_tangent")
    start = {"spheres": unit, "orthogonal": manifold.to_orthogonal}[kind]
    params = {"a": start(normal(0, 4, 4)), "b": (start(normal(1, 5, 3)),)}
    optimiser = getattr(manifold, kind)(optimiser)
    state = optimiser.init(params)
    for i in range(3):
        gradient = jax.tree.map(lambda x, i=i: normal(i, *x.shape), params)
        updates, state = optimiser.update(gradient, state, params)
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
    optimiser = manifold.spheres(optax.adam(0.5))
    updates, _ = optimiser.update(gradient, optimiser.init(x), x)

    def tangent(v):
        return v - np.sum(v * x, axis=1, keepdims=True) * x

    expected = x - tangent(0.5 * np.sign(tangent(gradient)))  # the first step of Adam is the sign
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(x + updates, expected, atol=1e-5)


def test_moments_have_the_dtype_that_the_optimiser_chose():
    optimiser = manifold.spheres(optax.adam(0.1, mu_dtype=jnp.bfloat16))
    x = unit(normal(0, 3, 4))
    before = optimiser.init(x)
    _, after = optimiser.update(normal(1, 3, 4), before, x)
    assert jax.tree.map(jnp.dtype, after) == jax.tree.map(jnp.dtype, before)


@given(random_seeds, st.sampled_from([(16, 16), (30, 5), (5, 30)]))
@settings(max_examples=20)
def test_to_orthogonal_is_the_polar_factor_to_rounding(seed, shape):
    x = normal(seed, *shape)
    factor = manifold.to_orthogonal(x)
    left, _, right = np.linalg.svd(x.astype(np.float64), full_matrices=False)
    np.testing.assert_allclose(factor, left @ right, atol=1e-3)
    assert off_orthogonal(factor) < 4e-7


def test_second_moments_are_those_of_the_optimiser():
    x = unit(normal(0, 3, 4))
    gradient = manifold.sphere_tangent(x, normal(1, 3, 4))
    plain, wrapped = optax.adam(0.1), manifold.spheres(optax.adam(0.1))
    _, expected = plain.update(gradient, plain.init(x), x)
    _, state = wrapped.update(gradient, wrapped.init(x), x)
    np.testing.assert_allclose(state[0].nu, expected[0].nu, atol=1e-6)


@pytest.mark.parametrize("wrap", [manifold.spheres, manifold.orthogonal])
@pytest.mark.parametrize("inner", [optax.sgd(0.1, momentum=0.9), optax.adam(0.1)])
def test_updates_under_jit_equal_those_without(wrap, inner):
    optimiser = wrap(inner)
    params = {"a": manifold.to_orthogonal(normal(0, 4, 4))}
    state = optimiser.init(params)
    for i in range(3):
        gradient = {"a": normal(i + 1, 4, 4)}
        eager, eager_state = optimiser.update(gradient, state, params)
        updates, state = jax.jit(optimiser.update)(gradient, state, params)
        np.testing.assert_allclose(updates["a"], eager["a"], atol=1e-6)
        jax.tree.map(partial(np.testing.assert_allclose, atol=1e-6), state, eager_state)
        params = optax.apply_updates(params, updates)


def test_partition_puts_some_arrays_of_a_tree_on_a_manifold():
    params = {"anchors": unit(normal(0, 3, 4)), "map": jnp.eye(3), "bias": jnp.ones(2)}
    labels = {"anchors": "spheres", "map": "orthogonal", "bias": "free"}
    adam = optax.adam(0.1)
    optimiser = optax.partition(
        {"spheres": manifold.spheres(adam), "orthogonal": manifold.orthogonal(adam), "free": adam},
        labels,
    )
    gradient = jax.tree.map(lambda x: normal(5, *x.shape), params)
    updates, state = optimiser.update(gradient, optimiser.init(params), params)
    new = optax.apply_updates(params, updates)
    assert off_spheres(new["anchors"]) < 1e-6
    assert off_orthogonal(new["map"]) < 1e-6
    np.testing.assert_allclose(new["bias"], 1 - 0.1 * np.sign(gradient["bias"]), atol=1e-6)
    moment = state.inner_states["spheres"].inner_state[0].mu["anchors"]
    np.testing.assert_allclose(jnp.sum(moment * new["anchors"], axis=1), 0, atol=1e-6)


def test_schedules_determine_the_step():
    optimiser = manifold.spheres(optax.sgd(optax.piecewise_constant_schedule(0.1, {1: 0.0})))
    params = unit(normal(0, 2, 3))
    state = optimiser.init(params)
    first, state = optimiser.update(normal(1, 2, 3), state, params)
    second, _ = optimiser.update(normal(1, 2, 3), state, params)
    assert np.abs(first).max() > 0.01
    np.testing.assert_allclose(second, 0, atol=1e-6)


def test_extra_arguments_are_passed_to_the_optimiser():
    optimiser = manifold.spheres(optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau()))
    params = unit(normal(0, 2, 3))
    updates, _ = optimiser.update(normal(1, 2, 3), optimiser.init(params), params, value=1.0)
    assert np.isfinite(updates).all()


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


@pytest.mark.parametrize("wrap", [manifold.spheres, manifold.orthogonal])
def test_an_update_without_parameters_is_an_error(wrap):
    optimiser = wrap(optax.sgd(0.1))
    with pytest.raises(ValueError, match="needs the parameters"):
        optimiser.update(jnp.eye(2), optimiser.init(jnp.eye(2)))
