from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.manifold._locally_linear import barycenter_weights
from sklearn.neighbors import NearestNeighbors

from lpl import loss


@pytest.fixture(scope="module")
def space():
    return np.random.default_rng(0).standard_normal((300, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def near(space):
    rows = jnp.arange(0, 300, 3)
    return rows, loss.neighbours(jnp.asarray(space), rows, 5)


def test_neighbours_are_the_nearest_by_the_euclidean_distance(space, near):
    rows, index = near
    tree = NearestNeighbors(n_neighbors=6, algorithm="kd_tree").fit(space)
    expected = tree.kneighbors(space[np.asarray(rows)], return_distance=False)[:, 1:]
    np.testing.assert_array_equal(index, expected)


def test_a_vector_is_no_neighbour_of_itself_even_with_duplicates():
    space = jnp.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    index = np.asarray(loss.neighbours(space, jnp.arange(4), 2))
    assert all(row not in members for row, members in enumerate(index))
    np.testing.assert_array_equal(index[:3], [[1, 2], [0, 2], [0, 1]])


def test_weights_are_those_of_scikit_learn(space, near):
    rows, index = near
    weights = loss.lle_weights(jnp.asarray(space), rows, index)
    expected = barycenter_weights(space[np.asarray(rows)], space, np.asarray(index), reg=1e-3)
    np.testing.assert_allclose(weights, expected, atol=2e-5)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("k", "regularisation"), [(5, 1e-3), (20, 0.1)])  # 20 > d
def test_gradient_descent_finds_the_weights_of_the_closed_form(space, k, regularisation):
    rows = jnp.arange(60)
    index = loss.neighbours(jnp.asarray(space), rows, k)
    arguments = jnp.asarray(space), rows, index, regularisation
    closed = loss.lle_weights(*arguments)
    descended = loss.lle_weights(*arguments, partial(loss.gradient_descent, steps=800))
    np.testing.assert_allclose(descended, closed, atol=1e-3)
    np.testing.assert_allclose(descended.sum(axis=1), 1, atol=1e-5)


def test_neighbours_that_equal_the_vector_have_equal_weights():
    space = jnp.ones((4, 3))
    for solve in loss.WEIGHTS.values():
        weights = loss.lle_weights(space, jnp.array([0]), jnp.array([[1, 2, 3]]), solve=solve)
        np.testing.assert_allclose(weights, [[1 / 3] * 3], atol=1e-6)


def test_losses_of_small_examples():
    mapped, targets = jnp.array([[1.0, 2.0], [0.0, 0.0]]), jnp.array([[1.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(loss.mse(mapped, targets), [4, 25])
    near = jnp.array([[[2.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [3.0, 3.0]]])
    weights = jnp.array([[0.5, 0.5], [-1.0, 2.0]])
    # The combinations are (1, 1) and (5, 5).
    np.testing.assert_allclose(loss.lpl(near, weights, targets), [1, 5])
    assert loss.orthogonality(jnp.eye(3)) == 0
    assert loss.orthogonality(jnp.eye(2, 5)) == loss.orthogonality(jnp.eye(5, 2)) == 0
    assert loss.orthogonality(2 * jnp.eye(3)) == 27


def test_a_vector_between_two_neighbours_has_the_weights_of_linear_interpolation():
    # (1, 0) is a quarter of the way from (0, 0) to (4, 0).
    space = jnp.array([[1.0, 0.0], [0.0, 0.0], [4.0, 0.0]])
    weights = loss.lle_weights(space, jnp.array([0]), jnp.array([[1, 2]]), 1e-7)
    np.testing.assert_allclose(weights, [[0.75, 0.25]], atol=1e-5)


def test_for_an_affine_map_lpl_is_mse_of_the_reconstruction(space, near):
    rows, index = near
    space = jnp.asarray(space)
    weights = loss.lle_weights(space, rows, index)
    matrix, bias = jax.random.normal(jax.random.key(0), (12, 7)), jnp.arange(7.0)
    targets = jnp.ones((len(rows), 7))
    whole = loss.lpl(space[index] @ matrix + bias, weights, targets)
    short = loss.mse(loss.combine(space[index], weights) @ matrix + bias, targets)
    np.testing.assert_allclose(whole, short, rtol=1e-4)
