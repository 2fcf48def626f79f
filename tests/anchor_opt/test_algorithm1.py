import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from anchor_opt import runner
from anchor_opt.methods import METHODS, algorithm1, readings
from anchor_opt.problem import Run, sample
from anchor_opt.relative import relative
from common import ot
from common.errors import UserError
from common.linear import unit
from common.run.workdir import Workdir
from configs.anchor_opt.retrieval import get_config
from tests import samples

SETTINGS = runner.grid(get_config()).settings.algorithm1  # the random anchors begin near zero
STEP = algorithm1.values_of(SETTINGS)
READING = {"permute": "source", "plan": "hard", "ties": "first"}


def unit_rows(seed, n, d):
    return jnp.asarray(samples.unit_rows(seed, n, d))


def start(norm=1.0, n=40, k=12, pairs=4):
    source, target = unit_rows(0, n, 6), unit_rows(1, n, 5)
    data = algorithm1.prepare(source, source[:k], target)
    return algorithm1.init(jax.random.key(0), target, np.arange(pairs), k, norm), data


def reading(**changes):
    return readings.Reading(**dataclasses.asdict(STEP) | READING | changes)


def state_at(anchors):
    return algorithm1.State(anchors, optax.adam(0.1).init(anchors))


def test_line_1_takes_known_pairs_and_noise_on_the_sphere_or_of_a_small_norm():
    state, data = start()
    np.testing.assert_allclose(state.anchors[:4], data.target[:4], atol=1e-6)
    np.testing.assert_allclose(jnp.linalg.norm(state.anchors, axis=1), 1, atol=1e-6)
    assert state.anchors.shape == (12, 5)
    small, _ = start(0.25)
    np.testing.assert_array_equal(small.anchors[:4], state.anchors[:4])
    np.testing.assert_allclose(small.anchors[4:], 0.25 * state.anchors[4:], atol=1e-7)


