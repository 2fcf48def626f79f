import numpy as np
import pytest

from common.data.sets import corpus
from common.errors import UserError


def test_words_are_numbered_by_frequency_with_gaps_between_texts():
    texts = ["The cat, the dog.", "A CAT isn't the dog"]
    built = corpus.build(texts, num_words=3, gap=2)
    assert built.words == ["the", "cat", "dog"]
    np.testing.assert_allclose(built.frequencies, np.array([3, 2, 2]) / 7)
    assert built.tokens.tolist() == [-1, -1, 0, 1, 0, 2, -1, -1, 1, 0, 2, -1, -1]
    with pytest.raises(UserError, match="num_words is 5 of 1 different words"):
        corpus.build(["same same"], num_words=5, gap=1)


def test_frequent_words_are_subsampled_with_the_probability_of_word2vec():
    whole = corpus.build(["a b b b"] * 4_000, num_words=2, gap=1)
    tokens = corpus.subsampled(whole, 1 / 3, random_seed=0)
    assert np.sum(tokens < 0) == 4_001
    assert np.sum(tokens == 1) == np.sum(whole.tokens == 1)  # of a frequency of 1 / 4
    kept = np.sum(tokens == 0) / np.sum(whole.tokens == 0)
    np.testing.assert_allclose(kept, 2 / 3, atol=0.05)  # sqrt((1 / 3) / (3 / 4))


def test_each_token_has_the_index_of_its_text():
    built = corpus.build(["b a a", "", "c a"], num_words=3, gap=2)
    text, word = corpus.text_and_word_ids(built.tokens, gap=2)
    assert text.tolist() == [0, 0, 0, 2, 2]
    assert [built.words[i] for i in word] == ["b", "a", "a", "c", "a"]


def test_words_outside_a_vocabulary_are_left_out():
    ids_of_texts = corpus.word_ids(["The dog, the cat", "none"], ["cat", "the"])
    assert [ids.tolist() for ids in ids_of_texts] == [[1, 1, 0], []]
