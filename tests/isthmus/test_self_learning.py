import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import csls, multi_step
from common.errors import UserError
from isthmus import search
from isthmus.search import chance_agreement, refinement, self_learning
from isthmus.search.self_learning import Data, GroupedSettings, Settings
from tests.samples import csls_scores, shuffled_copy

SETTINGS = Settings(patience=5)


def fitted_coordinates(x, y, rows, partners):
    """Unit rows of both spaces in the common coordinates of the maps fitted to some pairs."""
    left, values, right = np.linalg.svd(x[rows].T @ y[partners])
    scale = np.sqrt(values / values[0])
    spaces = x @ (left[:, : len(scale)] * scale), y @ (right[: len(scale)].T * scale)
    return [z / np.linalg.norm(z, axis=1, keepdims=True) for z in spaces]


def data_of(spaces, pairs):
    source, target, truth = spaces
    return Data(source, target, pairs, truth[pairs], jax.random.key(0))


def learn(data, settings=SETTINGS, steps=30):
    """The last state and the metrics of every step."""
    state, metrics = self_learning.state_of_pairs(data), []
    step = jax.jit(self_learning.step, static_argnames="settings")
    while len(metrics) < steps and state.stalled < settings.patience:
        state, metrics_of_step = step(state, len(metrics), data, settings)
        metrics.append(metrics_of_step)
    return state, metrics


@pytest.mark.parametrize("d_target", [20, 30])
def test_a_rotation_is_found_from_few_pairs(d_target):
    spaces = shuffled_copy(d_target=d_target)
    data, truth = data_of(spaces, np.arange(8)), spaces[2]
    state, metrics = learn(data)
    assert state.steps == len(metrics)
    matches = csls.matches(*self_learning.coordinates(state.maps, data))
    assert (np.asarray(matches.to_target) == truth).mean() > 0.99
    # Wrong pairs lead to matches that contradict each other, by which failure is detected.
    wrong_pairs = (truth[data.source_pairs] + 1) % len(truth)
    wrong, metrics_of_wrong = learn(data._replace(target_pairs=wrong_pairs))
    assert metrics[-1]["objective"] > 1.2 * metrics_of_wrong[-1]["objective"]
    assert self_learning.agreement(state, data, SETTINGS) > 0.95
    assert self_learning.agreement(wrong, data, SETTINGS) < 0.85


def test_the_agreement_is_that_of_two_halves_of_the_mutual_matches():
    x, y, truth = shuffled_copy()
    data = data_of((x, y, truth), np.arange(0))
    state = self_learning.initial_state(multi_step.fit_covariance(x[:90].T @ y[30:120], 1.0))
    matches = csls.matches(*self_learning.coordinates(state.maps, data), neighbours=10)
    mutual = np.flatnonzero(matches.mutual)
    to_target = np.asarray(matches.to_target)
    half = np.asarray(jax.random.bernoulli(jax.random.key(0), shape=(len(x),)))
    right = 0
    for part in (half, ~half):
        rows = mutual[part[mutual]]
        z, w = fitted_coordinates(x, y, rows, to_target[rows])
        others = mutual[~part[mutual]]
        right += (csls_scores(z, w, 10)[others].argmax(1) == to_target[others]).sum()
    expected = right / len(mutual)
    assert 0.1 < expected < 0.9
    np.testing.assert_allclose(
        self_learning.agreement(state, data, SETTINGS), expected, atol=2 / len(mutual)
    )


@pytest.mark.parametrize(
    ("chances", "highest", "made"),
    [([0.2, 0.1, 0.5, 0.3], 0.5, 4), ([0.2, 0.7, 0.9], 0.7, 2), ([0.8, 0.0], 0.8, 1)],
)
def test_the_chance_baseline_is_the_best_of_as_many_searches(chances, highest, made):
    """They end with the first by which an agreement of .8 is not .5 when it is corrected."""
    taken = []
    searches = (taken.append(chance) or chance for chance in chances)
    assert chance_agreement(0.8, searches, threshold=0.5) == highest
    assert taken == chances[:made]


