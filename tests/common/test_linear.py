import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes, sqrtm
from scipy.linalg import polar as scipy_polar
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize

from common import linear
from tests.samples import isometry, normal


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray])
def test_unit_agrees_with_scikit_learn_and_keeps_zero_rows(array):
    x = normal(0, 20, 5)
    x[3] = 0
    rows = linear.unit(array(x))
    np.testing.assert_allclose(rows, normalize(x), atol=1e-6)
    double = linear.unit(x.astype(np.float64))  # NumPy's arrays keep their precision
    np.testing.assert_allclose(double, normalize(x.astype(np.float64)), rtol=1e-14)
    np.testing.assert_array_equal(rows[3], 0)


def test_preprocess_centres_unit_rows():
    x = np.array([[3.0, 0.0], [0.0, 5.0]])
    expected = np.array([[1.0, -1.0], [-1.0, 1.0]]) / np.sqrt(2)
    np.testing.assert_allclose(linear.preprocess(x), expected, atol=1e-6)
    train, test = normal(0, 30, 4) + 1, normal(1, 5, 4) + 1
    centre = normalize(train).mean(axis=0)
    np.testing.assert_allclose(
        linear.preprocess(test, train), normalize(normalize(test) - centre), atol=1e-5
    )


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_whitening_scales_the_spectrum_and_the_negative_power_inverts_it(power):
    x = jnp.asarray(normal(0, 200, 6) * np.arange(1, 7))
    transform = linear.whitening(x, power)
    np.testing.assert_allclose(transform @ linear.whitening(x, -power), np.eye(6), atol=1e-4)
    spectrum = np.linalg.eigvalsh(np.asarray((x @ transform).T @ (x @ transform)) / 200)
    before = np.linalg.eigvalsh(np.asarray(x.T @ x) / 200)
    np.testing.assert_allclose(spectrum, np.sort(before ** (1 - power)), rtol=1e-3)


def test_an_orthogonal_map_between_whitened_rows():
    """It undoes a stretch and a rotation; a large penalty makes it the plain orthogonal map."""
    x, noise = normal(0, 300, 5), normal(1, 300, 7)
    y = x @ np.diag(np.arange(1.0, 6)) @ isometry(2, 5, 7)
    exact = linear.whitened_procrustes(x, jnp.asarray(y, jnp.float32), 1e-3)
    np.testing.assert_allclose(x @ exact, y, atol=2e-2)
    y = jnp.asarray(y + noise, jnp.float32)
    far = linear.whitened_procrustes(x, y, 1e7)
    np.testing.assert_allclose(far, linear.procrustes(x, y), atol=1e-3)
    for penalty in (0.0, 30.0):  # by SciPy's roots of matrices
        c, d = (np.asarray(z.T @ z, float) + penalty * np.eye(z.shape[1]) for z in (x, y))
        a, b = (np.linalg.inv(sqrtm(z)) for z in (c, d))
        expected = a @ scipy_polar(a @ (x.T @ np.asarray(y)) @ b)[0] @ sqrtm(d)
        found = linear.whitened_procrustes(x, y, penalty)
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_whitening_on_the_span_of_few_rows():
    x = normal(0, 4, 10)
    white, inverse = linear.whitening_on_span(x)
    np.testing.assert_allclose((x @ white) @ (x @ white).T, np.eye(4), atol=1e-5)
    np.testing.assert_allclose(x @ white @ inverse, x, atol=1e-5)
    np.testing.assert_allclose(inverse, np.linalg.pinv(white, rcond=1e-4), atol=1e-4)


def correlated(seed, n, d_x, d_y, condition=30.0):
    """Rows of unequal variance in their directions, and a noisy linear image of them."""
    x = normal(seed, n, d_x) * np.geomspace(1, 1 / condition, d_x, dtype=np.float32)
    x = x @ isometry(seed + 1, d_x, d_x)
    return x, x @ normal(seed + 2, d_x, d_y) + normal(seed + 3, n, d_y) / 10


@given(st.integers(0, 1000), st.sampled_from([(50, 7), (12, 12), (500, 30)]))
@settings(max_examples=15)
def test_procrustes_agrees_with_scipy(seed, shape):
    x, y = correlated(seed, *shape, shape[1], condition=3)
    expected, _ = orthogonal_procrustes(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(linear.procrustes(x, y), expected, atol=5e-4)
    expected = np.sum((x @ expected) * y)
    rotation = np.asarray(linear.procrustes(x, y))
    assert np.sum((x @ rotation) * y) > expected - 1e-5 * abs(expected)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(shape[1]), atol=4e-6)  # GPU: 2.5e-6


@pytest.mark.parametrize("method", [linear.polar, linear.polar_by_qr])
@pytest.mark.parametrize("condition", [1e3, 1e8])
@pytest.mark.parametrize("shape", [(30, 40), (40, 30), (30, 30)])
def test_polar_of_matrices_close_to_rank_deficient(method, condition, shape):
    rank = min(shape)
    left, right = (np.linalg.qr(normal(i, n, rank))[0] for i, n in enumerate(shape))
    values = np.geomspace(1, 1 / condition, rank)
    c = jnp.asarray((left * values) @ right.T, jnp.float32)
    w = np.asarray(method(c))
    gram = w @ w.T if shape[0] < shape[1] else w.T @ w
    np.testing.assert_allclose(gram, np.eye(rank), atol=2e-3)
    np.testing.assert_allclose((w * c).sum(), values.sum(), rtol=1e-5)
    if condition <= 1e3:  # float32 determines W
        np.testing.assert_allclose(w, left @ right.T, atol=1e-4)


