import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from common import metrics, retrieval
from common.linear import preprocess, unit
from common.metrics import linear_cka
from common.spaces import space_pairs
from tests import samples


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with samples.small_blocks(retrieval):
        yield


def by_definition(source, target, k):
    """The definitions, item by item, with sets."""
    k = min(k, len(source))
    jaccard, mrr, cosine = [], [], []
    for w in range(len(source)):
        expected = np.argsort(-(target @ target[w]), kind="stable")[:k]
        nearest = np.argsort(-(target @ source[w]), kind="stable")[:k]
        shared = set(nearest) & set(expected)
        jaccard.append(len(shared) / len(set(nearest) | set(expected)))
        mrr.append(1 / (1 + list(nearest).index(w)) if w in nearest else 0.0)
        cosine.append(source[w] @ target[w])
    return {"jaccard": np.mean(jaccard), "mrr": np.mean(mrr), "cosine": np.mean(cosine)}


def check(source, target, k):
    measures = metrics.correspondence({"a": source, "b": target}, k)
    spaces = {"a": source, "b": target}
    assert set(measures) == {(s, t) for s in "ab" for t in "ab"}
    for (s, t), values in measures.items():
        expected = by_definition(spaces[s], spaces[t], k)
        if s != t:
            best = samples.csls_scores(spaces[s], spaces[t], k).argmax(1)
            expected["p_at_1"] = np.mean(best == np.arange(len(best)))
        assert set(values) == set(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("n, k", [(1, 10), (8, 3), (33, 10)])
def test_correspondence_agrees_with_its_definition(n, k):
    rng = np.random.default_rng(n)
    target = rng.normal(size=(n, 7))
    source = target + 0.5 * rng.normal(size=(n, 7))
    check(*(unit(x).astype(np.float32) for x in (source, target)), k)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_correspondence_with_exact_ties_agrees_with_its_definition(seed):
    """Signed unit vectors with many duplicates: all products are exact and most are tied."""
    rng = np.random.default_rng(seed)
    source, target = (
        np.eye(4, dtype=np.float32)[rng.integers(0, 4, 21)] * rng.choice([-1, 1], (21, 1))
        for _ in range(2)
    )
    check(source.astype(np.float32), target.astype(np.float32), 6)


def test_pairs_of_unequal_dimension_are_omitted():
    spaces = {"a": np.eye(4, 3, dtype=np.float32) + 1, "b": np.eye(4, dtype=np.float32)}
    assert set(metrics.correspondence(spaces, 2)) == {("a", "a"), ("b", "b")}


def test_mrr_and_jaccard_of_small_examples():
    index = jnp.array([[4, 1, 2], [3, 0, 5], [5, 4, 3]])
    truth = jnp.array([4, 5, 0])
    np.testing.assert_allclose(metrics.mrr(index, truth), (1 + 1 / 3 + 0) / 3)
    other = jnp.array([[1, 2, 4], [3, 1, 2], [0, 1, 2]])
    np.testing.assert_allclose(metrics.jaccard(index, other), (1 + 1 / 5 + 0) / 3)
    np.testing.assert_allclose(metrics.mutual_neighbours(index, other), (1 + 1 / 3 + 0) / 3)


@pytest.mark.parametrize("k, expected", [(1, 1 / 4), (2, 2 / 4), (3, 3 / 4)])
def test_precision_with_one_target_and_with_gold_sets(k, expected):
    index = jnp.array([[4, 1, 2], [3, 0, 5], [5, 4, 3], [-1, -1, -1]])
    gold = jnp.array([[9, 4], [0, -1], [3, -1], [-1, -1]])  # the last is empty
    np.testing.assert_allclose(metrics.precision_at_k(index, gold, k), expected)
    value = metrics.precision_at_k(index[:3], jnp.array([4, 5, 0]), k)
    np.testing.assert_allclose(value, 2 / 3 if k == 3 else 1 / 3)


def test_foscttm_counts_the_wrong_rows_that_are_closer_than_the_true_one():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(37, 5)).astype(np.float32)
    x = y + rng.normal(size=y.shape).astype(np.float32)
    similarity = x @ y.T
    expected = [(row > row[i]).sum() / 36 for i, row in enumerate(similarity)]
    np.testing.assert_allclose(metrics.foscttm(x, y), np.mean(expected), rtol=1e-6)
    assert metrics.foscttm(y, 2 * y) <= np.mean(expected)
    np.testing.assert_allclose(metrics.foscttm(np.eye(4), -np.eye(4)), 1.0)


def all_metrics(x, y):
    of_pair = metrics.correspondence({"a": x, "b": y}, 3)["a", "b"]
    return of_pair | {"cka": metrics.linear_cka(x, y), "foscttm": metrics.foscttm(x, y)}


SPACE = unit(np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32))
ONE_IS_NAN = np.where(np.arange(9)[:, None] == 4, np.float32(np.nan), SPACE)


@pytest.mark.parametrize(
    ("degenerate", "foscttm"),
    [(ONE_IS_NAN, np.nan), (np.nan * SPACE, np.nan), (0 * SPACE, 0.5), (SPACE[[0] * 9], 0.5)],
    ids=("a NaN row", "NaN", "zero rows", "equal rows"),
)
def test_no_metric_of_a_degenerate_space_is_a_number_but_for_chance(degenerate, foscttm):
    for spaces in ((degenerate, SPACE), (SPACE, degenerate), (degenerate, degenerate)):
        expected = dict.fromkeys(all_metrics(SPACE, SPACE), np.nan) | {"foscttm": foscttm}
        assert all_metrics(*spaces) == pytest.approx(expected, nan_ok=True, abs=1e-6)


def test_foscttm_counts_half_of_the_equally_close_and_of_one_row_nothing():
    twice = SPACE[[0, 0, 1, 1, 2, 2, 3, 3]]
    np.testing.assert_allclose(metrics.foscttm(twice, twice), 0.5 / 7, rtol=1e-6)
    one = SPACE[:1]
    assert np.isnan([metrics.foscttm(one, one), metrics.linear_cka(one, one)]).all()


def test_the_rank_correlation_is_that_of_the_ranks_and_not_defined_of_equal_values():
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    ranks = [z.argsort().argsort() for z in (x, x + y)]
    np.testing.assert_allclose(metrics.spearman(x, x + y), np.corrcoef(ranks)[0, 1])
    assert math.isnan(metrics.spearman(x, np.ones(30)))
    assert math.isnan(metrics.spearman(x[:0], y[:0]))


@settings(max_examples=15)
@given(st.integers(0, 100), st.sampled_from([(3, 6, 1), (30, 1, 6), (17, 5, 5)]))  # compiled each
def test_linear_cka_is_the_alignment_of_centred_kernels(random_seed, sizes):
    n, d, e = sizes
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
