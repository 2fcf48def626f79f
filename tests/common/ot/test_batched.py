"""Batched Sinkhorn, and that of one problem; wasserstein_embed/test_cloud.py has more tests."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from ott.geometry import geometry
from ott.tools.sinkhorn_divergence import sinkhorn_divergence
from scipy.spatial.distance import cdist

from common import ot
from common.errors import UserError
from common.ot import batched, dense


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_updates_and_log_domain_updates_are_equal(weighted):
    """One problem of large costs moves the whole batch into the log domain."""
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.uniform(size=(6, n, 2)), jnp.float32) for n in (4, 6))
    a, b = (jnp.asarray(rng.dirichlet(np.ones(n), 6), jnp.float32) for n in (4, 6))
    a, b = (a, b) if weighted else (None, None)

    @partial(jax.value_and_grad, has_aux=True)
    def values(x):
        cost = ot.ground_cost(x, y, "euclidean", 2)
        options = {"epsilon": 0.1, "iterations": 7}
        solutions = [ot.solve_batch(cost, a, b, value=value, **options) for value in ot.VALUES]
        own = ot.ground_cost(x, x, "euclidean", 2)
        options |= {"value": "entropic_cost", "symmetric": True}
        solutions.append(ot.solve_batch(own, a, a, **options))
        solutions = jax.tree.map(lambda array: array[:5], solutions)
        return sum(solution.value.sum() for solution in solutions), solutions

    solve, distant = jax.jit(values), x.at[5, 0].add(9.0)
    costs = [ot.ground_cost(points, y, "euclidean", 2).max() / 0.1 for points in (x, distant)]
    assert costs[0] < batched.KERNEL_MAX_COST < costs[1]
    for by_kernel, by_logarithms in zip(
        *(jax.tree.leaves(solve(points)) for points in (x, distant)), strict=True
    ):
        np.testing.assert_allclose(by_kernel, by_logarithms, rtol=2e-5, atol=2e-6)


@jax.jit
def divergence(cross, own_x, own_y):
    options = {"epsilon": 0.5, "iterations": 300, "value": "entropic_cost"}
    x, y = (ot.solve_batch(cost, **options, symmetric=True).value for cost in (own_x, own_y))
    return ot.solve_batch(cross, **options).value - (x + y) / 2


def test_unknown_names_are_user_errors():
    cost = np.zeros((2, 3, 3))
    with pytest.raises(UserError, match="'cosine': choose one of euclidean, manhattan"):
        ot.ground_cost(cost[0], cost[0], "cosine", 1.0)
    with pytest.raises(UserError, match="of a transport 'cost': choose one of transport_cost,"):
        ot.solve_batch(cost, epsilon=1.0, iterations=1, value="cost")


@pytest.mark.parametrize("ground", ["euclidean", "manhattan"])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_the_gradient_is_zero_between_equal_points_and_at_an_equal_coordinate(ground, p):
    x = jnp.array([[1.0, 2.0], [0.0, 0.0], [1.0, 5.0]])
    y = jnp.array([[1.0, 2.0], [0.0, 0.0], [3.0, 5.0]])

    def total(x, y):
        return jnp.trace(ot.ground_cost(x, y, ground, p))

    expected = np.zeros((3, 2))
    expected[2, 0] = -p * 2 ** (p - 1)
    for sign, argnum in ((1, 0), (-1, 1)):
        gradient = jax.grad(total, argnum)(x, y)
        np.testing.assert_allclose(gradient, sign * expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["euclidean", "manhattan"])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_divergence_of_equal_clouds_is_zero_and_so_is_its_gradient(ground, p):
    points = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)), jnp.float32)
    cost = partial(ot.ground_cost, ground=ground, p=p)

    def total(x, y):
        return divergence(cost(x, y), cost(x, x), cost(y, y))

    value, gradients = jax.value_and_grad(total, (0, 1))(points, points)
    largest = float(cost(points, points).max())
    np.testing.assert_allclose(value, 0, atol=1e-5 * largest)
    for gradient in gradients:
        np.testing.assert_allclose(gradient, 0, atol=1e-4 * largest)


@pytest.mark.slow
@pytest.mark.parametrize("value", ot.VALUES)
def test_a_millionth_of_the_costs_stands_for_an_epsilon_that_float32_does_not_resolve(value):
    cost = jnp.asarray(np.random.default_rng(0).uniform(size=(1, 4, 4)), jnp.float32)

    @jax.jit
    @jax.value_and_grad
    def total(cost, epsilon):
        return ot.solve_batch(cost, epsilon=epsilon, iterations=100, value=value).value.sum()

    expected = total(cost, batched.MIN_EPSILON * cost.max())
    assert np.isfinite(expected[0]) and np.isfinite(expected[1]).all()
    for epsilon in (0.0, 1e-38, 1e-10):
        for result, wanted in zip(total(cost, epsilon), expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
    for of_equal_points in total(jnp.zeros((1, 2, 2)), 0.0):
        np.testing.assert_allclose(of_equal_points, of_equal_points.mean())


@pytest.mark.slow
def test_float32_costs_stay_float32_where_jax_has_float64():
    cost = np.random.default_rng(0).uniform(size=(2, 3, 3)).astype(np.float32)
    options = {"epsilon": 0.1, "iterations": 5, "value": "transport_cost"}
    start = ot.Potentials(*np.zeros((4, 2, 3), np.float64))

    @jax.jit
    @jax.value_and_grad
    def total(cost):
        return ot.solve_batch(cost, **options, start=start).value.sum()

    with jax.enable_x64(True):
        value, gradient = total(cost)
    expected = total(cost)
    assert value.dtype == gradient.dtype == np.float32
    np.testing.assert_allclose(value, expected[0], rtol=1e-5)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-5)


def costs(n, m, d=5, seed=0, metric="euclidean"):
    rng = np.random.default_rng(seed)
    return cdist(rng.normal(size=(n, d)), rng.normal(size=(m, d)), metric)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_plan_and_costs_agree_with_pot(metric):
    cost = costs(12, 9, metric=metric)
    a, b = (w / w.sum() for w in (np.arange(1.0, 13), np.arange(2.0, 11)))
    plan = pot.sinkhorn(a, b, cost, 1.0, method="sinkhorn_log", numItermax=3000, stopThr=1e-12)
    ours = dense.transport(cost, a, b, epsilon=1.0, iterations=1000)
    np.testing.assert_allclose(ours.matrix, plan, atol=1e-5)
    np.testing.assert_allclose(ours.primal_cost, (plan * cost).sum(), rtol=1e-5)
    relative_entropy = (plan * np.log(plan / np.outer(a, b))).sum()
    np.testing.assert_allclose(ours.reg_ot_cost, (plan * cost).sum() + relative_entropy, rtol=1e-5)


@pytest.mark.slow
def test_the_debiased_value_is_the_sinkhorn_divergence_of_ott():
    x, y = np.random.default_rng(0).normal(size=(2, 9, 5))
    costs = [ot.ground_cost(p, q, "euclidean", 2) for p, q in ((x, y), (x, x), (y, y))]
    options = {"epsilon": 0.5, "solve_kwargs": {"threshold": 1e-5, "max_iterations": 1000}}
    expected, _ = sinkhorn_divergence(geometry.Geometry, cost_matrix=tuple(costs), **options)
    np.testing.assert_allclose(divergence(*costs), expected, rtol=1e-3)


def test_costs_a_thousand_times_epsilon_are_solved_in_the_log_domain():
    cost = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    b = jnp.array([1.0, 0.0])
    solution = ot.solve_batch(cost, b=b, epsilon=1e-3, iterations=50, value="transport_cost")
    np.testing.assert_allclose(solution.value, 0.5, rtol=1e-3)


@pytest.mark.parametrize("n, m", [(1, 1), (7, 19)])
def test_kernel_updates_agree_with_pot(n, m):
    cost = costs(n, m)
    expected = pot.sinkhorn(
        np.full(n, 1 / n), np.full(m, 1 / m), cost, 0.3, stopThr=0, numItermax=10
    )
    ours = dense.transport(cost, epsilon=0.3, iterations=10, log_domain=False)
    np.testing.assert_allclose(ours.matrix, expected, atol=1e-5)
