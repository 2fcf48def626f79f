"""A corpus of texts: numbers of words, and the texts they came from."""

import numpy as np
import pytest

from common.data import corpus, reviews
from common.errors import UserError


def test_a_corpus_by_frequency_with_gaps_between_texts():
    texts = ["The cat, the dog.", "A CAT isn't the dog"]
    read = corpus.build(texts, num_words=3, subsample=0, gap=2, random_seed=0)
    assert read.words == ["the", "cat", "dog"]
    np.testing.assert_allclose(read.share, np.array([3, 2, 2]) / 7)
    assert read.tokens.tolist() == [-1, -1, 0, 1, 0, 2, -1, -1, 1, 0, 2, -1, -1]
    many = corpus.build(["a b"] * 4_000, num_words=2, subsample=0.125, gap=1, random_seed=0)
    kept = np.mean(many.tokens >= 0) / np.mean(many.tokens < 0) / 2
    np.testing.assert_allclose(kept, 0.5, atol=0.05)  # sqrt(.125 / .5)
    with pytest.raises(UserError, match="fewer than two different words"):
        corpus.build(["same same"], num_words=5, subsample=0, gap=1, random_seed=0)


def test_the_texts_of_words_are_known():
    read = corpus.build(["b a a", "", "c a"], num_words=9, subsample=0, gap=2, random_seed=0)
    text, word = corpus.members(read.tokens, gap=2)
    assert text.tolist() == [0, 0, 0, 2, 2]
    assert [read.words[i] for i in word] == ["b", "a", "a", "c", "a"]


def test_words_outside_a_vocabulary_are_left_out():
    found = corpus.number(["The dog, the cat", "none"], ["cat", "the"])
    assert [words.tolist() for words in found] == [[1, 1, 0], []]


def test_texts_come_in_turn():
    texts = reviews.Texts(["a", "b", "c", "d", "e"], np.array([0, 0, 1, 1, 1]))
    turned = texts.in_turn()
    assert turned.texts == ["a", "c", "b", "d", "e"]
    assert turned.labels.tolist() == [0, 1, 0, 1, 1]
