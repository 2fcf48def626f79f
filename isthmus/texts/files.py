"""Files of texts, and encoding them into files of vectors."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from common.data.readers import column_files, json_files, line_files, numpy_files
from common.encoders import texts as text_encoders
from common.errors import UserError, named, writing
from common.files import read_npz, replacing


def read(
    path: Path, errors: str = "strict", text_column: str = "text", id_column: str | None = None
) -> tuple[list[str], list[str]]:
    """Reads texts, and the ids of a table or of JSON; without any the texts are their own ids.

    Of another file, row i is the text of line i, and a blank line an empty text. UserError: a file
    that is missing, empty or not UTF-8 (see `line_files.lines_of` for `errors`), or a column that
    it has not.
    """
    wanted = {"--text_column": text_column} | ({"--id_column": id_column} if id_column else {})
    if path.name.lower().removesuffix(".gz").endswith(json_files.SUFFIXES):
        columns = json_files.texts(path, list(wanted.values()))
    elif path.suffix.lower() in column_files.SUFFIXES or path.is_dir():
        columns = column_files.texts(path, wanted)
    elif id_column is not None:
        raise UserError(f"{path} has no column '{id_column}': leave out --id_column.")
    else:
        columns = [line_files.read_lines(path, errors, blank=True)]
    texts = [text.strip(" \t") for text in columns[0]]
    blank = [number for number, text in enumerate(texts, 1) if not text]
    if len(blank) == len(texts):
        raise UserError(f"{path} is empty: give texts, one a line.")
    if blank:
        about = "%s has blank lines (%s), which get the vector of an empty text."
        logging.warning(about, path, named(blank))
    return texts, columns[1] if columns[1:] else texts


def encode_file(
    name: str,
    source: Path,
    output: Path,
    cache: Path,
    *,
    max_length: int | None = None,
    errors: str = "strict",
    text_column: str = "text",
    id_column: str | None = None,
) -> tuple[int, int]:
    """Encodes a file of texts (see `read`) into an `.npz` that `vector_files.read` reads.

    The output gets `vectors` [n, d], unit rows, the ids by `numpy_files.word_arrays`, and
    `recipe`, a hash of all that determines them. See `common.encoders.texts.encode` for the name of
    the encoder and for the cache, from which a run that was killed resumes, and
    `line_files.lines_of` for `errors`. Returns n and d. UserError: an invalid text, encoder or
    output, or an output with other content.
    """
    if output.suffix.lower() != ".npz":
        raise UserError(f"The output {output} is no .npz file: give --output=NAME.npz.")
    texts, ids = read(source, errors, text_column, id_column)
    hashes = text_encoders.fingerprints(text_encoders.read_files(name, cache))
    recipe = [text_encoders.RECIPE_VERSION, hashes, max_length, texts]
    recipe += [ids] if id_column else []
    digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
    if output.exists():
        try:
            written = read_npz(output, ("recipe", "vectors"))
            if written["recipe"] == digest:
                logging.info("%s exists already.", output)
                return written["vectors"].shape
        except (OSError, ValueError, KeyError):
            pass  # not written by this function
        raise UserError(
            f"{output} exists and is not what this run would write: delete it or choose another"
            " --output."
        )
    with writing(output, "--output"):  # before the work begins
        output.parent.mkdir(parents=True, exist_ok=True)
    vectors = text_encoders.encode(name, texts, cache, max_pieces=max_length)
    arrays: dict[str, Any] = {"vectors": vectors, "recipe": digest, **numpy_files.word_arrays(ids)}
    with writing(output, "--output"), replacing(output) as file:
        np.savez(file, **arrays)
    return vectors.shape
