"""Assignment, compared with scipy on the similarities alone."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from common import ot
from common.linear import unit


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
