"""A file of texts encoded into a file of vectors, in chunks, so that a killed run goes on.

The chunks lie in a folder beside the output, each written whole or not at all, until the output is.
"""

import codecs
import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from absl import logging
from jaxtyping import Float
from tqdm import tqdm

from common import bert
from common.data import encoders, numpy_files
from common.errors import UserError, writing
from common.workdir import hold, read_arrays, write_arrays, write_atomically

KEPT = ", what has been encoded is kept"
CHUNK = 2048  # texts: what a kill costs at most, and what is sorted by length at a time
LARGEST = 4 << 30  # bytes of the array of texts, which holds each at the length of the longest


def read(path: Path) -> list[str]:
    """Reads texts, one a line.

    Raises:
      UserError: a file that is missing, empty or not UTF-8, or a line that is empty or comes twice.
    """
    numbers: dict[str, int] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode()
            text = text.strip(" \t\r\n")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:  # as in UTF-16
            raise UserError(f"{path}, line {number} is not UTF-8 text: convert the file.")
        if not text.strip():
            raise UserError(f"{path}, line {number} is empty: remove it, or put a text there.")
        if text in numbers:
            raise UserError(
                f"{path}, line {number} is the same text as line {numbers[text]}: remove one of "
                "the two, a text is the name of its vector."
            )
        numbers[text] = number
    if not numbers:
        raise UserError(f"{path} is empty: give a file with a text a line.")
    return list(numbers)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise UserError(f"Cannot read {path} ({error.strerror}): correct the path.") from error


def encode_file(
    name: str, source: Path, output: Path, cache: Path, *, max_length: int | None = None
) -> tuple[int, int]:
    """Encodes a file of texts into an `.npz` that `common/data/vectors.py` reads.

    Args:
      name: 'minilm', or the folder of a BERT.
      source: texts, one a line.
      output: gets `vectors` [n, d], unit rows, `words` [n], and `recipe`, a hash of what made them.
      cache: the cache directory.
      max_length: word pieces after which a text is cut; None: as the folder says.

    Returns:
      n and d.

    Raises:
      UserError: texts or an encoder that can't be read, an output that can't be written or holds
        something else, or another process at it.
    """
    if output.suffix.lower() != ".npz":
        raise UserError(f"The output {output} is no .npz file: give --output=NAME.npz.")
    texts = read(source)
    longest = max(range(len(texts)), key=lambda row: len(texts[row]))
    if 4 * len(texts[longest]) * len(texts) > LARGEST:
        raise UserError(
            f"{source}, line {longest + 1} has {len(texts[longest])} characters, and an array of "
            f"{len(texts)} texts of that length is over {LARGEST >> 30} GiB: shorten the longest "
            "lines (only their beginning counts) or split the file."
        )
    files = encoders.read_files(name, cache, ["minilm"])
    model = encoders.load(files, name)
    if max_length is None:
        max_length = model.max_pieces
    if not 3 <= max_length <= model.longest:  # two of them are the special ones
        raise UserError(
            f"max_length is {max_length}: give 3 to {model.longest}, the positions of '{name}'."
        )
    hashes = [hashlib.sha256(content).hexdigest() for content in files.values()]
    recipe = json.dumps([encoders.VERSION, CHUNK, hashes, max_length, texts])
    recipe = hashlib.sha256(recipe.encode()).hexdigest()
    shape = len(texts), model.network.words.features
    parts = output.with_name(output.name + ".parts")
    if output.exists() or output.is_symlink():
        if _recipe(output) != recipe:
            raise UserError(
                f"{output} exists and is not what this run would write: delete it or choose another"
                " --output."
            )
        logging.info("%s is there already.", output)
        shutil.rmtree(parts, ignore_errors=True)  # of a run killed at its very end
        return shape
    with _held(parts, recipe, output):
        vectors = _in_chunks(model, texts, max_length, parts, source, output)
        with writing(output, "--output", KEPT):
            whole = parts / "whole.npz"
            with whole.open("wb") as file:  # compressed: the array of texts is mostly padding
                np.savez_compressed(file, vectors=vectors, words=np.array(texts), recipe=recipe)
            os.replace(whole, output)
    shutil.rmtree(parts, ignore_errors=True)
    return shape


def _in_chunks(
    model: encoders.Model, texts: list[str], max_length: int, parts: Path, source: Path, output
) -> Float[np.ndarray, "n d"]:
    vectors = np.empty((len(texts), model.network.words.features), np.float32)
    starts = range(0, len(texts), CHUNK)
    paths = [parts / f"{start // CHUNK:06d}.npz" for start in starts]
    done = sum(len(texts[s : s + CHUNK]) for s, p in zip(starts, paths, strict=True) if p.exists())
    if done:
        logging.info("Going on after %d of %d texts, kept in %s", done, len(texts), parts)
    label = f"encoding {source.name}"
    with tqdm(total=len(texts), initial=done, desc=label, unit="text") as bar:
        for start, path in zip(starts, paths, strict=True):
            rows = slice(start, start + CHUNK)
            if path.exists():
                try:
                    vectors[rows] = read_arrays(path)["vectors"]
                    continue
                except UserError:
                    logging.warning("%s is damaged: encoding its texts again", path)
            vectors[rows] = bert.encode(
                model.network,
                model.tokenizer,
                texts[rows],
                max_length=max_length,
                pooling=model.pooling,
                progress=bar,
            )
            lost = ~(np.linalg.norm(vectors[rows], axis=1) > 0.5)  # of unit rows; NaN is lost, too
            if lost.any():
                shutil.rmtree(parts)  # the same run could never end
                raise UserError(
                    f"{source}, line {start + lost.argmax() + 1}: the encoder gives that text no "
                    "vector; remove it, or check the encoder's files."
                )
            with writing(output, "--output", KEPT):
                write_arrays(path, {"vectors": vectors[rows]})
    return vectors


def _recipe(path: Path) -> str | None:
    try:
        return str(numpy_files.npz(path, ("recipe",))["recipe"])
    except (OSError, ValueError, KeyError):  # not ours
        return None


@contextlib.contextmanager
def _held(parts: Path, recipe: str, output: Path) -> Iterator[None]:
    """Keeps the folder of chunks to this process and to this recipe."""
    with writing(output, "--output", KEPT):
        parts.mkdir(parents=True, exist_ok=True)
        lock = (parts / ".lock").open("w")
    with lock:
        try:
            hold(lock)
        except BlockingIOError:
            raise UserError(
                f"Another process is writing {output}: wait for it or choose another --output."
            ) from None
        path = parts / "recipe"
        if path.exists() and path.read_text() != recipe:
            raise UserError(
                f"{parts} holds a broken-off run of other texts, another encoder or max_length: "
                "delete it or choose another --output."
            )
        with writing(output, "--output", KEPT):
            write_atomically(path, recipe.encode())
        yield
