import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from anchor_opt.relative import preprocess, relative, unit, unit_relative


def test_relative_is_the_cosine_with_each_anchor():
    rng = np.random.default_rng(0)
    x, anchors = rng.normal(size=(20, 5)), rng.normal(size=(7, 5))
    found = relative(unit(x), unit(anchors))
    np.testing.assert_allclose(found, cosine_similarity(x, anchors), atol=1e-6)
    norms = np.linalg.norm(unit_relative(unit(x), unit(anchors)), axis=1)
    np.testing.assert_allclose(norms, 1, atol=1e-6)


def test_relative_is_invariant_under_rotation():
    rng = np.random.default_rng(1)
    x = unit(rng.normal(size=(20, 5)))
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    np.testing.assert_allclose(
        relative(x @ rotation, x[:4] @ rotation), relative(x, x[:4]), atol=1e-6
    )


def test_preprocess_by_hand():
    x = np.array([[3.0, 0.0], [0.0, 5.0]])
    expected = np.array([[1.0, -1.0], [-1.0, 1.0]]) / np.sqrt(2)
    np.testing.assert_allclose(preprocess(x), expected, atol=1e-6)
