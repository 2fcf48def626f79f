"""Files of texts, and encoding them into files of vectors."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from common.data import array_cache
from common.data.readers import line_files, numpy_files
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.errors import UserError, writing
from common.files import read_npz


def read(path: Path, errors: str = "strict") -> list[str]:
    """Reads texts, one a line; blank lines are left out.

    Raises:
      UserError: a file that is missing, empty or not UTF-8 (see `line_files.lines_of` for
        `errors`).
    """
    texts = [line.strip(" \t") for line in line_files.read_lines(path, errors)]
    if not texts:
        raise UserError(f"{path} is empty: give texts, one a line.")
    return texts


def encode_file(
    name: str,
    source: Path,
    output: Path,
    cache: Path,
    *,
    max_length: int | None = None,
    errors: str = "strict",
    progress: bool = False,
) -> tuple[int, int]:
    """Encodes a file of texts into an `.npz` that `common/data/readers/vector_files.py` reads.

    Vectors are stored by shards in the folder `output`.parts until the output is complete, so that
    a run that was killed resumes.

    Args:
      name: 'minilm', 'mpnet', or the path of a folder with a BERT or an MPNet.
      source: texts, one a line.
      output: gets `vectors` [n, d], unit rows, the texts by `numpy_files.word_arrays`, and
        `recipe`, a hash of all that determines them.
      cache: the cache directory.
      max_length: number of word pieces after which a text is cut; None: the encoder's value.
      errors: see `line_files.lines_of`.
      progress: whether to show a progress bar.

    Returns:
      n and d.

    Raises:
      UserError: texts or an encoder that cannot be read, a text without a vector, or an output that
        cannot be written or exists with other content.
    """
    if output.suffix.lower() != ".npz":
        raise UserError(f"The output {output} is no .npz file: give --output=NAME.npz.")
    texts = read(source, errors)
    files = text_encoders.read_files(name, cache)
    encoder = bert.load(files, name)
    max_length = max_length or encoder.max_length
    hashes = text_encoders.fingerprints(files)
    recipe = [text_encoders.RECIPE_VERSION, hashes, max_length]
    digest = hashlib.sha256(json.dumps([recipe, texts]).encode()).hexdigest()
    shape = len(texts), encoder.network.words.features
    parts = output.with_name(output.name + ".parts")
    if output.exists():
        try:
            same = read_npz(output, ("recipe",))["recipe"] == digest
        except (OSError, ValueError, KeyError):  # not written by this function
            same = False
        if not same:
            raise UserError(
                f"{output} exists and is not what this run would write: delete it or choose another"
                " --output."
            )
        logging.info("%s exists already.", output)
        shutil.rmtree(parts, ignore_errors=True)  # of a run killed after its last write
        return shape
    with writing(output, "--output"):
        parts.mkdir(parents=True, exist_ok=True)

    def compute(shard, bar):
        found = bert.encode(encoder, shard, max_length=max_length, bar=bar)
        invalid = ~(np.linalg.norm(found, axis=1) > 0.5)  # zero or NaN, not of norm 1
        if invalid.any():
            shutil.rmtree(parts)
            raise UserError(
                f"The encoder gives no vector for the text '{shard[invalid.argmax()]}' in {source}:"
                " remove it, or check the encoder's files."
            )
        return found

    vectors = array_cache.load_or_compute_shards(
        parts,
        "part",
        recipe,
        texts,
        compute,
        shard_size=text_encoders.SHARD_TEXTS,
        progress=f"encoding {source.name}" if progress else None,
        unit="text",
    )
    with writing(output, "--output"):
        complete = parts / "complete.npz"
        arrays: dict[str, Any] = {"vectors": vectors, "recipe": digest}
        arrays |= numpy_files.word_arrays(texts)
        np.savez(complete, **arrays)
        os.replace(complete, output)
    shutil.rmtree(parts, ignore_errors=True)
    return shape
