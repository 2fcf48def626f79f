"""Rotation, neighbours, matching and correlation in cases with a known result."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from common import ot
from embed_match import compare

RNG = np.random.default_rng(0)


def rotated_pair(n=60, d=8, noise=0.05):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return x, (3 * x @ rotation + noise * rng.standard_normal((n, d))).astype(np.float32)


def test_rotation_and_scale_are_recovered():
    x, y = compare.aligned(*rotated_pair(noise=0.0))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    assert compare.distances(x, y)["l2"] < 1e-3
    assert compare.distances(x, y)["cosine"] == pytest.approx(1, abs=1e-5)
    assert compare.neighbours(x, y) == {"p_at_1": 1.0, "p_at_5": 1.0}


def test_the_rotation_is_fitted_on_the_given_rows():
    x, y = rotated_pair(noise=0.0)
    y[30:] = RNG.standard_normal((30, 8))
    spaces = compare.aligned(x, y, slice(30)), compare.aligned(x, y)
    on_rows, on_all = (np.abs(a[:30] - b[:30]).max() for a, b in spaces)
    assert on_rows < 1e-3 < on_all


def test_fewer_dimensions_are_equivalent_to_padding_with_zeros():
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((60, d)).astype(np.float32) for d in (5, 8))
    aligned = compare.aligned(x, y)
    assert aligned[0].shape == aligned[1].shape == (60, 8)
    expected = compare.distances(*compare.aligned(np.pad(x, ((0, 0), (0, 3))), y))
    assert compare.distances(*aligned) == pytest.approx(expected, abs=1e-5)


def test_matching_is_the_assignment_of_least_cost():
    x, y = compare.aligned(*rotated_pair(noise=1.5))
    transport = compare.Transport(epsilon=0.01, max_iterations=100, tolerance=1e-3)
    matching = compare.matching(x, y, transport)
    distance = cdist(np.asarray(x, np.float64), np.asarray(y, np.float64), "cosine")
    rows, columns = linear_sum_assignment(distance)
    assert matching["ot_cost"] == pytest.approx(distance[rows, columns].mean(), abs=1e-6)
    assert matching["ot"] == np.mean(columns == rows)
    assert matching["ot_entropic"] > 0.8 * matching["ot"]
    assert matching["ot_entropic_error"] < 0.01
    shuffled = np.random.default_rng(2).permutation(len(y))
    np.testing.assert_array_equal(shuffled[ot.assign(x, y[shuffled])], columns)


def test_the_correlation_of_a_difference_with_itself_is_one():
    accuracy = dict(zip("abcdef", (0.1, 0.2, 0.4, 0.7, 0.75, 0.95), strict=True))
    pairs = list(itertools.combinations(accuracy, 2))
    difference = {(a, b): abs(accuracy[a] - accuracy[b]) for a, b in pairs}
    assert compare.correlation(accuracy, difference) == pytest.approx(1)
    assert compare.interval(accuracy, difference, 100) == pytest.approx((1, 1))
    noise = {pair: float(RNG.random()) for pair in pairs}
    low, high = compare.interval(accuracy, noise, 100)
    assert low < compare.correlation(accuracy, noise) < high


def test_a_correlation_of_equal_accuracies_and_its_interval_are_not_defined():
    accuracy = dict.fromkeys("abc", 0.5)
    l2 = {("a", "b"): 0.1, ("a", "c"): 0.2, ("b", "c"): 0.3}
    numbers = compare.correlation(accuracy, l2), *compare.interval(accuracy, l2, 20)
    assert np.isnan(numbers).all()
