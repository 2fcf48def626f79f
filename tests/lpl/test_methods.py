"""The closed forms against numpy, written step by step from their papers in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.run.settings import settings
from common.run.workdir import Workdir
from configs.lpl.word_alignment import get_config
from lpl import methods


@pytest.fixture(scope="module")
def problem():
    """Two noisy views, of 10 and 7 dimensions, of the same 80 points, 40 of them paired."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((80, 12)) * np.linspace(1, 0.2, 12)
    source, target = (
        points @ rng.standard_normal((12, d)) + 0.1 * rng.standard_normal((80, d)) + 0.5
        for d in (10, 7)
    )
    return source, target, np.stack([rng.permutation(80)[:40]] * 2, axis=1)


def fit(method, problem, num_pairs=40):
    names, key = ("source", "target", "pairs"), jax.random.key(0)
    arrays = {name: jnp.asarray(array) for name, array in zip(names, problem, strict=True)}
    return method.fit(methods.Problem(**arrays, num_pairs=num_pairs, key=key))


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cosines(x, z):
    return unit(np.asarray(x, np.float64)) @ unit(np.asarray(z, np.float64)).T


def test_shigeto_2015_is_ridge_regression_from_target_to_source(problem):
    source, target, pairs = problem
    x, z = unit(source), unit(target)
    a, b = z[pairs[:, 1]], x[pairs[:, 0]]
    expected = z @ np.linalg.solve(a.T @ a + 0.5 * np.eye(7), a.T @ b)
    coordinates = fit(methods.RidgeRegression(normalise=("unit",), penalty=0.5), problem)
    np.testing.assert_allclose(coordinates[0], x, atol=1e-6)
    np.testing.assert_allclose(coordinates[1], expected, atol=1e-4)


@pytest.mark.parametrize(("steps", "fraction"), [(("unit", "center"), 1.0), (("unit",), 0.6)])
def test_artetxe_2016_and_smith_2017_are_orthogonal_maps(problem, steps, fraction):
    source, target, pairs = problem
    x, z = unit(source), unit(target)
    if "center" in steps:
        x, z = x - x.mean(0), z - z.mean(0)
    left, _, right = np.linalg.svd(x[pairs[:, 0]].T @ z[pairs[:, 1]], full_matrices=False)
    r = round(fraction * 7)
    expected = cosines((x @ left)[:, :r], (z @ right.T)[:, :r])
    coordinates = fit(methods.MultiStep(normalise=steps, keep_fraction=fraction), problem)
    assert coordinates[0].shape == (80, r)
    np.testing.assert_allclose(cosines(*coordinates), expected, atol=1e-4)


def test_artetxe_2018_whitens_reweights_and_undoes_the_whitening(problem):
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
    method = methods.MultiStep(
        normalise=("unit", "center"), whiten=True, reweight=(0.0, 1.0), keep_fraction=5 / 7
    )
    np.testing.assert_allclose(cosines(*fit(method, problem)), expected, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"whiten": True, "reweight": (0.0, 1.0)}])
def test_fewer_pairs_than_dimensions_give_finite_coordinates(problem, options):
    coordinates = fit(methods.MultiStep(normalise=("unit",), **options), problem, num_pairs=4)
    assert all(np.isfinite(np.asarray(x)).all() for x in coordinates)


def test_self_learning_fits_the_whole_framework_to_the_dictionary_that_it_finds():
    """A rotation is found from 12 pairs of 300 words, though two words in three have no partner."""
    rng = np.random.default_rng(0)
    source = rng.standard_normal((300, 8)) * np.linspace(1, 0.3, 8)
    target = source @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    target += 0.05 * rng.standard_normal(target.shape)
    target[100:] = rng.standard_normal((200, 8)) * np.linspace(1, 0.3, 8)
    problem = source, target, np.stack([np.arange(100)] * 2, axis=1)
    steps = {"normalise": ("unit", "center", "unit"), "reweight": (0.5, 0.5)}
    learned = methods.SelfLearning(iterations=5, words=100, neighbours=5, **steps)
    expected = fit(methods.MultiStep(whiten=True, **steps), problem, num_pairs=100)
    coordinates = fit(learned, problem, num_pairs=12)
    np.testing.assert_allclose(cosines(*coordinates), cosines(*expected), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mse_sgd", "lpa_mse"])
def test_gradient_descent_maps_a_space_onto_its_rotation(name, tmp_path):
    rng = np.random.default_rng(0)
    source = rng.standard_normal((120, 6))
    target = source @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    arrays = map(jnp.asarray, (source, target, np.stack([np.arange(60)] * 2, axis=1)))
    problem = methods.Problem(*arrays, num_pairs=60, key=jax.random.key(0))
    config = get_config()[name]
    method = settings(methods.GradientDescent, config, batch=60, updates=200, learning_rate=0.5)
    mapped, unchanged = method.fit(problem, Workdir(tmp_path, {}), "part")
    assert np.diag(cosines(mapped, unchanged)).min() > 0.99
