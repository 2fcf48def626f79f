import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from anchor_opt.refine import refine
from anchor_opt.relative import preprocess, unit


def unit_rows(seed, n, d):
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def problem_to_refine(seed=0, n=60, d=5, k=4):
    fixed, moving = unit_rows(seed, n, 7), unit_rows(seed + 1, n, d)
    anchors = fixed[:k]
    targets = fixed @ anchors.T
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    weight = (np.arange(n) % 3 > 0).astype(np.float32)
    order = np.random.default_rng(seed).permutation(n)
    return fixed, moving, anchors, targets, weight, order


def test_refine_without_the_sphere_is_least_squares():
    fixed, moving, anchors, targets, weight, order = problem_to_refine()
    found = refine(fixed, moving, anchors, order, weight, sphere=False)
    rows = weight > 0
    expected = np.linalg.lstsq(moving[order][rows], targets[rows], rcond=None)[0].T
    np.testing.assert_allclose(found, expected, atol=1e-4)


@given(st.integers(0, 30))
@settings(max_examples=10, deadline=None)
def test_refine_on_the_sphere_solves_the_secular_equation(seed):
    fixed, moving, anchors, targets, weight, order = problem_to_refine(seed)
    found = np.asarray(refine(fixed, moving, anchors, order, weight))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    rows = weight > 0
    y = moving[order][rows].astype(np.float64)
    gram = y.T @ y
    free = np.linalg.lstsq(y, targets[rows], rcond=None)[0]
    scaled = targets[rows] / np.linalg.norm(free, axis=0).mean()
    for target, anchor in zip(scaled.T, found, strict=True):
        cross = y.T @ target
        lowest = np.linalg.eigvalsh(gram)[0]

        def excess(multiplier, cross=cross):
            return np.linalg.norm(np.linalg.solve(gram + multiplier * np.eye(5), cross)) - 1

        multiplier = brentq(excess, -lowest + 1e-9, 1e3)
        expected = np.linalg.solve(gram + multiplier * np.eye(5), cross)
        np.testing.assert_allclose(anchor, expected, atol=1e-4)


def test_refine_recovers_true_anchors_under_a_rotation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 20)) * np.linspace(2, 0.5, 20)
    y = x @ np.linalg.qr(rng.normal(size=(20, 20)))[0]
    truth = rng.permutation(400)
    fixed, moving = preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y[np.argsort(truth)]))
    found = refine(fixed, moving, fixed[:9], truth, jnp.ones(len(truth)))
    cosine = np.sum(np.asarray(found) * np.asarray(unit(moving[truth[:9]])), axis=1)
    assert cosine.min() > 0.95
