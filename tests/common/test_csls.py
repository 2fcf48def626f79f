"""CSLS against its definition, and matchings by it."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import csls, retrieval
from tests import samples
from tests.samples import csls_scores, integer_rows, unit_rows


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with samples.small_blocks(csls, retrieval):
        yield


@pytest.mark.parametrize("n, m, k", [(1, 1, 1), (23, 17, 5), (9, 40, 10)])
def test_the_best_keys_and_the_hubness_agree_with_the_definition(n, m, k):
    x, y = unit_rows(2, n, 6), unit_rows(3, m, 6)
    best = csls.top_k(x, y, k, 12)  # more neighbours than rows
    expected = csls_scores(x, y, 12)
    np.testing.assert_array_equal(best.index, np.argsort(-expected, axis=1, kind="stable")[:, :k])
    np.testing.assert_allclose(best.values, -np.sort(-expected, axis=1)[:, :k], atol=1e-5)
    nearest = -np.sort(-(x @ y.T), axis=1)[:, :12]
    np.testing.assert_allclose(csls.hubness(x, y, 12), nearest.mean(axis=1), atol=1e-6)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([(7, 12), (22, 12)]))
def test_exact_ties_go_to_the_lower_index(seed, shape):
    x, y = integer_rows(seed, shape[0]), integer_rows(seed + 1, shape[1])
    # The mean of two neighbours is exact as well.
    expected = np.argsort(-csls_scores(x, y, 2), axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(csls.top_k(x, y, 4, 2).index, expected)


@given(st.integers(0, 100), st.integers(4, 40), st.integers(4, 40), st.integers(1, 4))
@settings(max_examples=6)  # each shape is compiled
def test_matches_have_the_highest_csls_in_both_directions(seed, n, m, neighbours):
    x, y = unit_rows(seed, n, 6), unit_rows(seed + 1, m, 6)
    matches = csls.matches(x, y, neighbours=neighbours)
    scores = csls_scores(x, y, neighbours)
    # Scores are compared, not rows, since rounding may decide between nearly equal ones.
    to_y = scores[np.arange(n), np.asarray(matches.to_target)]
    to_x = scores[np.asarray(matches.to_source), np.arange(m)]
    np.testing.assert_allclose(to_y, scores.max(1), atol=1e-5)
    best = np.asarray(csls.best_keys(x, y, neighbours))
    np.testing.assert_allclose(scores[np.arange(n), best], scores.max(1), atol=1e-5)
    np.testing.assert_allclose(to_x, scores.max(0), atol=1e-5)
    np.testing.assert_allclose(
        matches.objective, (scores.max(1).mean() + scores.max(0).mean()) / 2, atol=1e-5
    )
    back = np.asarray(matches.to_source)[np.asarray(matches.to_target)]
    np.testing.assert_array_equal(matches.mutual, back == np.arange(n))


@given(st.integers(0, 100), st.integers(2, 6), st.integers(2, 6))
@settings(max_examples=6)  # each shape is compiled
def test_the_one_to_one_matching_has_the_largest_total_csls(seed, n, m):
    x, y = unit_rows(seed, n, 4), unit_rows(seed + 1, m, 4)
    to_target, is_pair = csls.one_to_one(x, y, 2)
    scores = csls_scores(x, y, 2)
    small, large = (scores, m) if n <= m else (scores.T, n)
    totals = {
        p: sum(small[i, j] for i, j in enumerate(p))
        for p in itertools.permutations(range(large), len(small))
    }
    best = max(totals, key=totals.get)
    pairs = set(enumerate(best)) if n <= m else {(i, j) for j, i in enumerate(best)}
    expected = {(i, j) for i, j in pairs if scores[i, j] > 0}
    assert {(i, to_target[i]) for i in np.flatnonzero(is_pair)} == expected


def test_of_equal_scores_the_lower_row_is_matched():
    x = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    matches = csls.matches(x, x, neighbours=2)
    np.testing.assert_array_equal(matches.to_target, [0, 0, 2, 2, 4, 4])
    np.testing.assert_array_equal(matches.to_source, [0, 0, 2, 2, 4, 4])


@pytest.mark.parametrize("keep_prob", [0.1, 0.5])
def test_pairs_are_kept_independently_with_the_given_probability(keep_prob):
    masks = [csls._kept(jnp.arange(300), 400, keep_prob, seed) for seed in (0, 1)]
    for mask in masks:
        assert abs(float(mask.mean()) - keep_prob) < 0.01
        deviation = np.sqrt(keep_prob * (1 - keep_prob) / 300)
        assert abs(float(mask.mean(0).std()) - deviation) < 0.01
    in_each = float((masks[0] & masks[1]).mean())
    assert abs(in_each - keep_prob**2) < 0.01


def test_the_objective_is_finite_if_all_pairs_of_a_row_are_dropped():
    x, y = unit_rows(0, 9, 20), unit_rows(1, 9, 20)
    objective = float(csls.matches(x, y, neighbours=3, keep_prob=0.01).objective)
    assert np.isfinite(objective) and objective < -2


@pytest.mark.parametrize(("n", "m", "frequent"), [(37, 23, 100), (20, 45, 15)])
def test_a_dictionary_is_csls_with_the_hubness_of_frequent_rows(n, m, frequent):
    x, y = unit_rows(0, n, 5), unit_rows(1, m, 5)
    dictionary = csls.dictionary(x, y, neighbours=3, frequent=frequent)
    s = x @ y.T
    rx = np.sort(s[:, :frequent], axis=1)[:, -3:].mean(1)
    ry = np.sort(s[:frequent], axis=0)[-3:].mean(0)
    scores = 2 * s - rx[:, None] - ry
    to_target = np.asarray(dictionary.to_target)
    np.testing.assert_array_equal(to_target, scores.argmax(1))
    np.testing.assert_array_equal(dictionary.to_source, scores.argmax(0))
    np.testing.assert_allclose(dictionary.score, scores.max(1), atol=1e-5)
    np.testing.assert_array_equal(dictionary.mutual, scores.argmax(0)[to_target] == np.arange(n))
    rows, columns = dictionary.mutual_pairs().T
    np.testing.assert_array_equal(rows, np.flatnonzero(dictionary.mutual))
    np.testing.assert_array_equal(columns, to_target[rows])
    e = np.exp(30 * s)
    probability = np.minimum(e / e.sum(1, keepdims=True), e / e.sum(0))
    np.testing.assert_allclose(
        dictionary.confidence, probability[np.arange(n), to_target], rtol=1e-4
    )
    rows, columns = np.arange(n), np.arange(n)[::-1] % m
    confidence = csls.confidence(x, y, rows, columns)
    np.testing.assert_allclose(confidence, probability[rows, columns], rtol=1e-4)
