"""Rotation, neighbours and matching against what is known of them."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from common import assignment
from embed_match import compare
from embed_match.compare import Transport

SETTINGS = Transport(epsilon=0.01, iterations=100, tolerance=1e-3)


def rotated(n=60, d=8, noise=0.05):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, d)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return a, (3 * a @ rotation + noise * rng.standard_normal((n, d))).astype(np.float32)


def test_a_rotation_and_a_scale_are_found():
    a, b = rotated(noise=0.0)
    x, y = compare.aligned(a, b)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    assert compare.distances(x, y)["l2"] < 1e-3
    assert compare.distances(x, y)["cosine"] == pytest.approx(1, abs=1e-5)
    assert compare.neighbours(x, y) == {"p_at_1": 1.0, "p_at_5": 1.0}


def test_unequal_dimensions_are_as_padded_with_zeros():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((60, d)).astype(np.float32) for d in (5, 8))
    padded = [np.pad(x, ((0, 0), (0, 8 - x.shape[1]))) for x in (a, b)]
    found = compare.aligned(a, b)
    assert found[0].shape == found[1].shape == (60, 8)
    expected = compare.distances(*compare.aligned(*padded))
    assert compare.distances(*found) == pytest.approx(expected, abs=1e-5)


def test_matching_is_the_assignment_of_least_cost():
    a, b = compare.aligned(*rotated(noise=1.5))
    found = compare.matching(a, b, SETTINGS)
    cosine = cdist(np.asarray(a, np.float64), np.asarray(b, np.float64), "cosine")
    rows, columns = linear_sum_assignment(cosine)
    assert found["ot_cost"] == pytest.approx(cosine[rows, columns].mean(), abs=1e-6)
    assert found["ot"] == np.mean(columns == rows)
    assert found["ot_entropic"] > 0.8 * found["ot"]
    assert found["ot_entropic_error"] < 0.01
    shuffled = np.random.default_rng(2).permutation(len(b))
    np.testing.assert_array_equal(shuffled[assignment.exact(a, b[shuffled])], columns)


def test_words_that_are_confused_are_told_apart_by_transport():
    """Two rows share their nearest neighbour: only one of them can have it."""
    a = np.array([[1.0, 0.0], [0.9, 0.1]])
    b = np.array([[0.95, 0.05], [0.6, 0.4]])
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (a, b))
    assert compare.neighbours(x, y)["p_at_1"] == 0.5
    assert assignment.exact(x, y).tolist() == [0, 1]
