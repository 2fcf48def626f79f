"""Distances between clouds: values against POT, gradients against finite differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from ml_collections import ConfigDict
from scipy.spatial.distance import cdist

from common import ot
from common.errors import UserError
from wasserstein_embed import cloud

LONG = cloud.Distance("euclidean", 2.0, 0.5, 300, "cost", False)
FIRST, SECOND = jnp.array([0, 2, 4, 1]), jnp.array([1, 3, 4, 0])


def clouds(n=5, points=4, k=2, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
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


@pytest.mark.parametrize(
    "ground, p, weighted",
    [("euclidean", 1.0, False), ("euclidean", 2.0, True), ("manhattan", 1.5, True)],
)
def test_the_three_values_are_those_of_pot(ground, p, weighted):
    objects = clouds(weighted=weighted)
    distance = LONG._replace(ground=ground, p=p)
    pairs = list(zip(FIRST.tolist(), SECOND.tolist(), strict=True))
    cost, regularised = zip(*(by_pot(objects, i, j, distance) for i, j in pairs), strict=True)
    own = [by_pot(objects, i, i, distance)[1] for i in range(5)]
    debiased = [w - (own[i] + own[j]) / 2 for w, (i, j) in zip(regularised, pairs, strict=True)]
    for value, expected in (("cost", cost), ("regularised", regularised), ("divergence", debiased)):
        found = cloud.pairs(objects, FIRST, SECOND, distance._replace(value=value))
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def test_the_iterations_and_their_gradients_are_those_of_ott():
    """Three of them, far from convergence."""
    objects = clouds(points=3)
    distance = LONG._replace(iterations=3)

    def by_ott(points):
        solved = jax.vmap(partial(ot.transport, epsilon=0.5, iterations=3))(
            points[FIRST], points[SECOND]
        )
        return solved.cost.sum() + 2 * solved.value.sum()

    def ours(objects):
        values = {
            name: cloud.pairs(objects, FIRST, SECOND, distance._replace(value=name)).sum()
            for name in ("cost", "regularised")
        }
        return values["cost"] + 2 * values["regularised"]

    expected = jax.jit(jax.value_and_grad(by_ott))(objects.points)
    found = jax.jit(jax.value_and_grad(ours))(objects)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1].points, expected[1], atol=1e-5)


def test_the_divergence_of_an_object_from_itself_is_nothing():
    found = cloud.pairs(clouds(), FIRST, SECOND, LONG._replace(value="divergence"))
    np.testing.assert_allclose(found[2], 0, atol=1e-6)
    assert (np.asarray(found)[[0, 1, 3]] > 0.01).all()


@pytest.mark.parametrize(
    "implicit, iterations, value",
    [(False, 3, "cost"), (False, 3, "divergence"), (True, 300, "cost")],
)
def test_gradients_against_finite_differences(implicit, iterations, value):
    """Unrolled: of three iterations, far from convergence. Implicit: of the optimum."""
    distance = LONG._replace(iterations=iterations, value=value, implicit=implicit)
    with jax.enable_x64(True):
        start = np.asarray(clouds().points, np.float64)
        logits = np.asarray(np.random.default_rng(1).normal(size=(5, 4)))

        @jax.jit
        def loss(points, logits):
            objects = cloud.Clouds(points, jax.nn.softmax(logits))
            return (cloud.pairs(objects, FIRST, SECOND, distance) ** 2).sum()

        gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(start, logits)
        for which, place in ((0, (0, 1, 0)), (0, (3, 2, 1)), (1, (2, 3)), (1, (0, 0))):
            ends = []
            for sign in (1, -1):
                moved = [start.copy(), logits.copy()]
                moved[which][place] += sign * 1e-5
                ends.append(float(loss(*moved)))
            slope = (ends[0] - ends[1]) / 2e-5
            # The implicit system is kept regular by a millionth of its diagonal.
            tolerance = {"rtol": 1e-3, "atol": 1e-4} if implicit else {"rtol": 1e-6, "atol": 1e-8}
            np.testing.assert_allclose(gradients[which][place], slope, **tolerance)


def test_gradients_of_equal_objects_are_finite():
    objects = cloud.Clouds(jnp.zeros((2, 3, 2)))
    rows = jnp.array([0]), jnp.array([1])
    for p, value in ((1.0, "cost"), (1.5, "divergence")):
        distance = LONG._replace(p=p, value=value, iterations=5)
        slope = jax.grad(lambda c: cloud.pairs(c, *rows, distance).sum())(objects)  # noqa: B023
        assert np.isfinite(slope.points).all()
    flat = jax.grad(lambda c: cloud.euclidean(c, *rows).sum())(objects)
    np.testing.assert_array_equal(flat.points, 0)


@pytest.mark.parametrize("value", ["cost", "divergence"])
def test_nearest_are_the_smallest_of_all_pairs(value, monkeypatch):
    monkeypatch.setattr(cloud, "HELD", 8 * 4 * 4 * 2)
    distance = LONG._replace(iterations=20, value=value)
    objects = clouds(n=19, weighted=True)
    queries = cloud.Clouds(objects.points[:11], objects.weights[:11])
    keys = cloud.Clouds(objects.points[11:], objects.weights[11:])
    i, j = np.indices((11, 8)).reshape(2, -1)
    full = np.asarray(cloud.pairs(objects, i, j + 11, distance)).reshape(11, 8)
    found, index = cloud.nearest(queries, keys, distance, 3)
    np.testing.assert_array_equal(index, full.argsort(1, kind="stable")[:, :3])
    np.testing.assert_allclose(found, np.sort(full)[:, :3], atol=1e-5)


def test_the_euclidean_twin():
    objects = clouds()
    flat = np.asarray(objects.points).reshape(5, -1)
    expected = np.linalg.norm(flat[np.asarray(FIRST)] - flat[np.asarray(SECOND)], axis=1)
    np.testing.assert_allclose(cloud.euclidean(objects, FIRST, SECOND), expected, rtol=1e-5)


def test_convergence_is_known():
    sharp = LONG._replace(epsilon=1e-3, iterations=2)
    assert float(cloud.share_converged(clouds(), FIRST, SECOND, LONG)) == 1.0
    assert float(cloud.share_converged(clouds(), FIRST, SECOND, sharp)) < 1.0


@pytest.mark.parametrize(
    "change, says",
    [
        ({"ground": "cosine"}, "no ground distance 'cosine'"),
        ({"value": "squared"}, "no value 'squared'"),
        ({"p": 0.5}, "p is 0.5: give 1 or more"),
        ({"iterations": 0}, "iterations is 0"),
        ({"epsilon": 0.0}, "epsilon is 0.0: give a positive"),
    ],
)
def test_a_mistake_is_one_sentence(change, says):
    assert cloud.distance_of(ConfigDict(LONG._asdict())) == LONG
    with pytest.raises(UserError, match=says):
        cloud.distance_of(ConfigDict(LONG._asdict() | change))
