"""Downstream tasks: features, subsets of texts, averaged embeddings and classification."""

import numpy as np
import pytest
import scipy.sparse

from common.linear import unit
from embed_match import downstream
from embed_match.embeddings import Embedding

RNG = np.random.default_rng(0)
COUNTS = scipy.sparse.csr_array(RNG.poisson(0.5, size=(50, 12)))
TEXTS = downstream.LabelledTexts(COUNTS, np.arange(50) % 3, np.arange(50) < 30)


def embedding(vectors, missing=()):
    known = ~np.isin(np.arange(len(vectors)), missing)
    return Embedding(np.where(known[:, None], vectors, 0), known, np.nan)


def test_features_are_means_over_known_words():
    space = embedding(RNG.standard_normal((12, 4)), missing=(3,))
    x = downstream.features(TEXTS, unit(space.vectors), space.known)
    for text in range(5):
        words = np.repeat(np.arange(12), COUNTS.toarray()[text])
        rows = [space.vectors[w] / np.linalg.norm(space.vectors[w]) for w in words if w != 3]
        np.testing.assert_allclose(x[text], np.mean(rows, axis=0) if rows else 0, atol=1e-12)


def test_training_texts_and_test_texts_are_disjoint():
    train, test = downstream.split(TEXTS, 0)
    assert len(train) == 24 and len(test) == 16
    assert TEXTS.training[train].all() and not TEXTS.training[test].any()
    assert downstream.split(TEXTS, 1)[0].tolist() != train.tolist()


def test_the_average_of_rotated_copies_is_the_copy():
    base = RNG.standard_normal((12, 4)).astype(np.float32)
    rotation = np.linalg.qr(RNG.standard_normal((6, 6)))[0][:4]
    x, y = embedding(base, missing=(1,)), embedding(3 * base @ rotation, missing=(2,))
    vectors, known = downstream.average(x, y)
    assert known.all() and vectors.shape == (12, 6)
    expected = base / np.linalg.norm(base, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-5)


def test_separable_classes_are_classified_without_error():
    x = np.eye(3)[TEXTS.labels] + 0.1 * RNG.standard_normal((50, 3))
    train, test = downstream.split(TEXTS, 0)
    logits = downstream.logits(x, TEXTS, train, test, 100.0)
    assert logits.shape == (16, 3) and downstream.accuracy(logits, TEXTS, test) == 1
    two = TEXTS._replace(labels=TEXTS.labels % 2)
    logits = downstream.logits(np.eye(2)[two.labels], two, train, test, 100.0)
    assert logits.shape == (16, 2) and downstream.accuracy(logits, two, test) == 1


@pytest.mark.parametrize("of_texts", [False, True])
def test_the_gain_of_an_ensemble_is_over_its_better_member(of_texts):
    counts = scipy.sparse.eye_array(50, format="csr") if of_texts else COUNTS
    texts = downstream.LabelledTexts(counts, TEXTS.labels, TEXTS.training)
    spaces = {name: embedding(RNG.standard_normal((counts.shape[1], 4))) for name in "abc"}
    scores = downstream.ensembles(texts, spaces, 0, 100.0, of_texts=of_texts)
    values = {score[:4]: score.value for score in scores}
    assert len(values) == 3 + 3 * 3 * 2
    for (a, b, method, metric), value in values.items():
        if metric == "gain":
            members = [values[name, name, "member", "accuracy"] for name in (a, b)]
            expected = values[a, b, method, "accuracy"] - max(members)
            assert value == pytest.approx(expected)
    for name, space in spaces.items():
        accuracy = downstream.evaluate(texts, space, 0, 100.0)
        assert values[name, name, "member", "accuracy"] == accuracy
