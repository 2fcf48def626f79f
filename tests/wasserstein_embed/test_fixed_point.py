"""Transport for training loops: against POT, unrolled iterations and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from scipy.spatial.distance import cdist

from wasserstein_embed import cloud, fixed_point
from wasserstein_embed.fixed_point import Potentials

PAIRS, POINTS = 3, 5
FIRST = jnp.arange(PAIRS)


def clouds(seed, k=2):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(PAIRS, POINTS, k)), jnp.float32)


def solve(x, y, epsilon, entropic):
    start = Potentials.zeros(PAIRS, POINTS)
    options = {"epsilon": epsilon, "iterations": 300, "entropic": entropic}
    return fixed_point.transport(x, y, start, **options)[0]


def by_cloud(both, **options):
    distance = cloud.Distance(ground="euclidean", p=1.0, implicit_diff=False, **options)
    return cloud.pair_distances(cloud.Clouds(both), FIRST, PAIRS + FIRST, distance)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_values_equal_those_of_pot(epsilon, k):
    x, y = clouds(0, k), clouds(1, k)
    transport_cost, entropic_cost = (solve(x, y, epsilon, entropic) for entropic in (False, True))
    weights = np.full(POINTS, 1 / POINTS)
    for i in range(PAIRS):
        cost = cdist(np.asarray(x[i], np.float64), np.asarray(y[i], np.float64))
        options = {"method": "sinkhorn_log", "numItermax": 2_000, "stopThr": 1e-9}
        plan = pot.sinkhorn(weights, weights, cost, epsilon, **options)
        value = np.sum(plan * cost)
        entropic = value + epsilon * (np.sum(plan * (np.log(plan) - 1)) + 1)
        np.testing.assert_allclose(transport_cost[i], value, rtol=2e-4)
        np.testing.assert_allclose(entropic_cost[i], entropic, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("entropic", [False, True])
def test_gradients_equal_finite_differences(entropic):
    x, y = clouds(2), clouds(3)
    solved = jax.jit(lambda x, y: solve(x, y, 0.3, entropic).sum())
    gradients = jax.grad(solved, argnums=(0, 1))(x, y)
    for which, gradient in enumerate(gradients):
        for place in ((0, 0, 0), (1, 2, 1), (2, 4, 0)):
            step = jnp.zeros_like(x).at[place].set(1e-2)
            up, down = ((x + s * step, y) if which == 0 else (x, y + s * step) for s in (1, -1))
            difference = (solved(*up) - solved(*down)) / 2e-2
            np.testing.assert_allclose(gradient[place], difference, atol=3e-3)


def test_gradients_equal_those_through_converged_iterations():
    both = jnp.concatenate([clouds(4), clouds(5)])
    options = {"epsilon": 0.5, "iterations": 200, "value": "transport_cost"}
    unrolled = jax.grad(lambda x: by_cloud(x, **options).sum())(both)
    ours = jax.grad(lambda x: solve(x[:PAIRS], x[PAIRS:], 0.5, False).sum())(both)
    np.testing.assert_allclose(ours, unrolled, atol=2e-4)


def test_warm_starts_converge_to_the_sinkhorn_divergence():
    x, y = clouds(6), clouds(7)
    both = jnp.concatenate([x, y])
    pairs, selves = Potentials.zeros(PAIRS, POINTS), jnp.zeros((2 * PAIRS, POINTS))
    solver = {"epsilon": 0.05, "iterations": 3}
    for _ in range(100):  # as in a training whose clouds do not move
        value, pairs = fixed_point.transport(x, y, pairs, **solver, entropic=True)
        of_self, selves = fixed_point.self_transport(both, selves, **solver)
    expected = by_cloud(both, epsilon=0.05, iterations=500, value="sinkhorn_divergence")
    np.testing.assert_allclose(value - (of_self[:PAIRS] + of_self[PAIRS:]) / 2, expected, atol=1e-3)


def test_distant_clouds_stay_finite_and_converge_to_unregularised_transport():
    x, y = clouds(8), clouds(9) + 40.0
    potentials = Potentials.zeros(PAIRS, POINTS)
    options = {"epsilon": 0.02, "iterations": 3, "entropic": False}
    for _ in range(60):
        value, potentials = fixed_point.transport(x, y, potentials, **options)
        assert jnp.all(jnp.isfinite(value))
    exact = [pot.emd2([], [], cdist(np.asarray(x[i]), np.asarray(y[i]))) for i in range(PAIRS)]
    np.testing.assert_allclose(value, exact, rtol=1e-3)


def test_gradients_between_equal_clouds_are_finite():
    x = clouds(10)
    gradient = jax.grad(lambda x, y: solve(x, y, 0.3, False).sum())(x, x)
    assert jnp.all(jnp.isfinite(gradient))
