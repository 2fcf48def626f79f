"""Reading word vectors from a user's files, in the formats common in the field.

`stream` reads any of them a block of rows at a time, `read` the whole. Lines end at a line feed and
fields at a space or tab, never at other Unicode white space: files of fastText and GloVe contain
words such as a no-break space or U+0085.
"""

import io
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from common.data.readers import column_files, numpy_files
from common.data.readers.line_files import explained, lines_of, opened, read_lines
from common.errors import UserError

HEADER = re.compile(r"(\d{1,12}) (\d{1,6})\s*", re.ASCII)
NUMBER = re.compile(r" [-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.ASCII | re.IGNORECASE)
MAX_WORD = 1 << 16  # bytes of a word in a .bin file
BLOCK_ROWS = 1 << 14  # of `stream`
ARRAYS = {  # of files of arrays, by suffix
    ".npy": lambda path: {"vectors": numpy_files.npy(path)},
    ".npz": numpy_files.npz,
    ".safetensors": numpy_files.safetensors_matrices,
}
COLUMNS = {".parquet": column_files.parquet, ".arrow": column_files.arrow}
COLUMNS[".feather"] = COLUMNS[".arrow"]


class Space(NamedTuple):
    """Words and their vectors, most frequent first if the order is known."""

    words: list[str]
    vectors: Float[np.ndarray, "n d"]


def read(
    path: Path,
    words_path: Path | None = None,
    num_words: int | None = None,
    *,
    progress: bool = False,
) -> Space:
    """Reads words and their vectors, in the order of the file; see `stream`."""
    words: list[str] = []
    data = bytearray()  # grows in place, where a list of blocks would take twice the memory
    for block in stream(path, words_path, num_words, progress=progress):
        words += block.words
        data += block.vectors.tobytes()
    return Space(words, np.frombuffer(data, np.float32).reshape(len(words), -1))


def stream(
    path: Path,
    words_path: Path | None = None,
    num_words: int | None = None,
    *,
    progress: bool = False,
) -> Iterator[Space]:
    """Yields words and their vectors in blocks of at most BLOCK_ROWS rows, in the file's order.

    The suffix determines the format:
    - `.npy`: an array [n, d].
    - `.npz`: the only array or `vectors`, with the words `words` [n]. It is read as a whole.
    - `.safetensors`: the only matrix of floats or `vectors`.
    - `.parquet`, `.arrow`, `.feather`: see `column_files`.
    - `.bin`: word2vec binary.
    - Any other suffix is text, a line being a word and its d numbers: word2vec and fastText `.vec`
      with a first line "n d", GloVe without.

    Text, `.bin` and word lists may be compressed (`.gz` after the suffix). The words of vectors
    without words are their row numbers. Words are compared by hashes of 64 bits, of which eight
    bytes for each word are kept: that two of ten million words have the same hash has a probability
    of 3e-6.

    Args:
      path: the file of vectors.
      words_path: the word list of an array, one word a line. It takes precedence over `words`.
      num_words: maximum number of rows to read; None reads the whole file.
      progress: whether to show a progress bar after two seconds.

    Yields:
      Words and their float32 vectors, all finite and none zero.

    Raises:
      UserError: a file that is missing, damaged or of another format; an empty or repeated word;
        rows of unequal dimension; a number that is not finite; a zero vector.
    """
    rows, seen = 0, []
    shown = {"desc": f"reading {path.name}", "unit": "word", "delay": 2, "disable": not progress}
    with tqdm(**shown) as bar:
        for words, vectors in _blocks(path, words_path, num_words):
            if words is None:
                words = [str(row) for row in range(rows, rows + len(vectors))]
            else:
                _check_words(words, seen, path, rows)
            check_rows(vectors, lambda row, of=words: f"The vector of '{of[row]}' in {path}")
            rows += len(words)
            yield Space(words, vectors)
            bar.update(len(words))
    if not rows:
        raise UserError(f"{path} holds no vectors: give a file with a word and its numbers a row.")


def as_vectors(
    array: np.ndarray | None, what: str, num_rows: int | None = None
) -> Float[np.ndarray, "n d"]:
    """Returns a foreign array, or its first `num_rows` rows, as float32 vectors.

    Raises:
      UserError: it is None or no array [n, d] of real numbers; `what` names it in the sentence.
    """
    if (
        array is None
        or not (array.dtype.kind in "fiu" or array.dtype == jnp.bfloat16)
        or array.ndim != 2
        or 0 in array.shape
    ):
        found = "missing" if array is None else f"of shape {array.shape} and type {array.dtype}"
        raise UserError(f"{what} is {found}: save an array [rows, dimension] of real numbers.")
    with np.errstate(over="ignore"):  # check_rows refuses infinity
        return array[:num_rows].astype(np.float32)


def check_rows(vectors: Float[np.ndarray, "n d"], name: Callable[[int], str]) -> None:
    """Raises a UserError if a row is not finite or zero.

    Args:
      vectors: float32 vectors.
      name: returns the name of a row, the subject of the sentence.
    """
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))  # NaN if any number is
    wrong = ~np.isfinite(largest) | (largest == 0)
    if wrong.any():
        raise UserError(
            f"{name(int(wrong.argmax()))} holds a number that is NaN, infinite or too large for "
            "float32, or only zeros, which have no direction: remove it."
        )


