"""A text corpus as word numbers: vocabulary by frequency, frequent words thinned out."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.errors import UserError

WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")  # of lower-cased text


class Corpus(NamedTuple):
    """Texts as word numbers.

    Attributes:
      words: the vocabulary, most frequent first.
      share: of each in all words of the vocabulary.
      tokens: word numbers in the order of the texts; `gap` times -1 around each text.
    """

    words: list[str]
    share: Float[np.ndarray, " V"]
    tokens: Int[np.ndarray, " n"]


def build(
    texts: Sequence[str], *, num_words: int, subsample: float, gap: int, random_seed: int
) -> Corpus:
    """Numbers the words of texts.

    Words outside the vocabulary are taken out, and each other one with probability
    1 - sqrt(subsample / share), before windows are laid (Mikolov et al. 2013, section 2.3).

    Args:
      texts: in any order.
      num_words: of the vocabulary; fewer if there are fewer.
      subsample: share of a word above which it is thinned out; 0: keep all.
      gap: places between two texts, so that no window reaches over.
      random_seed: of the thinning.

    Raises:
      UserError: texts of fewer than two words.
    """
    counts = Counter(word for text in texts for word in WORD.findall(text.lower()))
    counts = counts.most_common(num_words)
    if len(counts) < 2:
        raise UserError("The texts have fewer than two different words: give longer ones.")
    words = [word for word, _ in counts]
    share = np.array([count for _, count in counts], np.float64)
    share /= share.sum()
    keep = np.minimum(1.0, np.sqrt(subsample / share)) if subsample else np.ones(len(share))
    rng = np.random.default_rng(random_seed)
    space = np.full(gap, -1, np.int32)
    parts = [space]
    for found in number(texts, words):
        parts += [found[rng.random(len(found)) < keep[found]], space]
    return Corpus(words, share, np.concatenate(parts))


def number(texts: Sequence[str], words: Sequence[str]) -> list[Int[np.ndarray, " n"]]:
    """The word numbers of each text in a given vocabulary, others left out."""
    row_of = {word: i for i, word in enumerate(words)}
    return [
        np.array([row_of[word] for word in WORD.findall(text.lower()) if word in row_of], np.int32)
        for text in texts
    ]


def members(
    tokens: Int[np.ndarray, " n"], gap: int
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """The text, from 0, and the word number of each place of a corpus that has a word."""
    empty = tokens < 0
    return np.cumsum(empty)[~empty] // gap - 1, tokens[~empty]
