import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from common import alignment
from isthmus.estimator import AlignerTransformer

ORDER = "check_methods_sample_order_invariance"


# The checks of scikit-learn use a Y of one column that contains zeros, which 'unit' refuses.
@pytest.mark.slow
@parametrize_with_checks(
    [AlignerTransformer(normalise=("center",))],
    expected_failed_checks=lambda _: {ORDER: "it asks for 1e-7, where rows have float32"},
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def spaces():
    """Rows of 6 dimensions, and a noisy linear image of them in 8 dimensions."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 6))
    return x + 1, x @ rng.normal(size=(6, 8)) + 0.05 * rng.normal(size=(60, 8)) - 2


def test_it_gives_the_results_of_the_aligner(spaces):
    x, y = spaces
    estimator = AlignerTransformer()
    transformed = estimator.fit_transform(x, y)
    aligner = alignment.fit("procrustes", x, y)
    np.testing.assert_allclose(transformed, aligner.apply(x), atol=1e-5)
    target = estimator.transform_target(y)
    np.testing.assert_allclose(target, aligner.normalise_target(y), atol=1e-6)
    assert estimator.n_features_in_ == 6
    assert estimator.get_feature_names_out()[7] == "alignertransformer7"
    cosines = np.sum(transformed * target, axis=1) / np.linalg.norm(transformed, axis=1)
    assert estimator.score(x, y) == pytest.approx(cosines.mean(), abs=1e-5)
    assert cosines.mean() > 0.8
    backwards = estimator.transform(x[::-1])[::-1]
    np.testing.assert_allclose(backwards, transformed, atol=1e-6)