def _check_words(words: list[str], seen: list[np.ndarray], path: Path, start: int) -> None:
    """Raises a UserError if a word of a block is empty or occurs before, and adds them to `seen`.

    Args:
      words: the words of a block that begins at row `start`.
      seen: sorted arrays with the hashes of all words before. Each is at least twice as long as the
        next one, so that there are few.
      path: the file.
      start: number of rows before the block.
    """
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    wrong = np.array([not word for word in words])
    for array in seen:
        wrong |= array[np.searchsorted(array, hashes).clip(max=len(array) - 1)] == hashes
    unique, first = np.unique(hashes, return_index=True)
    wrong |= np.bincount(first, minlength=len(words)) == 0
    if wrong.any():
        row = int(wrong.argmax())
        raise UserError(
            f"{path}, vector {start + row + 1}: the word '{words[row]}' is empty or occurs before; "
            "remove that row."
        )
    seen.append(unique)
    while len(seen) > 1 and len(seen[-2]) < 2 * len(seen[-1]):
        seen[-2:] = [np.sort(np.concatenate(seen[-2:]), kind="stable")]  # merges sorted parts


def _blocks(
    path: Path, words_path: Path | None, num_words: int | None
) -> Iterator[tuple[list[str] | None, np.ndarray]]:
    """Blocks of a file, whose values are still to be checked; words are None if it has none."""
    suffix = path.suffix.lower()
    if suffix in ARRAYS:
        yield from _array_blocks(path, words_path, num_words)
        return
    if words_path is not None:
        raise UserError(f"{path} is no file of arrays: leave out the word list {words_path}.")
    if suffix in COLUMNS:
        with explained(path):
            yield from COLUMNS[suffix](path, BLOCK_ROWS, num_words)
        return
    binary = path.name.lower().removesuffix(".gz").endswith(".bin")
    with opened(path) as file:
        rows = itertools.islice((binary_rows if binary else _text_rows)(file, path), num_words)
        while block := _next_rows(rows):
            words, vectors = zip(*block, strict=True)
            yield list(words), np.stack(vectors)


def _next_rows(rows: Iterator[tuple[str, np.ndarray]]) -> list[tuple[str, np.ndarray]]:
    with np.errstate(over="ignore"):  # check_rows refuses infinity
        return list(itertools.islice(rows, BLOCK_ROWS))


def _text_rows(file: io.BufferedIOBase, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    lines = lines_of(file, path)
    first = next(lines, None)
    if first is None:
        return
    header = HEADER.fullmatch(first[1])
    count, dimension = map(int, header.groups()) if header else (None, first[1].count(" "))
    rows = 0
    for number, line in lines if header else itertools.chain([first], lines):
        # Split from the right, because words of GloVe 840B contain spaces.
        word, *values = line.rsplit(" ", dimension)
        try:
            vector = np.array(values, np.float32)
        except ValueError:
            vector = np.empty(0)
        # A word of several parts whose last part is a number belongs to a row of more numbers.
        if not dimension or len(vector) < dimension or NUMBER.search(word):
            raise UserError(
                f"{path}, line {number} is not a word and {dimension or 'its'} numbers separated "
                f"by one space, as in line {first[0]}: correct the line or fetch the file again."
            )
        yield word, vector
        rows += 1
    if header and rows != count:
        raise UserError(
            f"{path} has {rows} rows of vectors but its first line says {count}: correct that "
            "line, or fetch the file again if it was cut."
        )


def binary_rows(
    file: io.BufferedIOBase, path: Path
) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
    """Yields the words and vectors of word2vec's binary format; `path` is named in errors."""
    try:
        header = HEADER.fullmatch(file.readline(64).decode("latin-1"))
        if not header:
            raise ValueError("it has another first line")
        count, dimension = map(int, header.groups())
        for row in range(count):
            letters = iter(lambda: file.read(1).strip(b" "), b"")
            word = b"".join(itertools.islice(letters, MAX_WORD))
            values = file.read(4 * dimension)
            # Numbers that are printable are a sign of a text file.
            if len(values) < 4 * dimension or not values.strip(b"0123456789+-.eE \r\n"):
                raise ValueError(f"row index {row} is cut or text")
            # Some writers end a row with a line feed.
            yield word.lstrip(b"\n").decode(), np.frombuffer(values, "<f4")
        if file.read(2).strip(b"\n"):
            raise ValueError(f"it has more than {count} rows")
    except ValueError as error:
        raise UserError(
            f"{path} is not word2vec's binary format, 'n d' and n rows of a word in UTF-8 and d "
            f"floats ({error}): fetch it again, or give text another suffix than .bin."
        ) from error


def _array_blocks(
    path: Path, words_path: Path | None, num_words: int | None
) -> Iterator[tuple[list[str] | None, np.ndarray]]:
    arrays = _arrays(path)
    name = "vectors" if len(arrays) != 1 else next(iter(arrays))
    what = f"The array 'vectors' in {path} ({', '.join(map(repr, arrays)) or 'none'})"
    as_vectors(arrays.get(name), what, 0)
    count, words = len(arrays[name]), None
    if words_path is not None:
        words = read_lines(words_path)
    elif "words" in arrays:
        words = arrays["words"].ravel().tolist() if arrays["words"].dtype.kind == "U" else []
    if words is not None and len(words) != count:
        raise UserError(
            f"{words_path or path} has {len(words)} words for {count} vectors in {path}: give "
            "a word for each, in an array 'words' of str or a word list."
        )
    end = count if num_words is None else min(count, num_words)
    for start in range(0, end, BLOCK_ROWS):
        if path.suffix.lower() != ".npz":  # the pages of a memory map are held as long as the map
            arrays = _arrays(path)
        rows = slice(start, min(start + BLOCK_ROWS, end))
        yield words and words[rows], as_vectors(arrays[name][rows], what)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with explained(path):
        try:
            return ARRAYS[path.suffix.lower()](path)
        except ValueError as error:
            raise UserError(
                f"{path} is cut, is no file of its format, or holds pickled Python objects, which "
                "are never loaded: save plain arrays, of numbers and of str."
            ) from error