def test_matrices_that_are_left_undecomposed_are_decomposed_by_qr_iterations(monkeypatch):
    """As LAPACK leaves, seldom, the products of fewer pairs than dimensions; here half."""
    fast = jnp.linalg.svd

    def failing(x, **options):
        return [jnp.where(x[0, 0] > 0, jnp.nan, part) for part in fast(x, **options)]

    c = normal(0, 8, 6, 4)
    c[:4, 0, 0] = -abs(c[:4, 0, 0])
    monkeypatch.setattr(jnp.linalg, "svd", failing)
    alone = [np.stack(parts) for parts in zip(*map(linear.svd, c), strict=True)]
    for left, values, right in (alone, jax.vmap(linear.svd)(c)):
        np.testing.assert_allclose((left * values[:, None]) @ right, c, atol=1e-5)
        np.testing.assert_allclose(left.mT @ left, [np.eye(4)] * len(c), atol=1e-5)
        np.testing.assert_allclose(values, np.linalg.svd(c, compute_uv=False), rtol=1e-5)


@pytest.mark.parametrize("method", [linear.polar, linear.polar_by_qr])
@pytest.mark.parametrize(("rows", "shape"), [(15, (30, 40)), (40, (4, 7)), (40, (7, 4))])
def test_the_polar_factor_is_one_of_the_maximisers(method, rows, shape):
    """Of few pairs there are many, as isometries of the directions without a pair are free."""
    x, y = normal(0, rows, shape[0]), normal(1, rows, shape[1])
    w = np.asarray(method(x.T @ y))
    small = w @ w.T if shape[0] < shape[1] else w.T @ w
    np.testing.assert_allclose(small, np.eye(min(shape)), atol=1e-5)
    largest = np.linalg.svd(x.T @ y, compute_uv=False).sum()  # von Neumann's bound
    np.testing.assert_allclose((w * (x.T @ y)).sum(), largest, rtol=1e-5)


@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7)])
def test_the_derivative_of_polar_is_that_of_the_decomposition(shape):
    def by_svd(c):
        left, _, right = jnp.linalg.svd(c, full_matrices=False)
        return left @ right

    c, tangent = jnp.asarray(normal(0, *shape)), jnp.asarray(normal(1, *shape))
    _, derivative = jax.jvp(linear.polar, (c,), (tangent,))
    _, expected = jax.jvp(by_svd, (c,), (tangent,))
    np.testing.assert_allclose(derivative, expected, atol=1e-5)
    gradient, expected = (
        jax.grad(lambda c, f=f: jnp.vdot(f(c), tangent))(c) for f in (linear.polar, by_svd)
    )
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_polar_on_a_tpu_is_by_qr_and_has_the_same_derivative(monkeypatch):
    c, tangent = jnp.asarray(normal(0, 7, 4)), jnp.asarray(normal(1, 7, 4))
    expected = jax.jvp(linear.polar, (c,), (tangent,))
    monkeypatch.setattr(linear, "on_tpu", lambda: True)
    jax.clear_caches()
    for value, correct in zip(jax.jvp(linear.polar, (c,), (tangent,)), expected, strict=True):
        np.testing.assert_allclose(value, correct, atol=1e-5)


def test_polar_has_a_derivative_where_singular_values_are_equal():
    tangent = jnp.asarray(normal(0, 4, 4))
    _, derivative = jax.jvp(linear.polar, (jnp.eye(4),), (tangent,))
    np.testing.assert_allclose(derivative, (tangent - tangent.T) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("n", "d_x", "condition", "rtol"),
    [(3000, 20, 30.0, 1e-4), (12, 12, 30.0, 1e-3), (5, 20, 30.0, 1e-3), (3000, 30, 1000.0, 1e-3)],
)
def test_least_squares_agrees_with_numpy(n, d_x, condition, rtol):
    """To condition x rounding; the normal equations would lose all digits."""
    x, y = correlated(0, n, d_x, 6, condition)
    expected = np.linalg.lstsq(x.astype(np.float64), y.astype(np.float64), rcond=None)[0]
    error = np.linalg.norm(linear.least_squares(x, y) - expected) / np.linalg.norm(expected)
    assert error < rtol


def test_least_squares_of_deficient_rank_has_least_norm():
    x, y = correlated(0, 20_000, 20, 6)
    x = np.concatenate([x, x[:, :5]], axis=1)
    expected = np.linalg.lstsq(x.astype(np.float64), y.astype(np.float64), rcond=None)[0]
    np.testing.assert_allclose(linear.least_squares(x, y), expected, atol=1e-4)
    zeros = linear.least_squares(np.zeros((5, 3)), np.zeros((5, 2)))
    np.testing.assert_array_equal(zeros, np.zeros((3, 2)))


@pytest.mark.parametrize("penalty", [1e-3, 50.0])
@pytest.mark.parametrize(("n", "d_x"), [(3000, 20), (5, 20)], ids=str)
def test_ridge_agrees_with_scikit_learn(n, d_x, penalty):
    x, y = correlated(0, n, d_x, 6)
    peer = Ridge(alpha=penalty, fit_intercept=False, solver="svd")
    expected = peer.fit(x.astype(np.float64), y.astype(np.float64)).coef_.T
    np.testing.assert_allclose(linear.ridge(x, y, penalty), expected, atol=5e-4)
