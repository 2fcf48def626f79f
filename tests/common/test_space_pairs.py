import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from anchor_opt import experiments
from common import space_pairs
from common.data.packages import cache_dir
from common.errors import UserError
from common.linear import preprocess
from common.metrics import linear_cka
from common.workdir import Workdir
from configs.anchor_opt import spaces


@settings(max_examples=15)
@given(st.integers(0, 100), st.integers(3, 30), st.integers(1, 6), st.integers(1, 6))
def test_linear_cka_is_the_alignment_of_centred_kernels(random_seed, n, d, e):
    rng = np.random.default_rng(random_seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, e))
    centring = np.eye(n) - 1 / n
    k, m = (centring @ z @ z.T @ centring for z in (x, y))
    expected = np.sum(k * m) / np.sqrt(np.sum(k * k) * np.sum(m * m))
    found = linear_cka(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    turned = jnp.asarray(3 * x @ rotation + 1, jnp.float32)
    np.testing.assert_allclose(linear_cka(jnp.asarray(x, jnp.float32), turned), 1, rtol=1e-4)


def test_a_rotation_is_found_by_every_measure():
    rng = np.random.default_rng(0)
    x = preprocess(jnp.asarray(rng.normal(size=(200, 8)), jnp.float32))
    y = x @ jnp.asarray(np.linalg.qr(rng.normal(size=(8, 8)))[0], jnp.float32)
    for row in space_pairs.measure(x, y, num_anchors=20, k=10, random_seeds=(0, 1)):
        assert row["value"] == pytest.approx(1, abs=1e-3), row


def test_a_map_is_measured_on_items_it_was_not_fitted_on():
    rng = np.random.default_rng(0)
    x, y = (preprocess(jnp.asarray(rng.normal(size=(90, 40)), jnp.float32)) for _ in range(2))
    rows = space_pairs.measure(x, y, num_anchors=20, k=10, random_seeds=(0,))
    (value,) = [r["value"] for r in rows if r["method"] == "least_squares" and r["metric"] == "mrr"]
    assert value < 0.15  # 45 pairs in 40 dimensions: on its own pairs the map would be near 1


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.6])
def test_a_noisy_isometry_is_a_rotated_copy_with_noise_of_the_same_covariance(noise):
    rng = np.random.default_rng(0)
    x = preprocess(jnp.asarray(rng.normal(size=(50, 5)) * [3, 2, 1, 1, 0.3], jnp.float32))
    found = space_pairs.noisy_isometry(jax.random.key(7), x, noise)
    normal = np.asarray(jax.random.normal(jax.random.split(jax.random.key(7))[0], x.shape))
    x = np.asarray(x, np.float64)
    moved = x + noise * normal @ scipy.linalg.sqrtm(np.cov(x.T, bias=True))
    for centre in (0, moved.mean(axis=0)):  # unit, centred, unit
        moved = moved - (moved.mean(axis=0) if np.any(centre) else 0)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, moved @ moved.T, atol=1e-4)
    assert not noise or np.abs(found @ found.T - x @ x.T).max() > 0.1


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 100), st.floats(0, 2), st.integers(4, 30))
def test_more_noise_means_a_smaller_cka(random_seed, noise, d):
    x = np.random.default_rng(random_seed).normal(size=(2_000, d))
    x = preprocess(jnp.asarray(x, jnp.float32))
    y = space_pairs.noisy_isometry(jax.random.key(random_seed), x, noise)
    assert float(linear_cka(x, y)) == pytest.approx(1 / (1 + noise**2), abs=0.08)


def run(path, **changes) -> str:
    config = spaces.get_config()
    config.update(config.when_quick)
    config.update(changes)
    return experiments.describe_spaces(config, Workdir(path, config.to_dict()), cache_dir())


@pytest.mark.network
@pytest.mark.slow
def test_a_run_writes_a_line_for_each_pair_and_a_figure(tmp_path):
    table = run(tmp_path, pairs=("glove:word2vec", "word2vec:glove"), num_words=400)
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    assert [line.split("|")[2].strip() for line in lines] == ["Source", "glove", "word2vec"]
    assert "50 -> 300" in lines[1] and "300 -> 50" in lines[2]
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {row["num_items"] for row in rows} == {400}
    cka = [row["mean"] for row in rows if row["metric"] == "linear_cka"]
    assert 0.5 < cka[0] < 0.8
    assert (tmp_path / "cka.png").stat().st_size > 10_000


@pytest.mark.network
@pytest.mark.parametrize(
    ("pairs", "message"),
    [(("glove",), "'glove' of config.pairs is no pair"), (("glove:word3vec",), "'word3vec' is")],
)
def test_a_wrong_pair_is_a_user_error(tmp_path, pairs, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path, pairs=pairs)
