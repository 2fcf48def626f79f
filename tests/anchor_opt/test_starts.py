import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import starts
from anchor_opt.relative import sample
from common.errors import UserError
from common.linear import preprocess, unit


def problem(noise=0.02):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 10)) * np.linspace(2, 0.5, 10) + rng.exponential(size=(200, 10))
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0][:10]
    y = x @ rotation + noise * rng.normal(size=(200, 12))
    spaces = [preprocess(jnp.asarray(z)) for z in (x, y)]
    return sample(*spaces, num_anchors=20, num_pairs=0, random_seed=0)


def candidates(task, name):
    fewer = {"steps": 60, "num_clusters": 6, "anneal_epsilon": (0.06, 0.03)}
    settings = starts.Settings(name=name, epsilon=(0.02, 0.03), **fewer)
    rows, target_rows = task.most_frequent(200)
    return starts.candidates([(task.source[rows], task.target[target_rows])], settings, 0)


@pytest.mark.parametrize("name", starts.STARTS)
def test_candidates_are_sorted_by_cost_and_reproducible(name):
    task = problem()
    found = candidates(task, name)
    assert 1 <= len(found) <= 2
    assert [c.cost for c in found] == sorted(c.cost for c in found)
    for candidate in found:
        assert candidate.covariance.shape == (10, 12)
        assert np.isfinite(np.asarray(candidate.covariance)).all()
        assert 0 <= candidate.cost < 1.2
    again = candidates(task, name)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one.covariance, other.covariance)


@pytest.mark.parametrize("name", ["gromov", "annealed", "wasserstein_procrustes"])
def test_a_rotation_is_found_without_known_pairs(name):
    task = problem()
    best = candidates(task, name)[0]
    left, _, right = np.linalg.svd(best.covariance, full_matrices=False)
    nearest = np.argmax(unit(task.source @ (left @ right)) @ task.target.T, axis=1)
    assert (nearest == task.truth).mean() > 0.9


def test_the_cost_is_lower_for_a_rotation_than_for_unrelated_spaces():
    task = problem()
    other = np.random.default_rng(5).normal(size=(200, 12))
    unrelated = task._replace(target=preprocess(jnp.asarray(other)))
    right, wrong = (candidates(t, "gromov")[0].cost for t in (task, unrelated))
    assert right < 0.5 * wrong


def test_candidates_do_not_depend_on_the_true_pairing():
    task = problem()
    truth = np.random.default_rng(4).permutation(task.truth)
    first = candidates(task, "gromov")[0]
    second = candidates(task._replace(truth=truth), "gromov")[0]
    np.testing.assert_array_equal(first.covariance, second.covariance)


def test_an_unknown_start_is_named():
    with pytest.raises(UserError, match="no start 'magic'"):
        candidates(problem(), "magic")
