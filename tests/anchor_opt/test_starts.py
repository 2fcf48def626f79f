import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import starts
from anchor_opt.problem import sample
from anchor_opt.relative import preprocess, unit
from configs.anchor_opt.starts import get_config


def problem(noise=0.02):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 10)) * np.linspace(2, 0.5, 10) + rng.exponential(size=(200, 10))
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0][:10]
    y = x @ rotation + noise * rng.normal(size=(200, 12))
    fixed, moving = preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y))
    return sample(fixed, moving, num_anchors=20, num_seeds=0, random_seed=0)


def settings(name, **changes):
    config = get_config().start
    config.name = name
    config.words = (200,)
    config.epsilon = (0.02, 0.03)
    config.steps = 60
    config.clusters = 6
    config.draws = 2
    config.anneal = (0.06, 0.03)
    config.update(changes)
    return config


def share_right(found, task):
    """Of the words, whose images under the candidate's orthogonal map are each other's nearest."""
    left, _, right = np.linalg.svd(found.covariance, full_matrices=False)
    near = np.argmax(unit(task.fixed @ (left @ right)) @ task.moving.T, axis=1)
    return float((near == task.truth).mean())


@pytest.mark.parametrize("name", starts.STARTS)
def test_candidates_are_ranked_and_reproducible(name):
    task = problem()
    found = starts.candidates(task, settings(name), 0)
    assert 1 <= len(found) <= 2
    assert [c.cost for c in found] == sorted(c.cost for c in found)
    for candidate in found:
        assert candidate.covariance.shape == (10, 12)
        assert np.isfinite(np.asarray(candidate.covariance)).all()
        assert 0 <= candidate.cost < 1.2
    again = starts.candidates(task, settings(name), 0)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one.covariance, other.covariance)


@pytest.mark.parametrize("name", ["gromov", "annealed", "wasserstein_procrustes"])
def test_a_rotation_is_found_from_nothing(name):
    task = problem()
    best = starts.candidates(task, settings(name), 0)[0]
    assert share_right(best, task) > 0.9


def test_the_cost_tells_a_rotation_from_unrelated_spaces():
    task = problem()
    other = np.random.default_rng(5).normal(size=(200, 12))
    unrelated = task._replace(moving=preprocess(jnp.asarray(other)))
    right, wrong = (starts.candidates(t, settings("gromov"), 0)[0].cost for t in (task, unrelated))
    assert right < 0.5 * wrong


def test_the_truth_is_not_looked_at():
    """Another pairing of the same two unordered sets of rows gives the same candidates."""
    task = problem()
    truth = np.random.default_rng(4).permutation(task.truth)
    config = settings("gromov")
    first = starts.candidates(task, config, 0)[0]
    second = starts.candidates(task._replace(truth=truth), config, 0)[0]
    np.testing.assert_array_equal(first.covariance, second.covariance)
