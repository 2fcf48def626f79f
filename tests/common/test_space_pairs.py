import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from common.linear import preprocess
from common.metrics import linear_cka
from common.spaces import space_pairs


@settings(max_examples=15)
@given(st.integers(0, 100), st.integers(3, 30), st.integers(1, 6), st.integers(1, 6))
def test_linear_cka_is_the_alignment_of_centred_kernels(random_seed, n, d, e):
    rng = np.random.default_rng(random_seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, e))
    centring = np.eye(n) - 1 / n
    k, m = (centring @ z @ z.T @ centring for z in (x, y))
    expected = np.sum(k * m) / np.sqrt(np.sum(k * k) * np.sum(m * m))
    cka = linear_cka(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    np.testing.assert_allclose(cka, expected, rtol=1e-4)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    turned = jnp.asarray(3 * x @ rotation + 1, jnp.float32)
    np.testing.assert_allclose(linear_cka(jnp.asarray(x, jnp.float32), turned), 1, rtol=1e-4)


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.6])
def test_a_noisy_isometry_is_a_rotated_copy_with_noise_of_the_same_covariance(noise):
    rng = np.random.default_rng(0)
    x = preprocess(jnp.asarray(rng.normal(size=(50, 5)) * [3, 2, 1, 1, 0.3], jnp.float32))
    copy = space_pairs.noisy_isometry(jax.random.key(7), x, noise)
    normal = np.asarray(jax.random.normal(jax.random.split(jax.random.key(7))[0], x.shape))
    x = np.asarray(x, np.float64)
    moved = x + noise * normal @ scipy.linalg.sqrtm(np.cov(x.T, bias=True))
    for centre in (0, moved.mean(axis=0)):  # unit, centred, unit
        moved = moved - (moved.mean(axis=0) if np.any(centre) else 0)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    np.testing.assert_allclose(copy @ copy.T, moved @ moved.T, atol=1e-4)
    assert not noise or np.abs(copy @ copy.T - x @ x.T).max() > 0.1


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 100), st.floats(0, 2), st.integers(4, 30))
def test_more_noise_means_a_smaller_cka(random_seed, noise, d):
    x = np.random.default_rng(random_seed).normal(size=(2_000, d))
    x = preprocess(jnp.asarray(x, jnp.float32))
    y = space_pairs.noisy_isometry(jax.random.key(random_seed), x, noise)
    assert float(linear_cka(x, y)) == pytest.approx(1 / (1 + noise**2), abs=0.08)
