"""The data of word alignment: two word spaces and a dictionary between them."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from common.data.sets import dictionary
from common.data.sets.dictionary import Lookup
from common.data.space import Space
from common.errors import check_choice, check_count
from common.spaces import paired_spaces

SPLITS = ("test", "validation")


class BilingualData(NamedTuple):
    """Two word spaces and a dictionary.

    Attributes:
      names: name or path of the source space, the target space and the dictionary.
      source: words and raw vectors of the source space.
      target: words and raw vectors of the target space.
      dictionary: pairs of rows, from which training and validation pairs are taken.
      test: test pairs; None if these are taken from `dictionary`.
      proxy: whether a space by name takes the place of one of the paper's.
    """

    names: tuple[str, str, str]
    source: Space
    target: Space
    dictionary: Lookup
    test: Lookup | None
    proxy: bool

    @property
    def title(self) -> str:
        """Names the data in tables and rows."""
        return f"{self.names[0]} -> {self.names[1]}, {Path(self.names[2]).name}"


def load(
    names: tuple[str, str, str], test: str = "", *, max_rows: int, cache: Path
) -> BilingualData:
    """Reads two spaces and their dictionary.

    Args:
      names: source space, target space and dictionary, each by name or by the path of its file.
      test: dictionary of the test pairs, if they are not taken from the other one.
      max_rows: words of each space, the most frequent first; all others are left out.
      cache: the cache directory.

    Raises:
      UserError: unknown names, or files that can't be read.
    """
    spaces = [paired_spaces.load_space(name, cache, max_rows=max_rows) for name in names[:2]]
    # `max_rows` of the loader is of files alone.
    source, target = (Space(space.words[:max_rows], space.vectors[:max_rows]) for space in spaces)
    known, *tests = [
        dictionary.lookup(dictionary.load(name, cache, source.words), source.words, target.words)
        for name in (names[2], test)
        if name
    ]
    return BilingualData(
        names=names,
        source=source,
        target=target,
        dictionary=known,
        test=tests[0] if tests else None,
        proxy=not paired_spaces.SPACES.keys().isdisjoint(names[:2]),
    )


class Split(NamedTuple):
    """Training pairs, source rows to translate, and their translations, padded with -1."""

    train: Int[np.ndarray, "k 2"]
    queries: Int[np.ndarray, " q"]
    translations: Int[np.ndarray, "q g"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
    """How a dictionary is split.

    Attributes:
      num_validation: number of validation pairs.
      num_test: most words that are to be translated.
      split: the part they are from, 'test' or 'validation'.
      best_translation: whether training and validation pairs are of the first translation of each
        word alone, which is the best one in the dictionaries that have names. All translations of a
        word that is to be translated are correct.
    """

    num_validation: int
    num_test: int
    split: str
    best_translation: bool


def split(data: BilingualData, num_pairs: int, random_seed: int, sizes: Sizes) -> Split:
    """Splits a dictionary by source words.

    Smaller training sets are the first of the `num_pairs` training pairs, so that all of them are
    measured on the same words.

    Raises:
      UserError: the dictionary is too small, or `sizes.split` is neither 'test' nor 'validation'.
    """
    check_choice("split", sizes.split, SPLITS)
    rng = np.random.default_rng(random_seed)
    known = data.dictionary.pairs
    if sizes.best_translation:
        known = known[np.unique(known[:, 0], return_index=True)[1]]
    parts = dictionary.split(known, num_pairs, sizes.num_validation, rng)
    asked = parts.validation if sizes.split == "validation" else parts.test
    asked = data.dictionary.pairs[np.isin(data.dictionary.pairs[:, 0], asked[:, 0])]
    if data.test and sizes.split == "test":
        asked = data.test.pairs
    queries, translations = dictionary.gold_sets(asked)
    chosen = rng.permutation(len(queries))[: sizes.num_test]
    check_count("The number of words to translate", len(chosen))
    return Split(parts.train, queries[chosen], translations[chosen])
