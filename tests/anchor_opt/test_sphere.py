import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from anchor_opt import sphere
from common.linear import unit
from tests.samples import normal

DECAY = optax.cosine_decay_schedule(0.05, 1000)


def minimised(optimiser, loss, x, steps=1000):
    """The point after `steps` steps down the gradient of loss(x, index of the step)."""

    @jax.jit
    def run(x):
        def step(i, carry):
            x, state = carry
            updates, state = optimiser.update(jax.grad(loss)(x, i), state, x)
            return optax.apply_updates(x, updates), state

        return jax.lax.fori_loop(0, steps, step, (x, optimiser.init(x)))[0]

    return run(x)


def off_spheres(x):
    return np.abs(np.sum(np.asarray(x, np.float64) ** 2, axis=-1) - 1).max()


@pytest.mark.parametrize("optimiser", [optax.sgd(0.02, 0.9), optax.adam(DECAY)])
def test_the_rayleigh_quotient_is_largest_at_the_leading_eigenvector(optimiser):
    bases = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 5, 5)))[0]
    values = np.array([[2, 1, 0.5, 0.1, -1], [3, 2, 1, 1, 0]])
    matrices = jnp.asarray((bases * values[:, None]) @ bases.mT, jnp.float32)
    loss = lambda x, i: -jnp.einsum("ni,nij,nj", x, matrices, x)  # noqa: E731
    x = minimised(sphere.spheres(optimiser), loss, unit(normal(2, 2, 5)))
    assert np.abs(np.sum(np.asarray(x) * bases[:, :, 0], axis=1)).min() > 1 - 1e-6
    assert off_spheres(x) < 1e-6


@pytest.mark.slow
def test_points_stay_on_their_spheres_for_1000_steps():
    """Steps of constant size with random gradients do not converge, so that drift accumulates."""
    start = unit(normal(0, 16, 16))
    loss = lambda x, i: jnp.sum(x * jax.random.normal(jax.random.key(i), x.shape))  # noqa: E731
    end = minimised(sphere.spheres(optax.adam(0.05)), loss, start)
    assert off_spheres(end) < 1e-6 and np.abs(end - start).max() > 0.1


MOMENTUM = {
    "adam": optax.adam(0.1),
    "momentum": optax.sgd(0.1, momentum=0.9),
    "accumulated": optax.MultiSteps(optax.adam(0.1), 2).gradient_transformation(),
}


@pytest.mark.parametrize("optimiser", MOMENTUM.values(), ids=MOMENTUM)
def test_moments_are_tangent_at_the_new_point(optimiser):
    params = {"a": unit(normal(0, 4, 4)), "b": (unit(normal(1, 5, 3)),)}
    optimiser = sphere.spheres(optimiser)
    state, update = optimiser.init(params), jax.jit(optimiser.update)
    for i in range(3):
        gradient = jax.tree.map(lambda x, i=i: normal(i, *x.shape), params)
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    found = [optax.tree_utils.tree_get_all_with_path(state, name) for name in ("mu", "trace")]
    (moments,) = (value for pairs in found for _, value in pairs)
    for moment, point in zip(*map(jax.tree.leaves, (moments, params)), strict=True):
        assert np.abs(moment).max() > 1e-3
        np.testing.assert_allclose(jnp.sum(point * moment, axis=-1), 0, atol=1e-6)


def test_one_step_of_adam_agrees_with_its_definition():
    x, gradient = unit(normal(0, 3, 4)), normal(1, 3, 4)
    plain, optimiser = optax.adam(0.5), sphere.spheres(optax.adam(0.5))
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


def test_an_initial_point_off_its_sphere_is_moved_onto_it_and_zero_rows_stay():
    optimiser = sphere.spheres(optax.sgd(0.1))
    params = jnp.array([[3.0, 4.0], [0.0, 0.0], [0.0, 0.0]])
    gradient = jnp.array([[0.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    updates, _ = optimiser.update(gradient, optimiser.init(params), params)
    new = optax.apply_updates(params, updates)
    np.testing.assert_allclose(new, [[0.6, 0.8], [0, -1], [0, 0]], atol=1e-6)
