import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from anchor_opt.methods import bootstrap
from common.linear import preprocess, unit

LOOP = bootstrap.Loop(patience=5)


def unit_rows(seed, n, d):
    return unit(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def csls(x, y, neighbours):
    s = x @ y.T
    rx = np.sort(s, axis=1)[:, -neighbours:].mean(1)
    ry = np.sort(s, axis=0)[-neighbours:].mean(0)
    return 2 * s - rx[:, None] - ry


def fitted_coordinates(x, y, rows, partners):
    """Unit rows of both spaces in the common coordinates of the maps fitted to some pairs."""
    left, values, right = np.linalg.svd(x[rows].T @ y[partners])
    scale = np.sqrt(values / values[0])
    both = x @ (left[:, : len(scale)] * scale), y @ (right[: len(scale)].T * scale)
    return [z / np.linalg.norm(z, axis=1, keepdims=True) for z in both]


@given(st.integers(0, 100), st.integers(4, 40), st.integers(4, 40), st.integers(1, 4))
@settings(max_examples=8)  # each shape is compiled
def test_matches_have_the_highest_csls_in_both_directions(seed, n, m, neighbours):
    x, y = unit_rows(seed, n, 6), unit_rows(seed + 1, m, 6)
    found = bootstrap.csls_matches(x, y, neighbours=neighbours)
    scores = csls(x, y, neighbours)
    # Scores are compared, not rows, since rounding may decide between nearly equal ones.
    to_y = scores[np.arange(n), np.asarray(found.to_target)]
    to_x = scores[np.asarray(found.to_source), np.arange(m)]
    np.testing.assert_allclose(to_y, scores.max(1), atol=1e-5)
    np.testing.assert_allclose(to_x, scores.max(0), atol=1e-5)
    np.testing.assert_allclose(
        found.objective, (scores.max(1).mean() + scores.max(0).mean()) / 2, atol=1e-5
    )
    back = np.asarray(found.to_source)[np.asarray(found.to_target)]
    np.testing.assert_array_equal(found.mutual, back == np.arange(n))


@given(st.integers(0, 100), st.integers(2, 6), st.integers(2, 6))
@settings(max_examples=8)  # each shape is compiled
def test_the_one_to_one_matching_has_the_largest_total_csls(seed, n, m):
    x, y = unit_rows(seed, n, 4), unit_rows(seed + 1, m, 4)
    to_target, chosen = bootstrap.one_to_one(x, y, 2)
    scores = csls(x, y, 2)
    small, large = (scores, m) if n <= m else (scores.T, n)
    totals = {
        p: sum(small[i, j] for i, j in enumerate(p))
        for p in itertools.permutations(range(large), len(small))
    }
    best = max(totals, key=totals.get)
    pairs = set(enumerate(best)) if n <= m else {(i, j) for j, i in enumerate(best)}
    expected = {(i, j) for i, j in pairs if scores[i, j] > 0}
    assert {(i, to_target[i]) for i in np.flatnonzero(chosen)} == expected


def test_of_equal_scores_the_lower_row_is_matched():
    x = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    found = bootstrap.csls_matches(x, x, neighbours=2)
    np.testing.assert_array_equal(found.to_target, [0, 0, 2, 2, 4, 4])
    np.testing.assert_array_equal(found.to_source, [0, 0, 2, 2, 4, 4])


@pytest.mark.parametrize("keep_prob", [0.1, 0.5])
def test_pairs_are_kept_independently_with_the_given_probability(keep_prob):
    masks = [bootstrap._kept(jnp.arange(300), 400, keep_prob, draw) for draw in (0, 1)]
    for mask in masks:
        assert abs(float(mask.mean()) - keep_prob) < 0.01
        deviation = np.sqrt(keep_prob * (1 - keep_prob) / 300)
        assert abs(float(mask.mean(0).std()) - deviation) < 0.01
    both = float((masks[0] & masks[1]).mean())
    assert abs(both - keep_prob**2) < 0.01


def rotated_spaces(n=400, d=20, d_target=20, noise=0.02):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) * np.linspace(2, 0.5, d)
    rotation = np.linalg.qr(rng.normal(size=(max(d, d_target),) * 2))[0][:d, :d_target]
    y = x @ rotation + noise * rng.normal(size=(n, d_target))
    order = rng.permutation(n)
    return preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y[order])), np.argsort(order)


