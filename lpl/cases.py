"""What a run aligns: two spaces, a dictionary in their rows, and its split of each random seed."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from ml_collections import ConfigDict

from common.data import dictionary, french, pairs, words
from common.errors import UserError


class Case(NamedTuple):
    """Two spaces and a dictionary.

    Attributes:
      names: of the spaces, 'glove' and 'french' say.
      dictionary: its name.
      words: of both spaces.
      vectors: of both spaces, raw.
      known: the dictionary's rows, of which pairs to train on and to validate are taken.
      test: those of the test dictionary; None where the rest of `known` is for testing.
      standin: whether an embedded space takes the place of the paper's.
    """

    names: tuple[str, str]
    dictionary: str
    words: tuple[list[str], list[str]]
    vectors: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "m e"]]
    known: dictionary.Rows
    test: dictionary.Rows | None
    standin: bool

    @property
    def title(self) -> str:
        """Of its tables and rows."""
        return f"{self.names[0]} -> {self.names[1]}, {Path(self.dictionary).name}"


def load(config: ConfigDict, cache: Path) -> Iterator[Case]:
    """Reads one pair of spaces after the other.

    Raises:
      UserError: lists of unequal length, unknown names, or files that can't be read.
    """
    tests = config.test_dictionaries or ("",) * len(config.sources)
    lists = config.sources, config.targets, config.dictionaries, tests
    if len({len(names) for names in lists}) > 1 or not config.sources:
        raise UserError(
            f"There are {len(config.sources)} sources, {len(config.targets)} targets, "
            f"{len(config.dictionaries)} dictionaries, {len(tests)} test dictionaries: give one of "
            "each for every pair of spaces (test dictionaries may be left out)."
        )
    for source, target, name, test in zip(*lists, strict=True):
        spaces = [pairs.space(space, "", cache, config.max_rows) for space in (source, target)]
        vocabularies = spaces[0].words, spaces[1].words
        found = [
            dictionary.rows(dictionary.load(file, cache, spaces[0].words), *vocabularies)
            for file in (name, test)
            if file
        ]
        embedded = (*words.SPACES, french.NAME)
        yield Case(
            (source, target),
            name,
            vocabularies,
            (spaces[0].vectors, spaces[1].vectors),
            found[0],
            found[1] if test else None,
            source in embedded or target in embedded,
        )


def split(
    case: Case, config: ConfigDict, random_seed: int
) -> tuple[Int[np.ndarray, "k 2"], Int[np.ndarray, " q"], Int[np.ndarray, "q g"]]:
    """Pairs to train on, and source rows to translate with their gold sets.

    The pairs are as many as the largest of `config.sizes`; smaller sizes are their first ones, so
    that all are measured on the same words.

    Raises:
      UserError: a dictionary that is too small.
    """
    rng = np.random.default_rng(random_seed)
    parts = dictionary.split(case.known.pairs, max(config.sizes), config.num_validation, rng)
    asked = parts.test if config.split == "test" else parts.validation
    if case.test and config.split == "test":
        asked = case.test.pairs
    queries, gold = dictionary.gold_sets(asked)
    chosen = rng.permutation(len(queries))[: config.num_test]
    return parts.train, queries[chosen], gold[chosen]
