import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchor_opt import bootstrap
from anchor_opt.relative import preprocess


def unit_rows(seed, n, d):
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def csls(x, y, neighbours):
    s = x @ y.T
    rx = np.sort(s, axis=1)[:, -neighbours:].mean(1)
    ry = np.sort(s, axis=0)[-neighbours:].mean(0)
    return 2 * s - rx[:, None] - ry


@given(st.integers(0, 100), st.integers(4, 40), st.integers(4, 40), st.integers(1, 4))
@settings(max_examples=8, deadline=None)  # each shape compiles
def test_match_is_csls_in_both_directions(seed, n, m, neighbours):
    x, y = unit_rows(seed, n, 6), unit_rows(seed + 1, m, 6)
    found = bootstrap.match(x, y, neighbours=neighbours)
    scores = csls(x, y, neighbours)
    # Near ties may fall either way in float32: compare the scores of what was chosen.
    to_y = scores[np.arange(n), np.asarray(found.to_moving)]
    to_x = scores[np.asarray(found.to_fixed), np.arange(m)]
    np.testing.assert_allclose(to_y, scores.max(1), atol=1e-5)
    np.testing.assert_allclose(to_x, scores.max(0), atol=1e-5)
    np.testing.assert_allclose(
        found.objective, (scores.max(1).mean() + scores.max(0).mean()) / 2, atol=1e-5
    )
    back = np.asarray(found.to_fixed)[np.asarray(found.to_moving)]
    np.testing.assert_array_equal(found.mutual, back == np.arange(n))


def test_ties_go_to_the_lower_row():
    x = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    found = bootstrap.match(x, x, neighbours=2)
    np.testing.assert_array_equal(found.to_moving, [0, 0, 2, 2, 4, 4])
    np.testing.assert_array_equal(found.to_fixed, [0, 0, 2, 2, 4, 4])


@pytest.mark.parametrize("keep", [0.1, 0.5])
def test_the_share_kept_is_the_share_asked_for_and_the_salt_changes_it(keep):
    masks = [bootstrap._kept(jnp.arange(300), 400, keep, salt) for salt in (0, 1)]
    for mask in masks:
        assert abs(float(mask.mean()) - keep) < 0.01
        assert abs(float(mask.mean(0).std()) - np.sqrt(keep * (1 - keep) / 300)) < 0.01
    both = float((masks[0] & masks[1]).mean())
    assert abs(both - keep**2) < 0.01  # independent draws


def rotated_spaces(n=400, d=20, d_moving=20, noise=0.02):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) * np.linspace(2, 0.5, d)
    rotation = np.linalg.qr(rng.normal(size=(max(d, d_moving),) * 2))[0][:d, :d_moving]
    y = x @ rotation + noise * rng.normal(size=(n, d_moving))
    order = rng.permutation(n)
    return preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y[order])), np.argsort(order)


def search(data, steps=30, **changes):
    choices = bootstrap.Settings(10, 0.5, 10.0, 5, 1e-5)._replace(**changes)
    step = jax.jit(bootstrap.step, static_argnames="settings")
    state = bootstrap.init(data)
    for i in range(steps):
        if bootstrap.done(state, choices):
            break
        state, metrics = step(state, i, data, choices)
    return state, metrics


@pytest.mark.parametrize("d_moving", [20, 30])
def test_a_rotation_is_found_from_few_seeds(d_moving):
    fixed, moving, truth = rotated_spaces(d_moving=d_moving)
    seeds = np.arange(8)
    data = bootstrap.Data(fixed, moving, seeds, truth[seeds])
    state, metrics = search(data)
    found = bootstrap.match(*bootstrap.coordinates(state, data))
    assert (np.asarray(found.to_moving) == truth).mean() > 0.99
    # Known-wrong pairs end lower: success can be told without labels.
    _, wrong = search(data._replace(moving_seeds=(truth[seeds] + 1) % len(truth)))
    assert metrics["objective"] > 1.2 * wrong["objective"]


def test_soft_steps_find_a_rotation_from_fewer_seeds_than_hard_ones():
    fixed, moving, truth = rotated_spaces(noise=0.3)
    choices = bootstrap.Annealing(tuple(np.geomspace(0.2, 0.05, 24)), 8, 0.25, 10.0)
    step = jax.jit(bootstrap.soft_step, static_argnames="settings")
    right = {"soft": [], "hard": []}
    for first in range(0, 32, 8):
        seeds = np.arange(first, first + 2)
        data = bootstrap.Data(fixed, moving, seeds, truth[seeds])
        soft = bootstrap.init(data)
        for i in range(24):
            soft, metrics = step(soft, i, data, choices)
        for name, state in (("soft", soft), ("hard", search(data)[0])):
            found = bootstrap.matches(state, data, 10)
            right[name].append((np.asarray(found.to_moving) == truth).mean())
    np.testing.assert_allclose(metrics["epsilon"], 0.05, rtol=1e-5)
    assert np.mean(right["soft"]) > 0.9 > 0.7 > np.mean(right["hard"])


def test_dropping_anneals_to_all():
    fixed, moving, truth = rotated_spaces()
    seeds = np.arange(8)
    data = bootstrap.Data(fixed, moving, seeds, truth[seeds])
    choices = bootstrap.Settings(10, 0.5, 10.0, 2, 1e-5)
    state = bootstrap.init(data, keep=0.3)
    step = jax.jit(bootstrap.step, static_argnames="settings")
    kept = []
    for i in range(40):
        if bootstrap.done(state, choices):
            break
        state, metrics = step(state, i, data, choices)
        kept.append(round(float(metrics["keep"]), 3))
    assert sorted(set(kept)) == [0.3, 0.6, 1.0]
    assert kept == sorted(kept)
    assert bootstrap.done(state, choices)


def test_repeated_seeds_do_not_blow_up():
    fixed, moving, truth = rotated_spaces()
    seeds = np.array([0, 0, 1, 2])
    state = bootstrap.init(bootstrap.Data(fixed, moving, seeds, truth[seeds]))
    assert np.isfinite(np.asarray(state.from_fixed)).all()
    assert float(jnp.abs(state.from_fixed).max()) < 10


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_whitening_powers_and_undoes(power):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(200, 6)) * np.arange(1, 7))
    transform = bootstrap.whitening(x, power)
    np.testing.assert_allclose(transform @ bootstrap.whitening(x, -power), np.eye(6), atol=1e-4)
    spectrum = np.linalg.eigvalsh(np.asarray((x @ transform).T @ (x @ transform)) / 200)
    before = np.linalg.eigvalsh(np.asarray(x.T @ x) / 200)
    np.testing.assert_allclose(spectrum, np.sort(before ** (1 - power)), rtol=1e-3)
