import jax.numpy as jnp
import numpy as np
import ot as pot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import ot


def clouds(seed=0, n=30, m=30, d=3, noise=0.05):
    rng = np.random.default_rng(seed)
    # Skewed, so that no reflection is an isometry as well.
    x = rng.exponential(size=(n, d)) * np.arange(1, d + 1)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    y = (x @ rotation + noise * rng.normal(size=x.shape))[:m]
    order = rng.permutation(m)
    return x.astype(np.float32), y[order].astype(np.float32), np.argsort(order)


def distances(x):
    found = ((x[:, None] - x) ** 2).sum(-1).astype(np.float64)
    return found / found.mean()


@given(st.integers(0, 50), st.integers(5, 12))
@settings(max_examples=5, deadline=None)  # each shape compiles
def test_cost_is_the_sum_over_pairs_of_pairs(seed, m):
    x, y, _ = clouds(seed, n=12, m=m)
    costs = np.random.default_rng(seed).random((12, m))
    plan = pot.emd(np.full(12, 1 / 12), np.full(m, 1 / m), costs)
    dx, dy = distances(x), distances(y)
    squares = (dx[:, None, :, None] - dy[None, :, None, :]) ** 2  # [i, j, k, l]
    independent = np.full((12, m), 1 / (12 * m))
    expected = [np.einsum("ijkl,ij,kl", squares, p, p) for p in (plan, independent)]
    np.testing.assert_allclose(ot.gromov_cost(x, y, plan), expected[0] / expected[1], rtol=1e-4)


def test_the_cost_is_0_for_an_isometry_and_1_for_the_independent_plan():
    x, y, truth = clouds(noise=0.0)
    plan = np.eye(30)[truth] / 30
    assert abs(float(ot.gromov_cost(x, y, plan))) < 1e-4
    assert abs(float(ot.gromov_cost(x, y, np.full((30, 30), 1 / 900))) - 1) < 1e-4


@pytest.mark.parametrize("m", [30, 20])
def test_the_coupling_agrees_with_pot(m):
    x, y, _ = clouds(m=m)
    dx, dy = distances(x), distances(y)
    independent = dx.var() + dy.var()
    a, b = np.full(30, 1 / 30), np.full(m, 1 / m)
    # POT regularises the gradient of the cost, which is twice the linearisation in ott.
    expected = pot.gromov.entropic_gromov_wasserstein(
        dx, dy, a, b, "square_loss", epsilon=2 * 0.05 * independent, max_iter=2000, tol=1e-10
    )
    plan = ot.gromov_wasserstein(x, y, 0.05, steps=500, iterations=200)
    np.testing.assert_allclose(plan, expected, atol=2e-4)
    costs = (ot.gromov_cost(x, y, found) for found in (plan, expected))
    np.testing.assert_allclose(*costs, atol=2e-3)


def test_a_rotation_is_recovered_and_improved_from_its_own_plan():
    x, y, truth = clouds(n=100, m=100)
    first = ot.gromov_wasserstein(x, y, 0.01, steps=200)
    accuracy = (np.argmax(first, axis=1) == truth).mean()
    second = ot.gromov_wasserstein(x, y, 0.003, first, steps=20)
    assert (np.argmax(second, axis=1) == truth).mean() >= accuracy > 0.6
    assert ot.gromov_cost(x, y, second) < ot.gromov_cost(x, y, first) < 0.1
    np.testing.assert_allclose(jnp.sum(second, axis=0), 0.01, atol=1e-4)