def test_a_free_step_moves_each_coordinate_and_a_step_on_the_sphere_keeps_unit_norm():
    state, data = start(0.01)
    free, _ = algorithm1.free_step(state, 0, data, STEP)
    moved = np.abs(free.anchors - state.anchors)  # the first step of Adam
    np.testing.assert_allclose(moved, STEP.learning_rate, rtol=1e-3)
    assert np.abs(np.linalg.norm(free.anchors[4:], axis=1) - 1).min() > 0.5
    held, _ = algorithm1.sphere_step(free, 1, data, STEP)
    np.testing.assert_allclose(np.linalg.norm(held.anchors, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    "changes, stages",
    [
        ({"sphere_from": 3}, {"free": 3, "sphere": 4}),
        ({"sphere_from": 3, "tied_steps": 2}, {"tied": 2, "free": 1, "sphere": 4}),
        ({"sphere_from": 0}, {"sphere": 7}),
        ({"sphere_from": 9}, {"free": 7}),
    ],
)
def test_the_stages_have_as_many_steps_as_the_settings_say(changes, stages, monkeypatch):
    made = {}

    def train(step, state, data, values, *, stage, num_steps, chunk):
        made[stage] = num_steps
        return state

    x = unit_rows(0, 40, 6)
    problem = sample(x, x, num_anchors=12, num_pairs=4, random_seed=0)
    settings = dataclasses.replace(SETTINGS, steps=7, tied_steps=0)
    settings = dataclasses.replace(settings, **changes)
    monkeypatch.setattr(Run, "train", property(lambda run: train))
    algorithm1.solve(problem, Run(None, None, "", 0), settings, STEP)
    assert made == stages


@pytest.mark.parametrize("permute", ["source", "target"])
@pytest.mark.parametrize("plan", ["hard", "soft"])
def test_a_step_agrees_with_lines_4_to_8_in_numpy(permute, plan):
    """The first step of Adam is the sign of the gradient."""
    settings = reading(permute=permute, plan=plan)
    state, data = start()
    anchors, target = np.asarray(state.anchors, np.float64), np.asarray(data.target, np.float64)
    x, y = np.asarray(data.source_relative, np.float64), target @ anchors.T
    cost, epsilon = cdist(x, y), settings.sinkhorn_epsilon
    u = -epsilon * logsumexp(-cost / epsilon, axis=1)
    v = -epsilon * logsumexp((u[:, None] - cost) / epsilon, axis=0)
    scores = ((u[:, None] - cost).T if permute == "source" else v - cost) / epsilon
    if plan == "soft":
        weights = softmax(scores, axis=1)
    else:
        # After one iteration all rows with the same nearest neighbour have the same score, up to
        # epsilon: take the row that was chosen, and require that its score is among the best.
        matching = algorithm1.sinkhorn_matching(data, state.anchors, settings, rows=True)
        chosen = np.asarray(matching.to_x if permute == "source" else matching.to_y)
        assert (scores.max(1) - scores[np.arange(len(scores)), chosen]).max() < 0.02
        weights = np.eye(len(x))[chosen]
    if permute == "source":
        residual = y - weights @ x
        gradient = 2 * residual.T @ target / residual.size
    else:
        residual = weights @ y - x
        gradient = 2 * residual.T @ (weights @ target) / residual.size
    tangent = gradient - (gradient * anchors).sum(1, keepdims=True) * anchors

    new, metrics = algorithm1.sphere_step(state, 0, data, settings)
    if (permute, plan) == ("source", "hard"):
        printed, _ = algorithm1.sphere_step(state, 0, data, STEP)
        np.testing.assert_array_equal(printed.anchors, new.anchors)
    np.testing.assert_allclose(metrics["loss"], np.mean(residual**2), rtol=5e-3)
    moved = np.asarray(new.anchors) - anchors
    assert np.abs(np.linalg.norm(new.anchors, axis=1) - 1).max() < 1e-6
    large = np.abs(tangent) > 0.2 * np.abs(tangent).max()
    np.testing.assert_array_equal(np.sign(moved[large]), -np.sign(tangent[large]))


def sphere_by_jacobian(form, x, base):
    """A point of a unit sphere by the parameters x, and its derivative by each of them."""
    if form == "normalised":
        y = base + x
        length = np.linalg.norm(y)
        return y / length, (np.eye(len(y)) - np.outer(y, y) / length**2) / length
    flat = np.eye(len(x)) - np.outer(base, base)
    v = flat @ x
    r = np.linalg.norm(v)
    if not r:
        return base, flat
    # d sin(r) / r and d cos(r) along v, whose derivative is `flat`
    bent = np.outer(v, v) / r**2 * (np.cos(r) - np.sin(r) / r) + np.eye(len(x)) * np.sin(r) / r
    return np.cos(r) * base + np.sin(r) / r * v, (bent - np.outer(base, v) * np.sin(r) / r) @ flat


@pytest.mark.parametrize("form", readings.FORMS)
def test_a_form_of_the_sphere_is_adam_on_its_parameters_in_numpy(form):
    """The anchors move by more than a radian; the loss is a distance, so that all are pulled."""
    start, goal = samples.unit_rows(0, 5, 4), samples.unit_rows(1, 5, 4)
    optimiser = readings.through(form, optax.adam(0.1))
    anchors, state = jnp.asarray(start), optimiser.init(jnp.asarray(start))
    x, mean, square = np.zeros((3, 5, 4))
    for step in range(1, 41):
        change, state = optimiser.update(2 * (anchors - goal), state, anchors)
        anchors = optax.apply_updates(anchors, change)
        points = [sphere_by_jacobian(form, *rows) for rows in zip(x, start, strict=True)]
        gradient = np.array(
            [2 * (y - z) @ jacobian for (y, jacobian), z in zip(points, goal, strict=True)]
        )
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        x = x - 0.1 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    expected = [sphere_by_jacobian(form, *rows)[0] for rows in zip(x, start, strict=True)]
    assert np.min(np.sum(expected * start, axis=1)) < np.cos(1)
    np.testing.assert_allclose(anchors, expected, atol=1e-4)


@pytest.mark.parametrize("form", readings.FORMS)
def test_a_form_follows_the_free_steps_and_finds_a_rotation(form, tmp_path):
    x = unit_rows(0, 200, 6)
    rotation = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (6, 6)))[0]
    problem = sample(x, x @ rotation, num_anchors=12, num_pairs=8, random_seed=0)
    values = runner.grid(get_config()).settings
    values = dataclasses.replace(
        values, algorithm1=dataclasses.replace(values.algorithm1, steps=120, sphere_from=60)
    )
    found = METHODS[f"algorithm1_{form}"].run(problem, Run(values, Workdir(tmp_path, {}), "a", 0))
    true = problem.source_anchors @ rotation
    assert float(jnp.sum(found.anchors * true, axis=1).min()) > 0.99


@pytest.mark.parametrize("d_source, d_target", [(3, 5), (5, 3), (9, 9)])
def test_products_of_the_smaller_factors_give_the_same_matching(d_source, d_target):
    source, target = unit_rows(0, 30, d_source), unit_rows(1, 20, d_target)
    anchors = unit_rows(2, 8, d_target)
    data = algorithm1.prepare(source, source[:8], target)
    values = dataclasses.replace(STEP, sinkhorn_epsilon=0.1, sinkhorn_iterations=3)
    matching = algorithm1.sinkhorn_matching(data, anchors, values)
    expected = ot.match(data.source_relative, relative(target, anchors), 0.1, iterations=3)
    np.testing.assert_allclose(matching.u, expected.u, atol=1e-5)
    np.testing.assert_allclose(matching.v, expected.v, atol=1e-5)
    np.testing.assert_array_equal(matching.to_x, expected.to_x)