def data_of(spaces, pairs):
    source, target, truth = spaces
    return bootstrap.Data(source, target, pairs, truth[pairs])


def search(data, loop=LOOP, keep_prob=1.0, steps=30, step=bootstrap.step):
    """The last state and the metrics of every step."""
    state, metrics = bootstrap.from_pairs(data), []
    state = state._replace(keep_prob=jnp.float32(keep_prob))
    step = jax.jit(step, static_argnames="settings")
    while len(metrics) < steps and not bootstrap.done(state, loop):
        state, found = step(state, len(metrics), data, loop)
        metrics.append(found)
    return state, metrics


@pytest.mark.slow
@pytest.mark.parametrize("d_target", [20, 30])
def test_a_rotation_is_found_from_few_pairs(d_target):
    spaces = rotated_spaces(d_target=d_target)
    data, truth = data_of(spaces, np.arange(8)), spaces[2]
    state, metrics = search(data)
    found = bootstrap.csls_matches(*bootstrap.coordinates(state, data))
    assert (np.asarray(found.to_target) == truth).mean() > 0.99
    # Wrong pairs lead to matches that contradict each other, by which failure is detected.
    wrong_pairs = (truth[data.source_pairs] + 1) % len(truth)
    wrong, others = search(data._replace(target_pairs=wrong_pairs))
    assert metrics[-1]["objective"] > 1.2 * others[-1]["objective"]
    assert bootstrap.agreement(state, data, LOOP) > 0.95
    assert bootstrap.agreement(wrong, data, LOOP) < 0.85


def test_the_agreement_is_that_of_two_halves_of_the_mutual_matches():
    x, y, truth = rotated_spaces()
    data = data_of((x, y, truth), np.arange(0))
    state = bootstrap.from_maps(*bootstrap.common_maps(x[:90].T @ y[30:120], 1.0))
    found = bootstrap.current_matches(state, data, 10)
    mutual = np.flatnonzero(found.mutual)
    to_target = np.asarray(found.to_target)
    half = np.asarray(jax.random.bernoulli(jax.random.key(0), shape=(len(x),)))
    right = 0
    for part in (half, ~half):
        rows = mutual[part[mutual]]
        z, w = fitted_coordinates(x, y, rows, to_target[rows])
        others = mutual[~part[mutual]]
        right += (csls(z, w, 10)[others].argmax(1) == to_target[others]).sum()
    expected = right / len(mutual)
    assert 0.1 < expected < 0.9
    np.testing.assert_allclose(
        bootstrap.agreement(state, data, LOOP), expected, atol=2 / len(mutual)
    )


