"""Corpora, reviews and sentences; test_known_data.py has what the packages hold."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from common.data.sets import corpus, reviews
from common.errors import UserError
from common.spaces import sentences


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


def test_interleaved_texts_alternate_between_classes():
    texts = reviews.LabelledTexts(["a", "b", "c", "d", "e"], np.array([0, 0, 1, 1, 1]))
    interleaved = texts.interleaved()
    assert interleaved.texts == ["a", "c", "b", "d", "e"]
    assert interleaved.labels.tolist() == [0, 1, 0, 1, 1]


def test_marks_out_of_ten_become_stars_and_leave_the_text():
    texts = ["Bad. 1/10", "7.5 out of 10, good", "A 9 /10!", "0/10"]
    texts += ["11/10", "3/10 or 4/10", "9/11"]  # are left out
    rated = reviews.with_stars(texts)
    assert rated.texts == ["Bad.", ", good", "A !", ""]
    assert rated.labels.tolist() == [1, 4, 5, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He said \"stop!\" (loudly.) 'Why?' she asked", 4),
        ("Mr. Blair met Dr. No vs. J. K. Rowling of the U.S. team. They left.", 2),
        ("wait... what?!? no.5 costs 3.50, e.g. at imdb.com. the end .", 4),
        ("a headline\nand a  paragraph .\n\n it goes on", 3),
        ("\n \n", []),
        ("", []),
    ],
)
def test_a_text_is_split_where_sentences_end(text, expected):
    parts = sentences.split(text)
    assert parts == expected if isinstance(expected, list) else len(parts) == expected


ALPHABET = st.sampled_from(["Mr", "A", "a", "é", "5", *" .!?…\"'”)(\n\t\u2028,-"])


@hypothesis.given(st.lists(ALPHABET).map("".join))
def test_sentences_are_the_text_without_white_space(text):
    parts = sentences.split(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in parts)


@hypothesis.given(st.lists(ALPHABET).map("".join), st.lists(ALPHABET).map("".join))
def test_lines_are_split_one_by_one(first, second):
    both = sentences.split(f"{first}\n{second}")
    assert both == sentences.split(first) + sentences.split(second)