def test_the_validation_leaves_out_the_pairs_that_are_to_be_found_again():
    x, y, truth = shuffled_copy()
    x, y = np.asarray(x), np.asarray(y)
    data = data_of((x, y, truth), np.arange(0))
    rng = np.random.default_rng(0)
    is_pair = rng.random(len(x)) < 0.8
    to_target = np.where(rng.random(len(x)) < 0.7, truth, rng.permutation(truth))
    folds = rng.permutation(len(x))[: 4 * (len(x) // 5)].reshape(4, -1)
    right = 0
    for fold in folds:
        rows = np.setdiff1d(np.flatnonzero(is_pair), fold)
        z, w = fitted_coordinates(x, y, rows, to_target[rows])
        right += ((csls_scores(z[fold], w, 10).argmax(1) == to_target[fold]) & is_pair[fold]).sum()
    expected = right / is_pair[folds].sum()
    assert 0.3 < expected < 0.9
    fraction = refinement.validation(
        data, jnp.asarray(to_target), jnp.asarray(is_pair), folds, SETTINGS
    )
    np.testing.assert_allclose(fraction, expected, atol=2 / is_pair[folds].sum())


@pytest.mark.parametrize("whole", [False, True])
def test_one_group_takes_the_step_of_the_loop(whole):
    # From fewer pairs, matches are near ties, which processors round in different ways.
    data = data_of(shuffled_copy(), np.arange(60))
    settings = GroupedSettings(groups=1, group_rows=len(data.source) if whole else None)
    state = self_learning.state_of_pairs(data)
    grouped, metrics = self_learning.grouped_step(state, 0, data, settings)
    expected, expected_metrics = self_learning.step(state, 0, data, settings)
    np.testing.assert_allclose(metrics["objective"], expected_metrics["objective"], rtol=1e-4)
    products = (s.maps.source @ s.maps.target.T for s in (grouped, expected))
    np.testing.assert_allclose(*products, atol=1e-4)


@pytest.mark.parametrize("cpu", [True, False])
def test_the_covariance_is_that_of_the_matches_of_both_directions(cpu, monkeypatch):
    monkeypatch.setattr(self_learning, "on_cpu", lambda: cpu)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 3)).astype(np.float32), rng.normal(size=(5, 4)).astype(np.float32)
    to_target, to_source = rng.integers(0, 5, 7), rng.integers(0, 3, 5)  # several of one row
    expected = sum(np.outer(x[i], y[j]) for i, j in enumerate(to_target))
    expected += sum(np.outer(x[i], y[j]) for j, i in enumerate(to_source))
    found = self_learning.matched_covariance(x, y, to_target, to_source)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_repeated_pairs_give_finite_maps():
    state = self_learning.state_of_pairs(data_of(shuffled_copy(), np.array([0, 0, 1, 2])))
    assert np.isfinite(np.asarray(state.maps.source)).all()
    assert float(jnp.abs(state.maps.source).max()) < 10


@pytest.mark.parametrize("changes", [{"rounds": 0}, {"whitenings": ()}])
def test_a_fit_without_rounds_or_whitenings_is_a_users_error(changes):
    data = data_of(shuffled_copy(), np.arange(8))
    maps = self_learning.state_of_pairs(data).maps
    with pytest.raises(UserError, match="give at least one of each"):
        refinement.fit(data, maps, refinement.Settings(**changes))


@given(st.integers(0, 50), st.sampled_from([4, 11, 30]))
def test_each_space_is_ranked_by_its_own_frequencies(random_seed, count):
    rng = np.random.default_rng(random_seed)
    ranks = tuple(rng.permuted([np.arange(30)] * 2, axis=1))
    pairs = rng.permutation(30)[:4], rng.permutation(30)[:4]
    rows = np.arange(30, dtype=np.float32)[:, None]
    found = search.most_frequent(Data(rows, rows, *pairs, jax.random.key(0)), ranks, count)
    np.testing.assert_array_equal(found.source_pairs, np.arange(4))
    for taken, known, rank in zip((found.source, found.target), pairs, ranks, strict=True):
        taken = np.asarray(taken)[:, 0].astype(int)
        np.testing.assert_array_equal(taken[:4], known)
        np.testing.assert_array_equal(taken[4:], np.sort(taken[4:]))
        others = sorted(set(range(30)) - set(known), key=lambda row: rank[row])
        assert set(taken[4:]) == set(others[: count - 4])


def test_of_unranked_spaces_the_first_rows_and_all_known_pairs_are_taken():
    spaces = np.arange(9.0)[:, None], np.arange(30.0)[:, None]
    data = Data(*spaces, np.array([7, 1]), np.array([2, 5]), jax.random.key(0))
    found = search.most_frequent(data, None, 12)
    assert found.source[:, 0].tolist() == [7, 1, 0, 2, 3, 4, 5, 6, 8]
    assert found.target[:, 0].tolist() == [2, 5, 0, 1, 3, 4, 6, 7, 8, 9, 10, 11]
    assert [len(x) for x in search.most_frequent(data, None, 1)[:2]] == [2, 2]
