"""Assignments against scipy on the plain products."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from common import assignment


def spaces(noise, n=60, d=16):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, d)).astype(np.float32)
    b = a + noise * rng.normal(size=(n, d)).astype(np.float32)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    return a, b[rng.permutation(n)]


@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
def test_exact_is_that_of_scipy_and_rounded_near_it(noise):
    a, b = spaces(noise)
    products = a.astype(np.float64) @ b.T.astype(np.float64)
    rows, expected = linear_sum_assignment(products, maximize=True)
    np.testing.assert_array_equal(assignment.exact(a, b), expected)
    found = assignment.rounded(a, b)
    np.testing.assert_array_equal(np.sort(found), rows)
    best, near = ((1 - products[rows, columns]).sum() for columns in (expected, found))
    assert near <= 1.02 * best + 1e-5


def test_duplicates_and_one_row():
    a, b = (np.repeat(x, 2, axis=0) for x in spaces(0.1, n=10))
    for assign in (assignment.exact, assignment.rounded):
        assert sorted(assign(a, b)) == list(range(20))
        assert assign(a[:1], b[:1]).tolist() == [0]
