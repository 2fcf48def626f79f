"""The closed forms against numpy written step by step from the protocols, in double precision."""

import jax.numpy as jnp
import numpy as np
import pytest

from lpl import baselines, transforms


@pytest.fixture(scope="module")
def problem():
    """Two noisy views, of 10 and 7 dimensions, of the same 80 points, 40 of them paired."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((80, 12)) * np.linspace(1, 0.2, 12)
    source, target = (
        points @ rng.standard_normal((12, d)) + 0.1 * rng.standard_normal((80, d)) + 0.5
        for d in (10, 7)
    )
    pairs = np.stack([rng.permutation(80)[:40]] * 2, axis=1)
    return source, target, pairs


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cosines(x, z):
    return unit(np.asarray(x, np.float64)) @ unit(np.asarray(z, np.float64)).T


def given(problem):
    source, target, pairs = problem
    return jnp.asarray(source, jnp.float32), jnp.asarray(target, jnp.float32), jnp.asarray(pairs)


def test_shigeto_is_ridge_from_target_to_source(problem):
    source, target, pairs = problem
    x, z = unit(source), unit(target)
    a, b = z[pairs[:, 1]], x[pairs[:, 0]]
    expected = z @ np.linalg.solve(a.T @ a + 0.5 * np.eye(7), a.T @ b)
    mapped = baselines.shigeto_2015(*given(problem), normalise=("unit",), penalty=0.5)
    np.testing.assert_allclose(mapped[0], x, atol=1e-6)
    np.testing.assert_allclose(mapped[1], expected, atol=1e-4)


def test_artetxe_2016_and_smith_2017(problem):
    source, target, pairs = problem
    for steps, keep in ((("unit", "center"), 1.0), (("unit",), 0.6)):
        x, z = unit(source), unit(target)
        if "center" in steps:
            x, z = x - x.mean(0), z - z.mean(0)
        left, _, right = np.linalg.svd(x[pairs[:, 0]].T @ z[pairs[:, 1]], full_matrices=False)
        r = round(keep * 7)
        expected = cosines((x @ left)[:, :r], (z @ right.T)[:, :r])
        found = baselines.multi_step(*given(problem), normalise=steps, keep=keep)
        assert found[0].shape == (80, r)
        np.testing.assert_allclose(cosines(*found), expected, atol=1e-4)


def test_artetxe_2018(problem):
    source, target, pairs = problem
    x, z = unit(source), unit(target)
    x, z = x - x.mean(0), z - z.mean(0)

    def whitening(rows):
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        return vt.T @ np.diag(1 / s) @ vt

    wx, wz = whitening(x[pairs[:, 0]]), whitening(z[pairs[:, 1]])
    u, s, vt = np.linalg.svd((x @ wx)[pairs[:, 0]].T @ (z @ wz)[pairs[:, 1]], full_matrices=False)
    v = vt.T
    mapped_x = x @ wx @ u @ (u.T @ np.linalg.inv(wx) @ u)
    mapped_z = (z @ wz @ v * s) @ (v.T @ np.linalg.inv(wz) @ v)
    expected = cosines(mapped_x[:, :5], mapped_z[:, :5])
    found = baselines.multi_step(
        *given(problem), normalise=("unit", "center"), whiten=True, reweight=1.0, keep=5 / 7
    )
    np.testing.assert_allclose(cosines(*found), expected, atol=1e-3)


def test_whitening_makes_the_covariance_of_pairs_the_identity(problem):
    rows = jnp.asarray(problem[0], jnp.float32)
    white = transforms.whitening(rows)
    mapped = rows @ white.matrix
    np.testing.assert_allclose(mapped.T @ mapped, np.eye(10), atol=1e-4)
    np.testing.assert_allclose(white.matrix @ white.inverse, np.eye(10), atol=1e-4)


def test_fewer_pairs_than_dimensions_leave_finite_numbers(problem):
    source, target, pairs = given(problem)
    for settings in ({}, {"whiten": True, "reweight": 1.0}):
        found = baselines.multi_step(source, target, pairs[:4], normalise=("unit",), **settings)
        assert all(np.isfinite(np.asarray(x)).all() for x in found)


def test_normalising_in_order():
    x = jnp.array([[3.0, 4.0], [0.0, 2.0]])
    np.testing.assert_allclose(
        transforms.normalise(x, ("unit", "center")), [[0.3, -0.1], [-0.3, 0.1]], atol=1e-6
    )
    np.testing.assert_allclose(
        transforms.normalise(x, ("center", "unit")),
        np.array([[3, 2], [-3, -2]]) / np.sqrt(13),
        atol=1e-6,
    )


def test_reducing_keeps_one_direction_at_least():
    assert transforms.reduce(jnp.ones((3, 8)), 0.5).shape == (3, 4)
    assert transforms.reduce(jnp.ones((3, 8)), 0.0).shape == (3, 1)
