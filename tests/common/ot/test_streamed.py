import jax
import numpy as np
import ot as pot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from common import ot
from common.errors import UserError
from common.linear import unit
from common.ot import dense, streamed
from tests import samples

SHAPES = [(1, 1), (7, 19), (30, 16)]


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with samples.small_blocks(streamed):
        yield


def clouds(n, m, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(m, d)).astype(np.float32)


def textbook(x, y, epsilon, iterations, metric="euclidean"):
    """Log-domain Sinkhorn in float64: potentials and plan."""
    cost = cdist(x.astype(np.float64), y.astype(np.float64), metric)
    n, m = cost.shape
    u, v = np.zeros(n), np.full(m, -epsilon * np.log(m))
    for _ in range(iterations):
        u = -epsilon * np.log(n) - epsilon * logsumexp((v - cost) / epsilon, axis=1)
        v = -epsilon * np.log(m) - epsilon * logsumexp((u[:, None] - cost) / epsilon, axis=0)
    return u, v, np.exp((u[:, None] + v - cost) / epsilon)


@pytest.mark.parametrize("n, m", SHAPES)
@pytest.mark.parametrize(
    ("iterations", "epsilon", "cost"),
    [
        (1, 1.0, "euclidean"),
        (2, 0.05, "euclidean"),
        (7, 0.05, "euclidean"),
        (5, 1.0, "sqeuclidean"),
    ],
)
def test_match_is_textbook_sinkhorn(n, m, iterations, epsilon, cost):
    x, y = clouds(n, m)
    u, v, plan = textbook(x, y, epsilon, iterations, cost)
    matching = ot.match(x, y, epsilon, iterations=iterations, rows=True, cost=cost)
    np.testing.assert_allclose(matching.u, u, atol=2e-5)
    np.testing.assert_allclose(matching.v, v, atol=2e-5)
    np.testing.assert_array_equal(matching.to_x, plan.argmax(0))
    np.testing.assert_array_equal(matching.to_y, plan.argmax(1))
    before = textbook(x, y, epsilon, iterations - 1, cost)[2]
    error = np.abs(before.sum(1) - 1 / n).sum()
    np.testing.assert_allclose(matching.error, error, atol=1e-3)
    assert ot.match(x, y, epsilon).to_y is None  # computed on request only


def test_an_unknown_cost_is_a_user_error():
    with pytest.raises(UserError, match="no cost 'cosine'"):
        ot.match(*clouds(7, 19), 1.0, cost="cosine")


def test_match_in_float64_has_its_precision():
    x, y = (z.astype(np.float64) for z in clouds(30, 16))
    with jax.enable_x64(True):
        matching = ot.match(x, y, 1e-3, iterations=3)
    np.testing.assert_allclose(matching.u, textbook(x, y, 1e-3, 3)[0], rtol=1e-10)


@pytest.mark.parametrize("n, m", SHAPES)
def test_match_for_small_epsilon_is_nearest_neighbours_corrected_for_hubness(n, m):
    """One iteration: u_i = min_j M_ij, v_j = min_i (M_ij - u_i)."""
    x, y = clouds(n, m, seed=1)
    cost = cdist(x, y)
    u = cost.min(1)
    v = (cost - u[:, None]).min(0)
    matching = ot.match(x, y, 1e-5, rows=True)
    np.testing.assert_allclose(matching.u, u, atol=1e-4)
    np.testing.assert_allclose(matching.v, v, atol=2e-4)
    # All rows whose nearest neighbour is y_j are tied in column j: the first must be returned.
    np.testing.assert_array_equal(matching.to_x, (cost - u[:, None]).argmin(0))
    # v_j is lower by epsilon times the log of the number of rows whose nearest neighbour is y_j.
    # Without this term, columns that are nearest neighbours of no row would be tied with others.
    v -= 1e-5 * np.log(np.maximum(1, np.bincount(cost.argmin(1), minlength=m)))
    # Some scores are equal, of which rounding in float32 chooses one.
    chosen = (cost - v)[np.arange(n), matching.to_y]
    np.testing.assert_allclose(chosen, (cost - v).min(1), atol=2e-6)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1e-4, 0.3]))
def test_exact_ties_go_to_the_lower_index(seed, epsilon):
    """Integer vectors: duplicate rows have bitwise equal scores, within and across blocks."""
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 2, (n, 3)).astype(np.float32) for n in (21, 18))
    matching = ot.match(x, y, epsilon, rows=True)
    for points, chosen in ((x, matching.to_x), (y, matching.to_y)):
        first = (points[:, None] == points).all(2).argmax(1)
        np.testing.assert_array_equal(first[chosen], chosen)


