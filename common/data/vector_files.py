"""Reading word vectors and dictionaries from a user's files, in the formats common in the field.

Lines end at a line feed and fields at a space or tab, never at other Unicode white space: files of
fastText and GloVe contain words such as a no-break space or U+0085.
"""

import codecs
import contextlib
import gzip
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from common.data import numpy_files
from common.errors import UserError

HEADER = re.compile(r"(\d{1,12}) (\d{1,6})\s*", re.ASCII)
NUMBER = re.compile(r" [-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.ASCII | re.IGNORECASE)
MAX_LINE = 1 << 20  # bytes of a line; a longer one is a sign of a binary file
MAX_WORD = 1 << 16  # bytes of a word in a .bin file


class Space(NamedTuple):
    """Words and their vectors, most frequent first if the order is known."""

    words: list[str]
    vectors: Float[np.ndarray, "n d"]


def read(path: Path, words_path: Path | None = None, num_words: int | None = None) -> Space:
    """Reads words and their vectors, in the order of the file.

    The suffix determines the format. `.npy`: an array [n, d]. `.npz`: the only array or `vectors`,
    with the words `words` [n]. `.bin`: word2vec binary. Any other suffix is text, a line being a
    word and its d numbers: word2vec and fastText `.vec` with a first line "n d", GloVe without.
    Text, `.bin` and word lists may be compressed (`.gz` after the suffix).
    The words of an array without words are its row numbers.

    Args:
      path: the file of vectors.
      words_path: the word list of an array, one word a line. It takes precedence over `words`.
      num_words: maximum number of rows to read; None reads the whole file.

    Returns:
      The words and their float32 vectors, all finite and none zero.

    Raises:
      UserError: a file that is missing, damaged or of another format; an empty or repeated word;
        rows of unequal dimension; a number that is not finite; a zero vector.
    """
    name = path.name.lower()
    if name.endswith((".npy", ".npz")):
        return _collect(_array_rows(path, words_path, num_words), path, num_words)
    if words_path is not None:
        raise UserError(f"{path} contains its words: leave out the word list {words_path}.")
    with _opened(path) as file:
        rows = binary_rows if name.removesuffix(".gz").endswith(".bin") else _text_rows
        return _collect(rows(file, path), path, num_words)


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Reads a dictionary: a source and a target word a line, separated by a tab or by spaces.

    Raises:
      UserError: a file that is missing, empty or not UTF-8, or a line without exactly two columns.
    """
    pairs = []
    with _opened(path) as file:
        for number, line in _lines(file, path):
            columns = [c.strip(" ") for c in line.split("\t" if "\t" in line else " ")]
            columns = [column for column in columns if column]
            if len(columns) != 2:
                raise UserError(
                    f"{path}, line {number} has {len(columns)} columns: give a source word and a "
                    "target word (with a tab between them if they contain spaces)."
                )
            pairs.append((columns[0], columns[1]))
    if not pairs:
        raise UserError(f"{path} is empty: give a file with two words a line.")
    return pairs


def read_lines(path: Path) -> list[str]:
    """Reads the lines of a UTF-8 file that are not blank.

    Raises:
      UserError: a file that is missing, damaged or not UTF-8.
    """
    with _opened(path) as file:
        return [line for _, line in _lines(file, path)]


def as_vectors(
    array: np.ndarray | None, what: str, num_rows: int | None = None
) -> Float[np.ndarray, "n d"]:
    """Returns a foreign array, or its first `num_rows` rows, as float32 vectors.

    Raises:
      UserError: it is None or no array [n, d] of real numbers; `what` names it in the sentence.
    """
    if array is None or array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiu":
        found = "missing" if array is None else f"of shape {array.shape} and type {array.dtype}"
        raise UserError(f"{what} is {found}: save an array [rows, dimension] of real numbers.")
    with np.errstate(over="ignore"):  # larger numbers become infinite, which check_rows refuses
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


def _collect(rows: Iterable[tuple[str, np.ndarray]], path: Path, num_words: int | None) -> Space:
    found: dict[str, None] = {}  # words in the order of the file
    data = bytearray()  # grows in place, where a list of rows would take twice the memory
    rows = tqdm(
        itertools.islice(rows, num_words), desc=f"reading {path.name}", unit="word", delay=2
    )
    with np.errstate(over="ignore"):  # larger numbers become infinite, which check_rows refuses
        for word, vector in rows:
            if not word or word in found:
                raise UserError(
                    f"{path}, vector {len(found) + 1}: the word '{word}' is empty or occurs "
                    "before; remove that row."
                )
            found[word] = None
            data += vector.astype(np.float32, copy=False).tobytes()
    if not found:
        raise UserError(f"{path} holds no vectors: give a file with a word and its numbers a row.")
    words, vectors = list(found), np.frombuffer(data, np.float32).reshape(len(found), -1)
    check_rows(vectors, lambda row: f"The vector of '{words[row]}' in {path}")
    return Space(words, vectors)


def _text_rows(file: BinaryIO, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    lines = _lines(file, path)
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


def binary_rows(file: BinaryIO, path: Path) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
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


def _array_rows(
    path: Path, words_path: Path | None, num_words: int | None
) -> Iterator[tuple[str, np.ndarray]]:
    with _explained(path):
        try:
            arrays = (
                {"x": numpy_files.npy(path)}
                if path.suffix.lower() == ".npy"
                else numpy_files.npz(path)
            )
        except ValueError as error:
            raise UserError(
                f"{path} is cut, is no numpy file, or holds pickled Python objects, which are "
                "never loaded: save plain arrays, of numbers and of str."
            ) from error
    array = arrays.get("vectors", next(iter(arrays.values())) if len(arrays) == 1 else None)
    vectors = as_vectors(array, f"The array 'vectors' in {path}", num_words)
    if words_path is not None:
        words = read_lines(words_path)
    elif "words" in arrays:
        words = arrays["words"].ravel().tolist() if arrays["words"].dtype.kind == "U" else []
    else:
        words = [str(row) for row in range(len(array))]
    if len(words) != len(array):
        raise UserError(
            f"{words_path or path} has {len(words)} words for {len(array)} vectors in {path}: give "
            "a word for each, in an array 'words' of str or a word list."
        )
    return zip(words, vectors, strict=False)  # `vectors` may be the first ones alone


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        try:
            if len(line) > MAX_LINE:
                raise ValueError
            text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode()
        except ValueError:
            raise UserError(
                f"{path}, line {number} is not UTF-8 text of at most {MAX_LINE >> 20} MiB: convert "
                "the file or, if it is binary, give it the suffix of its format (.bin, .npy, .npz, "
                ".gz)."
            ) from None
        if text := text.rstrip(" \r\n"):
            yield number, text


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    opening = gzip.open if path.suffix.lower() == ".gz" else open
    with _explained(path), opening(path, "rb") as file:
        yield file


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns the errors of the system and of gzip about a file into a UserError."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"Cannot read {path} ({getattr(error, 'strerror', None) or error}): correct the path, "
            "or fetch the file again if it is damaged."
        ) from error
