"""Fast transport of pairs: against POT, unrolled ott and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from scipy.spatial.distance import cdist

from wasserstein_embed import cloud, fixed_point
from wasserstein_embed.fixed_point import Potentials

PAIRS, POINTS = 3, 5


def clouds(seed, k=2):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(PAIRS, POINTS, k)), jnp.float32)


def solve(x, y, epsilon, regularised, iterations=300):
    start = Potentials.zeros(PAIRS, POINTS)
    options = {"epsilon": epsilon, "iterations": iterations, "regularised": regularised}
    return fixed_point.of_pairs(x, y, start, **options)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_values_are_those_of_pot(epsilon, k):
    x, y = clouds(0, k), clouds(1, k)
    cost_value, _ = solve(x, y, epsilon, False)
    dual_value, _ = solve(x, y, epsilon, True)
    weights = np.full(POINTS, 1 / POINTS)
    for i in range(PAIRS):
        cost = cdist(np.asarray(x[i], np.float64), np.asarray(y[i], np.float64))
        plan = pot.sinkhorn(
            weights, weights, cost, epsilon, "sinkhorn_log", numItermax=2_000, stopThr=1e-9
        )
        value = np.sum(plan * cost)
        entropy = np.sum(plan * (np.log(plan) - 1)) + 1
        np.testing.assert_allclose(cost_value[i], value, rtol=2e-4)
        np.testing.assert_allclose(dual_value[i], value + epsilon * entropy, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("regularised", [False, True])
def test_gradients_are_finite_differences(regularised):
    x, y = clouds(2), clouds(3)
    gradients = jax.grad(lambda x, y: solve(x, y, 0.3, regularised)[0].sum(), argnums=(0, 1))(x, y)
    solved = jax.jit(lambda x, y: solve(x, y, 0.3, regularised)[0].sum())
    for which, gradient in enumerate(gradients):
        for place in ((0, 0, 0), (1, 2, 1), (2, 4, 0)):
            step = jnp.zeros_like(x).at[place].set(1e-2)
            up, down = ((x + s * step, y) if which == 0 else (x, y + s * step) for s in (1, -1))
            difference = (solved(*up) - solved(*down)) / 2e-2
            np.testing.assert_allclose(gradient[place], difference, atol=3e-3)


def test_the_gradient_of_unrolled_iterations_is_the_same_once_they_converge():
    both = jnp.concatenate([clouds(4), clouds(5)])
    first = jnp.arange(PAIRS)
    distance = cloud.Distance("euclidean", 1.0, 0.5, 200, "cost", False)
    unrolled = jax.grad(
        lambda x: cloud.pairs(cloud.Clouds(x), first, PAIRS + first, distance).sum()
    )(both)
    ours = jax.grad(lambda x: solve(x[:PAIRS], x[PAIRS:], 0.5, False)[0].sum())(both)
    np.testing.assert_allclose(ours, unrolled, atol=2e-4)


def test_the_divergence_from_carried_potentials_is_the_shared_one():
    x, y = clouds(6), clouds(7)
    both = jnp.concatenate([x, y])
    pairs, own = Potentials.zeros(PAIRS, POINTS), jnp.zeros((2 * PAIRS, POINTS))
    for _ in range(100):  # three iterations a call, as in a training that stands still
        value, pairs = fixed_point.of_pairs(
            x, y, pairs, epsilon=0.05, iterations=3, regularised=True
        )
        selves, own = fixed_point.of_own(both, own, epsilon=0.05, iterations=3)
    first = jnp.arange(PAIRS)
    distance = cloud.Distance("euclidean", 1.0, 0.05, 500, "divergence", False)
    expected = cloud.pairs(cloud.Clouds(both), first, PAIRS + first, distance)
    np.testing.assert_allclose(value - (selves[:PAIRS] + selves[PAIRS:]) / 2, expected, atol=1e-3)


def test_far_clouds_of_small_epsilon_stay_finite_and_settle():
    x, y = clouds(8), clouds(9) + 40.0
    potentials = Potentials.zeros(PAIRS, POINTS)
    for _ in range(60):
        value, potentials = fixed_point.of_pairs(
            x, y, potentials, epsilon=0.02, iterations=3, regularised=False
        )
        assert jnp.all(jnp.isfinite(value))
    exact = [pot.emd2([], [], cdist(np.asarray(x[i]), np.asarray(y[i]))) for i in range(PAIRS)]
    np.testing.assert_allclose(value, exact, rtol=1e-3)


def test_equal_clouds_have_finite_gradients():
    x = clouds(10)
    gradient = jax.grad(lambda x, y: solve(x, y, 0.3, False)[0].sum())(x, x)
    assert jnp.all(jnp.isfinite(gradient))
