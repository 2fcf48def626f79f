import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from anchor_opt.problem import partly_shared, sample
from anchor_opt.relative import relative, unit_relative
from common.errors import UserError
from common.linear import unit

RNG = np.random.default_rng(1)
A, B = (RNG.normal(size=(30, d)).astype(np.float32) for d in (3, 2))


def draw(num_pairs=4, random_seed=0, **more):
    return sample(A, B, num_anchors=10, num_pairs=num_pairs, random_seed=random_seed, **more)


def test_a_relative_representation_is_the_cosine_with_each_anchor():
    x, anchors = RNG.normal(size=(20, 5)), RNG.normal(size=(7, 5))
    cosines = relative(unit(x), unit(anchors))
    np.testing.assert_allclose(cosines, cosine_similarity(x, anchors), atol=1e-6)
    norms = np.linalg.norm(unit_relative(unit(x), unit(anchors)), axis=1)
    np.testing.assert_allclose(norms, 1, atol=1e-6)


@given(st.integers(0, 50))
def test_truth_inverts_the_shuffle_and_known_pairs_are_true(random_seed):
    problem = draw(random_seed=random_seed)
    np.testing.assert_array_equal(problem.target[problem.truth], B)
    np.testing.assert_array_equal(problem.truth[problem.source_pairs], problem.target_pairs)
    assert len(set(problem.anchors)) == 10


def test_anchors_do_not_depend_on_the_direction():
    back = sample(B, A, num_anchors=10, num_pairs=2, random_seed=3)
    np.testing.assert_array_equal(draw(random_seed=3).anchors, back.anchors)


@pytest.mark.parametrize(("fraction", "wrong"), [(0.0, 0), (0.25, 1), (1.0, 4)])
def test_a_fraction_of_the_known_pairs_is_wrong(fraction, wrong):
    problem = draw(wrong_pair_fraction=fraction)
    assert (problem.truth[problem.source_pairs] != problem.target_pairs).sum() == wrong
    assert len(set(problem.target_pairs)) == 4


@pytest.mark.parametrize(("num_anchors", "num_pairs"), [(31, 4), (10, 11)])
def test_numbers_of_anchors_and_pairs_have_to_fit(num_anchors, num_pairs):
    with pytest.raises(UserError, match="do not fit"):
        sample(A, B, num_anchors=num_anchors, num_pairs=num_pairs, random_seed=0)


@given(st.sampled_from([0.5, 0.6, 0.9, 1.0]), st.integers(0, 30))
def test_rows_that_are_drawn_of_two_spaces_share_the_given_fraction(shared, random_seed):
    sizes = {"num_rows": 15, "num_anchors": 6, "num_pairs": 4}
    problem = partly_shared(A, 2 * A, **sizes, shared=shared, random_seed=random_seed)
    rows = np.flatnonzero(problem.truth >= 0)
    assert len(rows) == max(6, round(shared * 15))
    np.testing.assert_array_equal(2 * problem.source[rows], problem.target[problem.truth[rows]])
    distinct = np.unique(np.concatenate([2 * problem.source, problem.target]), axis=0)
    assert len(distinct) == 30 - len(rows)  # the other rows have no partner
    assert len(set(problem.anchors)) == 6 and (problem.truth[problem.anchors] >= 0).all()
    np.testing.assert_array_equal(problem.truth[problem.source_pairs], problem.target_pairs)
    assert problem.ranks is None


def test_relative_representations_are_invariant_under_rotation():
    x = unit(RNG.normal(size=(20, 5)))
    rotation = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    rotated = relative(x @ rotation, x[:4] @ rotation)
    np.testing.assert_allclose(rotated, relative(x, x[:4]), atol=1e-6)