@pytest.mark.parametrize("d_target", [6, 8])
def test_tied_anchors_are_images_of_the_source_anchors_under_one_orthogonal_map(d_target):
    source, target = unit_rows(0, 40, 6), unit_rows(1, 40, d_target)
    data = algorithm1.prepare(source, source[:12], target)
    state = algorithm1.init(jax.random.key(0), target, np.arange(4), 12, 0.01)
    first, _ = algorithm1.tied_step(state, 0, data, STEP)
    matching = algorithm1.sinkhorn_matching(data, state.anchors, STEP)
    x, y = np.asarray(source, np.float64)[matching.to_x], np.asarray(target, np.float64)
    added = [(0, 0), (0, d_target - 6)]  # scipy's map is square
    expected = np.pad(source[:12], added) @ orthogonal_procrustes(np.pad(x, added), y)[0]
    np.testing.assert_allclose(first.anchors, expected, atol=1e-4)
    gram = source[:12] @ source[:12].T
    np.testing.assert_allclose(first.anchors @ first.anchors.T, gram, atol=1e-5)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(first.optimiser))  # Adam starts later


def test_frozen_anchors_are_constant():
    state, data = start()
    before = np.asarray(state.anchors)
    for i in range(3):
        state, _ = algorithm1.sphere_step(state, i, data, reading(num_frozen=4))
    np.testing.assert_allclose(state.anchors[:4], before[:4], atol=1e-6)
    assert np.abs(np.asarray(state.anchors[4:]) - before[4:]).max() > 1e-3


@pytest.mark.parametrize(
    "changes, says",
    [({"plan": "medium"}, "plan 'medium'"), ({"ties": "last"}, "no rule of ties 'last'")],
)
def test_unknown_choices_are_named(changes, says, tmp_path):
    x = unit_rows(0, 40, 6)
    problem = sample(x, x, num_anchors=12, num_pairs=4, random_seed=0)
    values = runner.grid(get_config()).settings
    chosen = dataclasses.replace(values.algorithm1, **changes)
    values = dataclasses.replace(values, algorithm1=chosen)
    with pytest.raises(UserError, match=says):
        readings.run(problem, Run(values, Workdir(tmp_path, {}), "a", 0))


@pytest.mark.parametrize("permute", ["source", "target"])
@pytest.mark.parametrize("tied", [True, False])
def test_random_ties_are_broken_anew_in_each_step_and_change_nothing_without_ties(permute, tied):
    """All rows of one space with the same nearest row in the other are tied."""
    source = unit_rows(0, 40, 6)
    target = unit_rows(1, 8, 5) if tied and permute == "source" else source
    source = unit_rows(1, 8, 5) if tied and permute == "target" else source
    data = algorithm1.prepare(source, source[:6], target)
    state = state_at(unit_rows(2, 6, target.shape[1]) if tied else target[:6])
    step = jax.jit(algorithm1.sphere_step, static_argnames="settings")

    def losses(ties):
        settings = reading(permute=permute, ties=ties)
        return {round(float(step(state, i, data, settings)[1]["loss"]), 6) for i in range(4)}

    assert len(losses("first")) == 1
    assert len(losses("random")) == (4 if tied else 1)


def test_started_near_the_true_anchors_it_converges_to_them():
    """Shows that failures on real spaces are not due to the implementation of the step."""
    source = unit_rows(0, 200, 6)
    rotation = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (6, 6)))[0]
    target = source @ rotation
    data = algorithm1.prepare(source, source[:12], target)
    state = state_at(unit(target[:12] + 0.1 * jax.random.normal(jax.random.key(2), (12, 6))))
    step = jax.jit(algorithm1.sphere_step, static_argnames="settings")
    for i in range(200):
        state, _ = step(state, i, data, STEP)
    cosine = jnp.sum(state.anchors * target[:12], axis=1)
    assert float(cosine.min()) > 0.999
    np.testing.assert_array_equal(algorithm1.discretise(state.anchors, target), np.arange(12))


def test_matched_anchors_are_the_partners_in_the_best_one_to_one_match():
    """Two anchors of one nearest row are given two rows."""
    x = unit_rows(3, 30, 4)
    problem = sample(x, x, num_anchors=9, num_pairs=2, random_seed=0)
    partners = problem.truth[problem.anchors]
    anchors = problem.target[partners]
    near = unit(anchors.at[1].add(4 * anchors[0]))
    np.testing.assert_array_equal(algorithm1.matched(problem, near), partners)
    assert algorithm1.discretise(near, problem.target)[1] == partners[0]
