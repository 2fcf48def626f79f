import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from common.errors import UserError
from common.linear import preprocess, unit
from isthmus import search
from isthmus.search import clusters, goat, initialization
from isthmus.search.self_learning import Data
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
    [(15, 300, ["pairs", "goat"]), (15, 299, ["pairs"]), (0, 300, [])],
)
def test_goat_is_a_candidate_if_there_are_pairs_and_few_rows(
    monkeypatch, num_pairs, max_rows, expected
):
    source, target, order = skewed_spaces()
    monkeypatch.setattr(initialization, "MAX_GOAT_ROWS", max_rows)
    data = Data(source, target, order[:num_pairs], np.arange(num_pairs), jax.random.key(0))
    every = initialization.candidates(data, FEWER, goat.Settings(steps=2))
    first = dict(itertools.takewhile(lambda candidate: candidate[0] != "profiles", every))
    assert list(first) == expected
    if "goat" in first:
        np.testing.assert_allclose(first["goat"] @ first["goat"].T, np.eye(10), atol=1e-4)


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


@pytest.mark.parametrize("settings", [initialization.GroupSettings, search.Steps])
def test_settings_without_a_power_are_refused_by_every_experiment(settings):
    with pytest.raises(UserError, match="give at least one power"):
        settings(group_reweights=())


@given(st.integers(0, 1_000))
@tries(max_examples=10)
def test_the_assignment_of_small_matrices_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    a, b = (z + z.T for z in rng.normal(size=(2, 5, 5)).astype(np.float32))
    linear = 3 * rng.normal(size=(5, 5)).astype(np.float32)
    for added in (0 * linear, linear):

        def value(p, added=added):
            return np.sum(a * b[np.ix_(p, p)]) + 2 * added[np.arange(5), p].sum()

        best = max(value(np.array(p)) for p in itertools.permutations(range(5)))
        problem = (a[None], b[None], added[None])
        (p,) = clusters.assign(jax.random.key(seed), *problem, restarts=60, swaps=20)
        np.testing.assert_allclose(value(np.asarray(p)), best, rtol=1e-5)


def test_separated_clusters_have_the_centres_of_k_means():
    rng = np.random.default_rng(0)
    middle = np.eye(4, 6)[rng.permutation(np.repeat(np.arange(4), 30))]
    x = unit(jnp.asarray(middle + 0.05 * rng.normal(size=(120, 6)), jnp.float32))
    centres = clusters.sample_centres(jax.random.key(0), x, 4, 20, 120)
    expected = KMeans(4, n_init=10, random_state=0).fit(x).cluster_centers_
    distance = np.linalg.norm(np.asarray(centres)[:, :, None] - expected, axis=3).min(axis=1)
    # Not every sample begins with a row of each cluster.
    assert np.min(distance.max(axis=1)) < 1e-5