def test_match_agrees_with_ott_and_pot_at_convergence():
    x, y = clouds(23, 31)
    epsilon, iterations = 0.3, 1000
    matching = ot.match(x, y, epsilon, iterations=iterations)
    cost = cdist(x.astype(np.float64), y.astype(np.float64))
    plan = np.exp((np.asarray(matching.u)[:, None] + np.asarray(matching.v) - cost) / epsilon)
    assert float(matching.error) < 1e-5
    expected = pot.bregman.sinkhorn_log(
        np.full(23, 1 / 23), np.full(31, 1 / 31), cost, epsilon, iterations, stopThr=1e-12
    )
    np.testing.assert_allclose(plan, expected, atol=1e-5)
    by_ott = dense.transport(cost, epsilon=epsilon, iterations=iterations)
    np.testing.assert_allclose(by_ott.matrix, expected, atol=1e-5)
    assert bool(by_ott.converged)


@pytest.mark.slow
def test_iterations_end_at_the_first_error_within_the_tolerance():
    x, y = clouds(23, 31)
    loose = ot.match(x, y, 0.3, iterations=500, tolerance=0.1)
    steps = [float(ot.match(x, y, 0.3, iterations=i).error) for i in range(1, 20)]
    assert float(loose.error) == next(error for error in steps if error <= 0.1)


def test_match_has_zero_gradient_and_finite_potentials_for_equal_clouds():
    x, y = clouds(6, 7)
    gradient = jax.grad(lambda x: ot.match(x, y, 0.1).v.sum())(x)
    np.testing.assert_array_equal(gradient, 0)
    assert np.isfinite(ot.match(x, x, 1e-6, iterations=3).u).all()


@pytest.mark.parametrize("n, m", SHAPES)
@pytest.mark.parametrize("epsilon", [1e-4, 0.2])
def test_barycentric_is_the_normalised_plan(n, m, epsilon):
    x, y = clouds(n, m, seed=2)
    values_x, values_y = clouds(n, m, d=3, seed=3)
    matching = ot.match(x, y, epsilon)
    cost = cdist(x.astype(np.float64), y.astype(np.float64))
    u, v = (np.asarray(p, np.float64) for p in matching[2:4])
    rows = softmax((v - cost) / epsilon, axis=1)
    columns = softmax((u[:, None] - cost) / epsilon, axis=0)
    tolerance = 1e-5 + 1e-6 / epsilon  # float32 distances in units of epsilon
    np.testing.assert_allclose(
        ot.barycentric(x, y, matching.v, values_y, epsilon), rows @ values_y, atol=tolerance
    )
    np.testing.assert_allclose(
        ot.barycentric(y, x, matching.u, values_x, epsilon), columns.T @ values_x, atol=tolerance
    )


def test_barycentric_has_a_gradient_with_respect_to_its_values_only():
    x, y = clouds(19, 11)
    values = clouds(11, 1, d=3)[0]
    v = ot.match(x, y, 0.3).v
    weights = softmax((np.asarray(v) - cdist(x, y)) / 0.3, axis=1)

    def loss(x, y, v, values):
        return (ot.barycentric(x, y, v, values, 0.3) ** 2).sum()

    *others, gradient = jax.grad(loss, argnums=(0, 1, 2, 3))(x, y, v, values)
    np.testing.assert_allclose(gradient, 2 * weights.T @ (weights @ values), atol=1e-5)
    for other in others:
        np.testing.assert_array_equal(other, 0)


@pytest.mark.parametrize("cost", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize(("epsilon", "size"), [(0.0, 1.0), (1e-38, 1e3), (1e-10, 1e-3)])
def test_the_plan_is_hard_where_float32_does_not_resolve_epsilon(cost, epsilon, size):
    x = size * clouds(19, 19)[0]
    matching = ot.match(x, x[::-1], epsilon, iterations=3, rows=True, cost=cost)
    np.testing.assert_array_equal(matching.to_y, np.arange(19)[::-1])
    np.testing.assert_array_equal(matching.to_x, np.arange(19)[::-1])
    assert np.isfinite(matching.error)
    means = ot.barycentric(x, x[::-1], matching.v, x, epsilon)
    if cost == "euclidean":
        np.testing.assert_allclose(means, x[::-1], rtol=1e-6)
    zeros = np.zeros((3, 2), np.float32)  # no division by zero
    np.testing.assert_array_equal(ot.match(zeros, zeros, epsilon, rows=True).to_y, [0, 0, 0])


def spaces(noise, n=60, d=16):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, d)).astype(np.float32)
    b = a + noise * rng.normal(size=(n, d)).astype(np.float32)
    return unit(a), unit(b)[rng.permutation(n)]


@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
def test_the_assignment_is_that_of_scipy(noise):
    a, b = spaces(noise)
    _, expected = linear_sum_assignment(
        a.astype(np.float64) @ b.T.astype(np.float64), maximize=True
    )
    np.testing.assert_array_equal(ot.assign(a, b), expected)


def test_duplicate_rows_and_a_single_row_give_permutations():
    a, b = (np.repeat(x, 2, axis=0) for x in spaces(0.1, n=10))
    assert sorted(ot.assign(a, b)) == list(range(20))
    assert ot.assign(a[:1], b[:1]).tolist() == [0]
