import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from anchor_opt.methods.self_learning import Data

from anchor_opt.methods import bootstrap, goat, initialization
from common.errors import UserError
from common.linear import preprocess, unit
from tests.samples import shuffled_copy

FEWER = initialization.Settings(num_clusters=6, num_draws=10, num_restarts=20, swaps=20)


def skewed_spaces(n=300, m=300):
    """A space without a symmetry, a noisy rotated copy with m of the rows, and their true rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 10)) * np.linspace(2, 0.5, 10) + rng.exponential(size=(n, 10))
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0][:10]
    order = rng.permutation(n)[:m]
    y = (x @ rotation + 0.02 * rng.normal(size=(n, 12)))[order]
    return preprocess(jnp.asarray(x)), preprocess(jnp.asarray(y)), order


def candidates(source, target, pairs=()):
    data = Data(source, target, *np.asarray(pairs, int).reshape(-1, 2).T, jax.random.key(0))
    return dict(initialization.candidates(data, FEWER, goat.Settings(steps=2)))


@pytest.mark.parametrize("m", [300, 290])
def test_the_profiles_of_a_rotated_copy_find_most_rows(m):
    source, target, order = skewed_spaces(m=m)
    covariance = candidates(source, target)["profiles"]
    left, _, right = np.linalg.svd(covariance, full_matrices=False)
    nearest = np.argmax(unit(source @ (left @ right)) @ target.T, axis=1)
    assert (nearest[order] == np.arange(m)).mean() > 0.9


def test_candidates_are_named_finite_and_reproducible():
    source, target, order = skewed_spaces()
    first, again = (candidates(source, target, [(order[0], 0)]) for _ in range(2))
    assert list(first)[:4] == ["pairs", "goat", "profiles", "clusters-0"]
    for name, covariance in first.items():
        assert covariance.shape == (10, 12) and np.isfinite(covariance).all()
        np.testing.assert_array_equal(covariance, again[name])


def test_the_sorted_similarities_are_those_of_the_root_of_the_gram_matrix():
    source, _, _ = skewed_spaces(n=40, m=40)
    values, vectors = np.linalg.eigh(np.asarray(source @ source.T, np.float64))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    expected = preprocess(jnp.asarray(np.sort(root, axis=1), jnp.float32))
    np.testing.assert_allclose(initialization.profiles(source, 40), expected, atol=2e-3)


def test_samples_that_contradict_each_other_are_told_apart():
    """The optima between symmetric spaces differ in signs; those of one kind agree."""
    source, target, _ = shuffled_copy(n=300, d=6, d_target=6, noise=0.1)
    modes = initialization.cluster_modes(jax.random.key(0), source, target, FEWER)
    assert 1 <= len(modes) <= 2
    assert sum(len(left) for left, _ in modes) <= FEWER.num_draws * FEWER.num_clusters
    for left, right in modes:
        assert left.shape == right.shape and left.shape[1] == 6
    assert len(modes[0][0]) >= len(modes[-1][0])


@pytest.mark.parametrize(
    ("num_pairs", "max_rows", "expected"),
    [(15, 300, ["pairs", "goat", "profiles"]), (15, 299, ["pairs", "profiles"]), (0, 300, [])],
)
def test_goat_is_a_candidate_if_there_are_pairs_and_few_rows(
    monkeypatch, num_pairs, max_rows, expected
):
    source, target, order = skewed_spaces()
    monkeypatch.setattr(initialization, "MAX_GOAT_ROWS", max_rows)
    data = Data(source, target, order[:num_pairs], np.arange(num_pairs), jax.random.key(0))
    result = dict(
        itertools.islice(
            initialization.candidates(data, FEWER, goat.Settings(steps=2)), 3 if expected else 1
        )
    )
    assert list(result)[: len(expected) or 1] == (expected or ["profiles"])
    if "goat" in result:
        np.testing.assert_allclose(result["goat"] @ result["goat"].T, np.eye(10), atol=1e-4)


@pytest.mark.parametrize("related", [True, False])
def test_groups_grow_until_the_maps_are_right(related):
    source, target, order = skewed_spaces()
    partners = target if related else jax.random.permutation(jax.random.key(0), target)
    right = initialization.Candidate("pairs", source[order].T @ partners)
    data = Data(source, target, *np.zeros((2, 0), int), jax.random.key(0))
    stages = []

    def train(step, state, data, settings, *, stage, **options):
        stages.append(stage)
        return state

    few = initialization.GroupSettings(group_rows=40, group_reweights=(1.0,))
    list(initialization.through_groups([right], data, few, train))
    sizes = ["pairs-geometry-1-7-groups", "pairs-geometry-1-3-groups"]
    assert stages == sizes[: 1 if related else 2]


@pytest.mark.parametrize("settings", [initialization.GroupSettings, bootstrap.Settings])
def test_settings_without_a_power_are_refused_by_every_experiment(settings):
    with pytest.raises(UserError, match="give at least one power"):
        settings(group_reweights=())
