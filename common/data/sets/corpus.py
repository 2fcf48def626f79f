"""Texts as sequences of word ids over a vocabulary in the order of frequency."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.errors import check_count

WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")  # in lower-cased text


class Corpus(NamedTuple):
    """The vocabulary, most frequent first, its frequencies, and word ids, -1 around each text."""

    words: list[str]
    frequencies: Float[np.ndarray, " V"]
    tokens: Int[np.ndarray, " n"]


def build(texts: Sequence[str], *, num_words: int, gap: int) -> Corpus:
    """Builds a vocabulary from texts and encodes them with it, `gap` entries of -1 between two.

    Words outside the vocabulary are removed before context windows are formed.
    UserError: the texts have fewer words, or fewer than two are asked for.
    """
    counts = Counter(word for text in texts for word in WORD.findall(text.lower()))
    check_count("num_words", num_words, len(counts), "different words in the texts", least=2)
    top = counts.most_common(num_words)
    words = [word for word, _ in top]
    frequencies = np.array([count for _, count in top], np.float64)
    frequencies /= frequencies.sum()
    separator = np.full(gap, -1, np.int32)
    tokens = [separator]
    for ids in word_ids(texts, words):
        tokens += [ids, separator]
    return Corpus(words=words, frequencies=frequencies, tokens=np.concatenate(tokens))


def subsampled(corpus: Corpus, threshold: float, random_seed: int) -> Int[np.ndarray, " m"]:
    """The tokens without many frequent words (Mikolov et al. 2013, section 2.3), gaps kept.

    A word of frequency f is removed with probability max(0, 1 - sqrt(threshold / f)).
    """
    keep_prob = np.minimum(1.0, np.sqrt(threshold / corpus.frequencies))
    draws = np.random.default_rng(random_seed).random(len(corpus.tokens))
    return corpus.tokens[(corpus.tokens < 0) | (draws < keep_prob[corpus.tokens])]


def word_ids(texts: Sequence[str], words: Sequence[str]) -> list[Int[np.ndarray, " n"]]:
    """Returns the ids of each text's words in a given vocabulary; other words are left out."""
    id_of = {word: i for i, word in enumerate(words)}
    return [
        np.array([id_of[word] for word in WORD.findall(text.lower()) if word in id_of], np.int32)
        for text in texts
    ]


def text_and_word_ids(
    tokens: Int[np.ndarray, " n"], gap: int
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """Returns, for each occurrence of a word in a corpus, the index of its text and its word id."""
    empty = tokens < 0
    return np.cumsum(empty)[~empty] // gap - 1, tokens[~empty]
