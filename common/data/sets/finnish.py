"""Finnish words with floret vectors, and English words with the vectors of their translations.

floret (Boyd and Warmerdam 2022) stores a table E of m rows instead of a vector for each word. The
features g of a word w are <w> itself, with its brackets, and the n-grams of 4 and 5 characters of
<w>. Each feature has two hashes, h_1 and h_2, and the word's vector is

  x_w = mean over g and k of E[h_k(g) mod m].

So there is a vector for every word. `finnish` has them for the 50,000 words that are most frequent,
and for all other words of the frequency list that translate an English one. `finnish_by_english`
has English words as names, each with the vector of its Finnish translation, so that it pairs with
the English spaces by name. E has m = 50,000 rows of dimension 300 and was trained on mC4.
"""

import io
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import mmh3
import numpy as np
import scipy.sparse
import tensorflow_datasets as tfds
from jaxtyping import Float

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_words
from common.data.packages import PACKAGES, Package, read_member
from common.data.sets import freedict, word_frequency
from common.data.sets.freedict import WordPairs
from common.data.sets.word_frequency import is_word
from common.progress import progress_bar

NAME = "finnish"
BY_ENGLISH = "finnish_by_english"
MEMBER = "spacy_fi_experimental_web_md/fi_experimental_web_md-0.15.0/vocab/vectors"
NUM_FREQUENT = 50_000
WORD = re.compile("[a-zåäöšž]{3,}")  # of the Finnish alphabet
# The settings with which the vectors were trained, from vectors.cfg in the package.
LENGTHS = (4, 5)
SEED = 2166136261
MASK = (1 << 32) - 1


class FinnishWords(PackageBuilder):
    """Names and vectors, most frequent Finnish word first; one builder config for each space."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in (NAME, BY_ENGLISH))

    def _source(self) -> tuple[Package, dict]:
        return PACKAGES[NAME], {"word": TEXTS, "vector": array_column((300,), np.float32)}

    def _table(self) -> Table:
        pairs = freedict.load(freedict.FINNISH, self._cache)
        words = vocabulary(word_frequency.most_frequent("fi", self._cache), pairs)
        names = words
        if self._config_name == BY_ENGLISH:
            english = filter(is_word, word_frequency.most_frequent("en", self._cache))
            name_of = one_to_one(pairs, english, words)
            words = [word for word in words if word in name_of]
            names = [name_of[word] for word in words]
        return {"word": names, "vector": floret(words, load_table(self._cache))}


load = partial(read_words, FinnishWords)  # NAME or BY_ENGLISH, cache -> Space


def load_table(cache: Path) -> Float[np.ndarray, "rows dimensions"]:
    """Returns the rows of the table E; raises as `packages.fetch`."""
    return np.load(io.BytesIO(read_member(PACKAGES[NAME], cache, MEMBER)), allow_pickle=False)


def vocabulary(frequent: Sequence[str], pairs: WordPairs, count: int = NUM_FREQUENT) -> list[str]:
    """The words of three Finnish letters or more that are the first `count` or a translation."""
    words = [word for word in frequent if WORD.fullmatch(word)]
    translations = {finnish for _, finnish in pairs}
    return words[:count] + [word for word in words[count:] if word in translations]


def one_to_one(pairs: WordPairs, english: Iterable[str], finnish: Iterable[str]) -> dict[str, str]:
    """Finnish word -> the most frequent English word of which it is the best translation.

    Pairs are (English, Finnish), best translation first; English words most frequent first.
    """
    allowed = set(finnish)
    best: dict[str, str] = {}
    for word, translation in pairs:
        if translation in allowed:
            best.setdefault(word, translation)
    english_of: dict[str, str] = {}
    for word in english:
        if word in best:
            english_of.setdefault(best[word], word)
    return english_of


def floret(words: Sequence[str], table: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n d"]:
    """Returns the vectors of any words: means of rows of the table E, in the type of E."""
    rows_of: dict[str, list[int]] = {}  # by feature: most features are in many words
    rows, ends = [], [0]
    for word in progress_bar(words, desc="hashing Finnish words", unit="word", delay=2):
        for feature in features(word):
            if feature not in rows_of:
                rows_of[feature] = [h % len(table) for h in hashes(feature)]
            rows += rows_of[feature]
        ends.append(len(rows))
    counts = np.diff(ends)
    weights = np.repeat(1 / counts, counts).astype(table.dtype)
    mean = scipy.sparse.csr_array((weights, rows, ends), shape=(len(words), len(table)))
    return mean @ table


def features(word: str) -> list[str]:
    """Returns a word between brackets, and its n-grams; if short, it is one of these itself."""
    word = f"<{word}>"
    return [word] + [word[i : i + n] for n in LENGTHS for i in range(len(word) - n + 1)]


def hashes(feature: str) -> list[int]:
    """Returns the hashes of a feature: the lowest 32 bits of MurmurHash3_x64_128, and the next."""
    low, _ = mmh3.hash64(feature.encode(), SEED, signed=False)
    return [low & MASK, low >> 32]
