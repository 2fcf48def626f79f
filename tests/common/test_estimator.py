import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from common import alignment
from common.estimator import AlignerTransformer


# The checks hand over Y as one column, zeros among it, which has no direction for 'unit' to keep.
@parametrize_with_checks([AlignerTransformer(normalise=("center",))])
def test_it_is_an_estimator_by_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def spaces():
    """Raw rows of a space of 6 dimensions and, noisy, of another of 8."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 6))
    return x + 1, x @ rng.normal(size=(6, 8)) + 0.05 * rng.normal(size=(60, 8)) - 2


def test_it_is_the_aligner(spaces):
    x, y = spaces
    estimator = AlignerTransformer()
    found = estimator.fit_transform(x, y)
    aligner = alignment.fit("procrustes", x, y)
    np.testing.assert_allclose(found, aligner.apply(x), atol=1e-5)
    np.testing.assert_allclose(estimator.transform_target(y), aligner.normalise_fixed(y), atol=1e-6)
    assert estimator.n_features_in_ == 6
    assert estimator.get_feature_names_out().tolist() == [
        f"alignertransformer{i}" for i in range(8)
    ]
    cosines = np.sum(found * estimator.transform_target(y), axis=1) / np.linalg.norm(found, axis=1)
    assert estimator.score(x, y) == pytest.approx(cosines.mean(), abs=1e-5)
    assert cosines.mean() > 0.8


def test_images_go_back(spaces):
    x, y = spaces
    plain = AlignerTransformer("least_squares", normalise=()).fit(x, y)
    np.testing.assert_allclose(plain.inverse_transform(plain.transform(x)), x, atol=1e-3)
    default = AlignerTransformer().fit(x, y)
    np.testing.assert_allclose(
        default.inverse_transform(default.transform(x)),
        default.aligner_.normalise_moving(x),
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="X has 6 features, the images of transform 8"):
        default.inverse_transform(x)


def test_a_search_in_a_pipeline(spaces):
    x, y = spaces
    pipeline = make_pipeline(StandardScaler(), AlignerTransformer("ridge", ()))
    grid = {"alignertransformer__penalty": [0.01, 1e6]}
    # A penalty of a million leaves the directions, but not their balance.
    search = GridSearchCV(pipeline, grid, cv=2).fit(x, y)
    assert search.best_params_ == {"alignertransformer__penalty": 0.01}
    assert clone(pipeline[1]).get_params() == {"method": "ridge", "normalise": (), "penalty": None}


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"method": "magic"}, lambda x, y: (x, y), "No aligner is called 'magic'"),
        ({"penalty": 1.0}, lambda x, y: (x, y), "No option of 'procrustes' is called 'penalty'"),
        ({"normalise": ("norm",)}, lambda x, y: (x, y), "No normalisation is called 'norm'"),
        ({}, lambda x, y: (x, None), "requires y to be passed"),
        ({}, lambda x, y: (x, y[:, 0]), r"1 feature\(s\) .* minimum of 2"),
        ({}, lambda x, y: (x, y[1:]), "inconsistent numbers of samples"),
        ({}, lambda x, y: (x, y * np.nan), "contains NaN"),
        ({}, lambda x, y: (x * 0, y), "these rows are zero"),
    ],
)
def test_what_a_user_can_mend(spaces, options, change, message):
    with pytest.raises(ValueError, match=message):
        AlignerTransformer(**options).fit(*change(*spaces))


def test_not_fitted_yet(spaces):
    for method in ("transform", "transform_target", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(AlignerTransformer(), method)(spaces[0])
