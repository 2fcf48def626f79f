"""Transport that is continued from one step of a training to the next."""

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from scipy.spatial.distance import cdist

from wasserstein_embed import cloud
from wasserstein_embed.cloud import Clouds, Distance, WarmStart

PAIRS, POINTS = 3, 5
FIRST, SECOND = jnp.arange(PAIRS), PAIRS + jnp.arange(PAIRS)


def clouds(seed, k=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2 * PAIRS, POINTS, k)).astype(np.float32)


def distance(epsilon, iterations, value, implicit=True):
    solver = {"epsilon": epsilon, "iterations": iterations, "implicit_diff": implicit}
    return Distance(ground="euclidean", p=1.0, value=value, **solver)


def continued(points, options, calls=1):
    warm_start, objects = WarmStart.zeros(PAIRS, 2 * PAIRS, POINTS), jnp.arange(2 * PAIRS)
    for _ in range(calls):  # as in a training whose clouds do not move
        distances, warm_start = cloud.continued_distances(
            Clouds(points), FIRST, SECOND, options, warm_start, objects
        )
    return distances


@pytest.mark.parametrize("value", ["transport_cost", "sinkhorn_divergence"])
def test_short_continued_calls_end_where_long_ones_do(value):
    points = clouds(1)
    distances = continued(points, distance(0.05, 3, value), calls=100)
    converged = distance(0.05, 500, value)
    expected = cloud.pair_distances(Clouds(jnp.asarray(points)), FIRST, SECOND, converged)
    np.testing.assert_allclose(distances, expected, atol=1e-3)


@pytest.mark.parametrize("value", ["transport_cost", "entropic_cost"])
def test_gradients_at_the_optimum_equal_finite_differences(value):
    points = clouds(2)
    total = jax.jit(lambda x: continued(x, distance(0.3, 300, value)).sum())
    gradient = jax.grad(total)(jnp.asarray(points))
    for place in ((0, 0, 0), (1, 2, 1), (3, 1, 0), (5, 4, 0)):
        step = np.zeros_like(points)
        step[place] = 1e-2
        difference = (total(points + step) - total(points - step)) / 2e-2
        np.testing.assert_allclose(gradient[place], difference, atol=3e-3)


def test_distant_clouds_stay_finite_and_converge_to_unregularised_transport():
    points = clouds(4)
    points[PAIRS:] += 40.0
    options = distance(0.02, 3, "transport_cost")
    assert jnp.all(jnp.isfinite(continued(points, options)))
    distances = continued(points, options, calls=60)
    pairs = zip(points[:PAIRS], points[PAIRS:], strict=True)
    np.testing.assert_allclose(
        distances, [pot.emd2([], [], cdist(*pair)) for pair in pairs], rtol=1e-3
    )


def test_gradients_between_equal_clouds_are_finite():
    points = jnp.asarray(np.tile(clouds(5)[:PAIRS], (2, 1, 1)))
    options = distance(0.3, 20, "transport_cost")
    gradient = jax.grad(lambda x: continued(x, options).sum())(points)
    assert jnp.all(jnp.isfinite(gradient))
