import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchor_opt.problem import Problem, sample
from common.errors import UserError


def draw(n=30, num_anchors=10, num_seeds=4, random_seed=0):
    rng = np.random.default_rng(1)
    fixed = rng.normal(size=(n, 3))
    moving = rng.normal(size=(n, 2))
    problem = sample(
        fixed, moving, num_anchors=num_anchors, num_seeds=num_seeds, random_seed=random_seed
    )
    return fixed, moving, problem


@given(st.integers(0, 50))
def test_truth_undoes_the_shuffle_and_seeds_are_parallel(random_seed):
    _, moving, problem = draw(random_seed=random_seed)
    np.testing.assert_array_equal(problem.moving[problem.truth], moving)
    np.testing.assert_array_equal(problem.truth[problem.fixed_seeds], problem.seeds)
    assert len(set(problem.anchors)) == 10


def test_anchors_do_not_depend_on_which_space_is_fixed():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    first = sample(a, b, num_anchors=5, num_seeds=2, random_seed=3)
    second = sample(b, a, num_anchors=5, num_seeds=2, random_seed=3)
    np.testing.assert_array_equal(first.anchors, second.anchors)


@given(st.integers(0, 50), st.integers(4, 30))
def test_frequent_rows_are_the_same_words_but_do_not_tell_which(random_seed, count):
    _, _, problem = draw(random_seed=random_seed)
    rows, moving_rows = problem.frequent(count)
    assert len(set(rows)) == len(rows) == len(moving_rows) == count
    assert set(problem.truth[rows]) == set(moving_rows)
    np.testing.assert_array_equal(rows[:4], problem.fixed_seeds)
    np.testing.assert_array_equal(moving_rows[:4], problem.seeds)
    np.testing.assert_array_equal(moving_rows[4:], np.sort(moving_rows[4:]))
    others = set(range(30)) - set(problem.fixed_seeds)
    assert set(rows[4:]) == set(sorted(others)[: count - 4])  # the most frequent


@pytest.mark.parametrize(("num_anchors", "num_seeds"), [(31, 4), (10, 11), (10, -1), (0, 0)])
def test_impossible_numbers(num_anchors, num_seeds):
    with pytest.raises(UserError, match="do not fit"):
        draw(num_anchors=num_anchors, num_seeds=num_seeds)


def test_no_seeds_are_a_problem_too():
    _, _, problem = draw(num_seeds=0)
    assert len(problem.seeds) == len(problem.fixed_seeds) == 0
    rows, moving_rows = problem.frequent(7)
    assert list(rows) == list(range(7)) and set(problem.truth[:7]) == set(moving_rows)


def test_unpaired_spaces():
    with pytest.raises(UserError, match="30 and 29 rows"):
        sample(np.ones((30, 2)), np.ones((29, 2)), num_anchors=3, num_seeds=1, random_seed=0)


@pytest.mark.parametrize(("noise", "wrong"), [(0.0, 0), (0.25, 1), (1.0, 4)])
def test_noise_is_the_share_of_wrong_seeds(noise, wrong):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    problem = sample(a, b, num_anchors=10, num_seeds=4, random_seed=0, noise=noise)
    assert (problem.truth[problem.fixed_seeds] != problem.seeds).sum() == wrong
    assert len(set(problem.seeds)) == 4


def test_a_share_of_wrong_seeds_that_is_none():
    with pytest.raises(UserError, match="from 0 to 1"):
        sample(np.ones((9, 2)), np.ones((9, 2)), num_anchors=3, num_seeds=1, random_seed=0, noise=2)


def test_frequent_rows_of_unequal_spaces_of_which_no_truth_is_known():
    seeds = np.array([[7, 2], [1, 5]])
    problem = Problem(np.ones((9, 2)), np.ones((30, 3)), seeds[:, 0], seeds[:, 1])
    fixed, moving = problem.frequent(12)
    np.testing.assert_array_equal(fixed, [7, 1, 0, 2, 3, 4, 5, 6, 8])
    assert list(moving[:2]) == [2, 5] and sorted(moving) == list(range(12))
    assert list(moving[2:]) != sorted(moving[2:])  # an order would tell who belongs to whom
    assert [len(rows) for rows in problem.frequent(1)] == [2, 2]  # seeds all count
    assert problem.most_rows == 30