def test_the_validation_leaves_out_the_pairs_that_are_to_be_found_again():
    x, y, truth = rotated_spaces()
    x, y = np.asarray(x), np.asarray(y)
    data = data_of((x, y, truth), np.arange(0))
    rng = np.random.default_rng(0)
    chosen = rng.random(len(x)) < 0.8
    to_target = np.where(rng.random(len(x)) < 0.7, truth, rng.permutation(truth))
    folds = rng.permutation(len(x))[: 4 * (len(x) // 5)].reshape(4, -1)
    right = 0
    for fold in folds:
        rows = np.setdiff1d(np.flatnonzero(chosen), fold)
        z, w = fitted_coordinates(x, y, rows, to_target[rows])
        right += ((csls(z[fold], w, 10).argmax(1) == to_target[fold]) & chosen[fold]).sum()
    expected = right / chosen[folds].sum()
    assert 0.3 < expected < 0.9
    found = bootstrap.validation(data, jnp.asarray(to_target), jnp.asarray(chosen), folds, LOOP)
    np.testing.assert_allclose(found, expected, atol=2 / chosen[folds].sum())


@pytest.mark.parametrize("whole", [False, True])
def test_one_group_takes_the_step_of_the_loop(whole):
    data = data_of(rotated_spaces(), np.arange(8))
    loop = bootstrap.Grouped(groups=1, group_rows=len(data.source) if whole else None)
    state = bootstrap.from_pairs(data)
    found, metrics = bootstrap.grouped_step(state, 0, data, loop)
    expected, others = bootstrap.step(state, 0, data, loop)
    np.testing.assert_allclose(metrics["objective"], others["objective"], rtol=1e-4)
    both = (s.source_map @ s.target_map.T for s in (found, expected))
    np.testing.assert_allclose(*both, atol=1e-4)


def test_the_probability_of_keeping_is_doubled_up_to_one():
    data, loop = data_of(rotated_spaces(), np.arange(8)), bootstrap.Loop(patience=2)
    state, metrics = search(data, loop, keep_prob=0.3, steps=40)
    kept = [round(float(found["keep_prob"]), 3) for found in metrics]
    assert sorted(set(kept)) == [0.3, 0.6, 1.0]
    assert kept == sorted(kept)
    assert bootstrap.done(state, loop)


def test_the_objective_is_finite_if_all_pairs_of_a_row_are_dropped():
    source, target, _ = rotated_spaces()
    found = bootstrap.csls_matches(source[:9], target[:9], neighbours=3, keep_prob=0.01)
    assert np.isfinite(float(found.objective)) and float(found.objective) < -2


def test_repeated_pairs_give_finite_maps():
    state = bootstrap.from_pairs(data_of(rotated_spaces(), np.array([0, 0, 1, 2])))
    assert np.isfinite(np.asarray(state.source_map)).all()
    assert float(jnp.abs(state.source_map).max()) < 10


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
    found = bootstrap.fit_anchors(source, target, anchors, order, weight, unit_anchors=False)
    rows = weight > 0
    expected = np.linalg.lstsq(target[order][rows], wanted[rows], rcond=None)[0].T
    np.testing.assert_allclose(found, expected, atol=1e-4)


@given(st.integers(0, 30))
@settings(max_examples=10)
def test_unit_anchors_solve_the_secular_equation(seed):
    source, target, anchors, wanted, weight, order = fitting_problem(seed)
    found = np.asarray(bootstrap.fit_anchors(source, target, anchors, order, weight))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    rows = weight > 0
    y = target[order][rows].astype(np.float64)
    gram = y.T @ y
    free = np.linalg.lstsq(y, wanted[rows], rcond=None)[0]
    scaled = wanted[rows] / np.linalg.norm(free, axis=0).mean()
    for column, anchor in zip(scaled.T, found, strict=True):
        cross = y.T @ column
        lowest = np.linalg.eigvalsh(gram)[0]

        def excess(multiplier, cross=cross):
            return np.linalg.norm(np.linalg.solve(gram + multiplier * np.eye(5), cross)) - 1

        multiplier = brentq(excess, -lowest + 1e-9, 1e3)
        expected = np.linalg.solve(gram + multiplier * np.eye(5), cross)
        np.testing.assert_allclose(anchor, expected, atol=1e-4)


def test_anchors_fitted_to_a_rotated_space_are_the_true_ones():
    source, target, truth = rotated_spaces(noise=0)
    found = bootstrap.fit_anchors(source, target, source[:9], truth, jnp.ones(len(truth)))
    cosine = np.sum(np.asarray(found) * np.asarray(unit(target[truth[:9]])), axis=1)
    assert cosine.min() > 0.95
