"""Distances between clouds: values against POT and ott, gradients against finite differences."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from scipy.spatial.distance import cdist

from common import ot
from common.ot import dense
from wasserstein_embed import cloud

SOLVER = {"epsilon": 0.5, "iterations": 300, "implicit_diff": False}
CONVERGED = cloud.Distance(ground="euclidean", p=2.0, value="transport_cost", **SOLVER)
FIRST, SECOND = jnp.array([0, 2, 4, 1]), jnp.array([1, 3, 4, 0])


def clouds(n=5, points=4, k=2, weighted=False):
    rng = np.random.default_rng(0)
    weights = jnp.asarray(rng.dirichlet(np.ones(points), n), jnp.float32) if weighted else None
    return cloud.Clouds(jnp.asarray(rng.normal(size=(n, points, k)), jnp.float32), weights)


def by_pot(objects, i, j, distance):
    """(<P, C>, <P, C> + epsilon KL(P | ab')) in float64."""
    x, y = (np.asarray(objects.points[row], np.float64) for row in (i, j))
    metric = {"euclidean": "euclidean", "manhattan": "cityblock"}[distance.ground]
    cost = cdist(x, y, metric) ** distance.p
    a, b = np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y))
    if objects.weights is not None:
        a, b = (np.asarray(objects.weights[row], np.float64) for row in (i, j))
        a, b = a / a.sum(), b / b.sum()
    settings = {"method": "sinkhorn_log", "numItermax": 1000, "stopThr": 1e-9}
    plan = pot.sinkhorn(a, b, cost, distance.epsilon, **settings)
    entropy = (plan * np.log(plan / np.outer(a, b))).sum()
    return (plan * cost).sum(), (plan * cost).sum() + distance.epsilon * entropy


@pytest.mark.slow
@pytest.mark.parametrize(
    "ground, p, weighted",
    [("euclidean", 1.0, False), ("euclidean", 2.0, True), ("manhattan", 1.5, True)],
)
def test_all_three_values_equal_those_of_pot(ground, p, weighted):
    objects = clouds(weighted=weighted)
    distance = replace(CONVERGED, ground=ground, p=p)
    pairs = list(zip(FIRST.tolist(), SECOND.tolist(), strict=True))
    transport, entropic = zip(*(by_pot(objects, i, j, distance) for i, j in pairs), strict=True)
    selves = [by_pot(objects, i, i, distance)[1] for i in range(5)]
    expected = {
        "transport_cost": transport,
        "entropic_cost": entropic,
        "sinkhorn_divergence": [
            w - (selves[i] + selves[j]) / 2 for w, (i, j) in zip(entropic, pairs, strict=True)
        ],
    }
    for value, numbers in expected.items():
        distances = cloud.pair_distances(objects, FIRST, SECOND, replace(distance, value=value))
        np.testing.assert_allclose(distances, numbers, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_three_iterations_and_their_gradients_equal_those_of_ott():
    objects = clouds(points=3)
    distance = replace(CONVERGED, iterations=3)

    def by_ott(points):
        cost = ot.ground_cost(points[FIRST], points[SECOND], "euclidean", 2)

        def solve(cost):
            solved = dense.transport(cost, epsilon=0.5, iterations=3)
            return solved.primal_cost + 2 * solved.reg_ot_cost

        return jax.vmap(solve)(cost).sum()

    def ours(objects):
        transport, entropic = (
            cloud.pair_distances(objects, FIRST, SECOND, replace(distance, value=name)).sum()
            for name in ("transport_cost", "entropic_cost")
        )
        return transport + 2 * entropic

    expected = jax.jit(jax.value_and_grad(by_ott))(objects.points)
    result = jax.jit(jax.value_and_grad(ours))(objects)
    np.testing.assert_allclose(result[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(result[1].points, expected[1], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "implicit, iterations, value",
    [
        (False, 3, "sinkhorn_divergence"),
        (True, 300, "transport_cost"),
    ],
)
def test_gradients_equal_finite_differences(implicit, iterations, value):
    """Unrolled gradients of three iterations, and implicit gradients of the optimum."""
    distance = replace(CONVERGED, iterations=iterations, value=value, implicit_diff=implicit)
    with jax.enable_x64(True):
        start = np.asarray(clouds().points, np.float64)
        logits = np.asarray(np.random.default_rng(1).normal(size=(5, 4)))

        @jax.jit
        def loss(points, logits):
            objects = cloud.Clouds(points, jax.nn.softmax(logits))
            return (cloud.pair_distances(objects, FIRST, SECOND, distance) ** 2).sum()

        gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(start, logits)
        for which, place in ((0, (0, 1, 0)), (0, (3, 2, 1)), (1, (2, 3)), (1, (0, 0))):
            ends = []
            for sign in (1, -1):
                moved = [start.copy(), logits.copy()]
                moved[which][place] += sign * 1e-5
                ends.append(float(loss(*moved)))
            slope = (ends[0] - ends[1]) / 2e-5
            # The implicit system is regularised by a millionth of its diagonal.
            tolerance = {"rtol": 1e-3, "atol": 1e-4} if implicit else {"rtol": 1e-6, "atol": 1e-8}
            np.testing.assert_allclose(gradients[which][place], slope, **tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["transport_cost", "sinkhorn_divergence"])
def test_nearest_neighbours_are_the_smallest_pair_distances(value, monkeypatch):
    monkeypatch.setattr(cloud, "BLOCK_ENTRIES", 8 * 4 * 4 * 2)
    distance = replace(CONVERGED, iterations=20, value=value)
    objects = clouds(n=19, weighted=True)
    queries = cloud.Clouds(objects.points[:11], objects.weights[:11])
    keys = cloud.Clouds(objects.points[11:], objects.weights[11:])
    i, j = np.indices((11, 8)).reshape(2, -1)
    full = np.asarray(cloud.pair_distances(objects, i, j + 11, distance)).reshape(11, 8)
    distances, index = cloud.nearest_neighbours(queries, keys, distance, 3)
    np.testing.assert_array_equal(index, full.argsort(1, kind="stable")[:, :3])
    np.testing.assert_allclose(distances, np.sort(full)[:, :3], atol=1e-5)


def test_euclidean_distances_are_those_of_flat_vectors():
    objects = clouds()
    flat = np.asarray(objects.points).reshape(5, -1)
    expected = np.linalg.norm(flat[np.asarray(FIRST)] - flat[np.asarray(SECOND)], axis=1)
    found = cloud.pair_distances(objects, FIRST, SECOND, None)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    of_equal = jax.grad(lambda x: cloud.pair_distances(x, FIRST, FIRST, None).sum())(objects)
    np.testing.assert_array_equal(of_equal.points, 0)


def test_plans_that_have_not_converged_are_counted():
    short = replace(CONVERGED, epsilon=1e-3, iterations=2)
    assert float(cloud.fraction_converged(clouds(), FIRST, SECOND, CONVERGED)) == 1.0
    assert float(cloud.fraction_converged(clouds(), FIRST, SECOND, short)) < 1.0
