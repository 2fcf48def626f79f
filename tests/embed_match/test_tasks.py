"""Features, draws and ensembles of the downstream tasks, and the correlation over pairs."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from embed_match import tasks
from embed_match.correlation import _correlation
from embed_match.embeddings import Embedding

RNG = np.random.default_rng(0)
COUNTS = scipy.sparse.csr_array(RNG.poisson(0.5, size=(50, 12)))
TASK = tasks.Task(COUNTS, np.arange(50) % 3, np.arange(50) < 30)


def embedding(vectors, missing=()):
    known = ~np.isin(np.arange(len(vectors)), missing)
    return Embedding(np.where(known[:, None], vectors, 0), known, np.nan)


def test_features_are_means_of_known_words():
    space = embedding(RNG.standard_normal((12, 4)), missing=(3,))
    x = tasks.features(TASK, tasks.unit(space), space.known)
    for text in range(5):
        words = np.repeat(np.arange(12), COUNTS.toarray()[text])
        rows = [space.vectors[w] / np.linalg.norm(space.vectors[w]) for w in words if w != 3]
        np.testing.assert_allclose(x[text], np.mean(rows, axis=0) if rows else 0, atol=1e-12)


def test_no_text_is_both_trained_and_tested_on():
    train, test = tasks.draw(TASK, 0)
    assert len(train) == 24 and len(test) == 16
    assert TASK.training[train].all() and not TASK.training[test].any()
    assert tasks.draw(TASK, 1)[0].tolist() != train.tolist()


def test_an_average_of_rotated_copies_is_the_copy():
    base = RNG.standard_normal((12, 4)).astype(np.float32)
    rotation = np.linalg.qr(RNG.standard_normal((6, 6)))[0][:4]
    a, b = embedding(base, missing=(1,)), embedding(3 * base @ rotation, missing=(2,))
    table, known = tasks.average(a, b)
    assert known.all() and table.shape == (12, 6)
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    np.testing.assert_allclose(table @ table.T, unit @ unit.T, atol=1e-5)


def test_classes_are_told_apart_where_they_can_be():
    x = np.eye(3)[TASK.labels] + 0.1 * RNG.standard_normal((50, 3))
    train, test = tasks.draw(TASK, 0)
    logits = tasks.scores(x, TASK, train, test, 100.0)
    assert logits.shape == (16, 3) and tasks.accuracy(logits, TASK, test) == 1
    two = TASK._replace(labels=TASK.labels % 2)
    logits = tasks.scores(np.eye(2)[two.labels], two, train, test, 100.0)
    assert logits.shape == (16, 2) and tasks.accuracy(logits, two, test) == 1


def test_the_correlation_of_a_difference_with_itself_is_one():
    accuracy = dict(zip("abcdef", (0.1, 0.2, 0.4, 0.7, 0.75, 0.95), strict=True))
    pairs = list(itertools.combinations(accuracy, 2))
    distance = {(a, b): {"l2": abs(accuracy[a] - accuracy[b])} for a, b in pairs}
    found = _correlation(accuracy, distance, 100)
    assert [found[name] for name in ("mean", "low", "high")] == pytest.approx([1, 1, 1])
    noise = {pair: {"l2": float(RNG.random())} for pair in pairs}
    found = _correlation(accuracy, noise, 100)
    assert found["low"] < found["mean"] < found["high"]
