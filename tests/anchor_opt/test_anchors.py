import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from anchor_opt.methods.anchors import fit_anchors
from common.linear import unit
from tests.samples import unit_rows


def fitting_problem(seed=0, n=60, d=5, k=4):
    """Spaces, anchors, the relative rows to fit, weights of rows, and a matching."""
    source, target = unit_rows(seed, n, 7), unit_rows(seed + 1, n, d)
    anchors = source[:k]
    wanted = unit(source @ anchors.T)
    weight = (np.arange(n) % 3 > 0).astype(np.float32)
    order = np.random.default_rng(seed).permutation(n)
    return source, target, anchors, wanted, weight, order


def test_anchors_of_any_length_are_the_least_squares_solution():
    source, target, anchors, wanted, weight, order = fitting_problem()
    fitted = fit_anchors(source, target, anchors, order, weight, unit_anchors=False)
    rows = weight > 0
    expected = np.linalg.lstsq(target[order][rows], wanted[rows], rcond=None)[0].T
    np.testing.assert_allclose(fitted, expected, atol=1e-4)


@given(st.integers(0, 30))
@settings(max_examples=10)
def test_unit_anchors_solve_the_secular_equation(seed):
    source, target, anchors, wanted, weight, order = fitting_problem(seed)
    fitted = np.asarray(fit_anchors(source, target, anchors, order, weight))
    np.testing.assert_allclose(np.linalg.norm(fitted, axis=1), 1, atol=1e-6)
    rows = weight > 0
    y = target[order][rows].astype(np.float64)
    gram = y.T @ y
    free = np.linalg.lstsq(y, wanted[rows], rcond=None)[0]
    scaled = wanted[rows] / np.linalg.norm(free, axis=0).mean()
    for column, anchor in zip(scaled.T, fitted, strict=True):
        cross = y.T @ column
        lowest = np.linalg.eigvalsh(gram)[0]

        def excess(multiplier, cross=cross):
            return np.linalg.norm(np.linalg.solve(gram + multiplier * np.eye(5), cross)) - 1

        multiplier = brentq(excess, -lowest + 1e-9, 1e3)
        expected = np.linalg.solve(gram + multiplier * np.eye(5), cross)
        np.testing.assert_allclose(anchor, expected, atol=1e-4)
