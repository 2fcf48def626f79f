import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from anchor_opt import algorithm1
from anchor_opt.relative import relative
from common import ot

SETTINGS = algorithm1.Settings(0.02, 1e-4, 1, "fixed", "hard", False)


def unit_rows(seed, n, d):
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def start(settings, n=40, k=12, s=4):
    fixed, moving = unit_rows(0, n, 6), unit_rows(1, n, 5)
    data = algorithm1.data(fixed, fixed[:k], moving, s)
    state = algorithm1.init(jax.random.key(0), moving, np.arange(s), k, settings)
    return state, data


def test_line_1_seeds_then_noise_on_the_sphere():
    state, data = start(SETTINGS)
    np.testing.assert_allclose(state.anchors[:4], data.moving[:4], atol=1e-6)
    np.testing.assert_allclose(jnp.linalg.norm(state.anchors, axis=1), 1, atol=1e-6)
    assert state.anchors.shape == (12, 5)


def dense_scores(target, mine, epsilon):
    """(u_i - M_ij) / epsilon and (v_j - M_ij) / epsilon after one iteration, in float64."""
    cost = cdist(target, mine)
    u = -epsilon * logsumexp(-cost / epsilon, axis=1)
    v = -epsilon * logsumexp((u[:, None] - cost) / epsilon, axis=0)
    return (u[:, None] - cost) / epsilon, (v[None] - cost) / epsilon


@pytest.mark.parametrize("permute", ["fixed", "moving"])
@pytest.mark.parametrize("plan", ["hard", "soft"])
def test_one_step_by_hand(permute, plan):
    """Lines 4 to 8 in plain numpy; the first step of Adam is the sign of the gradient."""
    settings = SETTINGS._replace(permute=permute, plan=plan)
    state, data = start(settings)
    anchors, moving = np.asarray(state.anchors, np.float64), np.asarray(data.moving, np.float64)
    target = np.asarray(data.fixed_relative, np.float64)
    mine = moving @ anchors.T
    by_column, by_row = dense_scores(target, mine, settings.epsilon)
    scores = by_column.T if permute == "fixed" else by_row
    if plan == "soft":
        weights = softmax(scores, axis=1)
    else:
        # After one iteration all rows that share a nearest neighbour tie for it, to epsilon:
        # take those that were chosen, and see that they are among the best.
        found = algorithm1.match(data, state.anchors, settings.epsilon, rows=True)
        chosen = np.asarray(found.to_x if permute == "fixed" else found.to_y)
        assert (scores.max(1) - scores[np.arange(len(scores)), chosen]).max() < 0.02
        weights = np.eye(len(target))[chosen]
    if permute == "fixed":
        residual = mine - weights @ target
        gradient = 2 * residual.T @ moving / residual.size
    else:
        residual = weights @ mine - target
        gradient = 2 * residual.T @ (weights @ moving) / residual.size
    tangent = gradient - (gradient * anchors).sum(1, keepdims=True) * anchors

    new, metrics = algorithm1.step(state, 0, data, settings)
    np.testing.assert_allclose(metrics["loss"], np.mean(residual**2), rtol=5e-3)
    moved = np.asarray(new.anchors) - anchors
    assert np.abs(np.linalg.norm(new.anchors, axis=1) - 1).max() < 1e-6
    large = np.abs(tangent) > 0.2 * np.abs(tangent).max()
    np.testing.assert_array_equal(np.sign(moved[large]), -np.sign(tangent[large]))


@pytest.mark.parametrize("d_fixed, d_moving", [(3, 5), (5, 3), (9, 9)])
def test_the_product_of_relative_spaces_is_taken_where_it_costs_least(d_fixed, d_moving):
    fixed, moving = unit_rows(0, 30, d_fixed), unit_rows(1, 20, d_moving)
    anchors = unit_rows(2, 8, d_moving)
    data = algorithm1.data(fixed, fixed[:8], moving, 0)
    found = algorithm1.match(data, anchors, 0.1, iterations=3)
    expected = ot.match(data.fixed_relative, relative(moving, anchors), 0.1, iterations=3)
    np.testing.assert_allclose(found.u, expected.u, atol=1e-5)
    np.testing.assert_allclose(found.v, expected.v, atol=1e-5)
    np.testing.assert_array_equal(found.to_x, expected.to_x)


def test_frozen_seeds_stay():
    settings = SETTINGS._replace(freeze_seeds=True)
    state, data = start(settings)
    before = np.asarray(state.anchors)
    for i in range(3):
        state, _ = algorithm1.step(state, i, data, settings)
    np.testing.assert_allclose(state.anchors[:4], before[:4], atol=1e-6)
    assert np.abs(np.asarray(state.anchors[4:]) - before[4:]).max() > 1e-3


def test_it_finds_the_anchors_when_started_beside_them():
    """The loop does what it should where the first match is right: no bug hides behind failure."""
    fixed = unit_rows(0, 200, 6)
    rotation = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (6, 6)))[0]
    moving = fixed @ rotation
    data = algorithm1.data(fixed, fixed[:12], moving, 4)
    noise = 0.1 * jax.random.normal(jax.random.key(2), (12, 6))
    anchors = moving[:12] + noise
    anchors /= jnp.linalg.norm(anchors, axis=1, keepdims=True)
    state = algorithm1.State(anchors, algorithm1.optimiser(SETTINGS).init(anchors))
    step = jax.jit(algorithm1.step, static_argnames="settings")
    for i in range(200):
        state, _ = step(state, i, data, SETTINGS)
    cosine = jnp.sum(state.anchors * moving[:12], axis=1)
    assert float(cosine.min()) > 0.999
    np.testing.assert_array_equal(algorithm1.discretise(state.anchors, moving), np.arange(12))


def test_discretise_is_the_nearest_word_in_cosine():
    anchors, words = unit_rows(3, 9, 4) * 5, unit_rows(4, 30, 4)
    expected = (np.asarray(anchors) @ np.asarray(words).T).argmax(1)
    np.testing.assert_array_equal(algorithm1.discretise(anchors, words), expected)


def test_the_optimiser_is_adam_on_the_sphere():
    anchors = unit_rows(5, 3, 4)
    optimiser = algorithm1.optimiser(SETTINGS)
    updates, _ = optimiser.update(unit_rows(6, 3, 4), optimiser.init(anchors), anchors)
    moved = optax.apply_updates(anchors, updates)
    np.testing.assert_allclose(jnp.linalg.norm(moved, axis=1), 1, atol=1e-6)
