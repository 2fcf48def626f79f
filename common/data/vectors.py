"""A user's own word vectors and dictionaries, in the formats that the field passes around.

Lines end at a line feed and fields at a space or tab, never at other Unicode white space: fastText
and GloVe files hold words such as a no-break space or U+0085.
"""

import codecs
import contextlib
import gzip
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from common.data import numpy_files
from common.data.words import Space
from common.errors import UserError

HEADER = re.compile(r"(\d{1,12}) (\d{1,6})\s*", re.ASCII)
LONGEST = 1 << 20  # bytes of a line: a binary file under a wrong name may be one
MOST = 1 << 16  # dimensions, of which a line makes as many strings, and bytes of a word in .bin


def read(path: Path, words_path: Path | None = None, num_words: int | None = None) -> Space:
    """Reads words and their vectors, in the order of the file.

    The suffix tells the format. `.npy`: an array [n, d], with a word list. `.npz`: the array
    `vectors` [n, d], and `words` [n] or a word list. `.bin`: word2vec binary. Anything else is
    text, a word and its d numbers a line: word2vec and fastText `.vec` with a first line "n d",
    GloVe without. Text, `.bin` and word lists may be gzipped (`.gz` behind the suffix).

    Args:
      path: the file of vectors.
      words_path: the word list of an array, one word a line; for `.npz` it replaces `words`.
      num_words: read this many rows at most, and no further; None reads the whole file.

    Returns:
      The words and their float32 vectors, every one finite and none zero.

    Raises:
      UserError: a file that is missing, damaged or of another format; words that are empty or come
        twice; rows of unequal dimension; numbers that are not finite; zero vectors.
    """
    if num_words is not None and num_words < 1:
        raise UserError(f"num_words is {num_words} for {path}: ask for at least 1 word.")
    name = path.name.lower()
    if name.endswith((".npy", ".npz")):
        return _collect(_array_rows(path, words_path), path, "row index", num_words)
    if words_path is not None:
        raise UserError(f"{path} holds its own words: leave out the word list {words_path}.")
    with _opened(path) as file:
        if name.removesuffix(".gz").endswith(".bin"):
            return _collect(_binary_rows(file, path), path, "row index", num_words)
        return _collect(_text_rows(file, path), path, "line", num_words)


def read_array(path: Path) -> Float[np.ndarray, "n d"]:
    """Reads vectors that come without words: `vectors` of an `.npz` or its only array, or a `.npy`.

    Raises:
      UserError: a file that is missing, damaged or of another format, numbers that are not finite,
        or zero vectors.
    """
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, refused below
        vectors = _real(_arrays(path, only=True).get("vectors"), path).astype(np.float32)
    refuse(vectors, lambda row: f"{path}, row index {row}", "that row")
    return vectors


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Reads a dictionary: a source and a target word a line, between them a tab or spaces.

    Raises:
      UserError: a file that is missing, empty or not UTF-8, or a line without just two columns.
    """
    pairs = []
    with _opened(path) as file:
        for number, line in _lines(file, path):
            columns = [c.strip(" ") for c in line.split("\t" if "\t" in line else " ")]
            columns = [column for column in columns if column]
            if len(columns) != 2:
                raise UserError(
                    f"{path}, line {number} has {len(columns)} columns: keep a source word and a "
                    "target word (put a tab between them where they hold spaces)."
                )
            pairs.append((columns[0], columns[1]))
    if not pairs:
        raise UserError(f"{path} is empty: give a file with two words a line.")
    return pairs


def _collect(
    rows: Iterable[tuple[int, str, np.ndarray]], path: Path, unit: str, num_words: int | None
) -> Space:
    """Joins rows `(number, word, vector)`; `unit` is what their numbers count, for messages."""
    numbers: dict[str, int] = {}
    data = bytearray()  # grows in place: rows kept one by one would take the memory twice
    rows = itertools.islice(rows, num_words)
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, reported below
        for number, word, vector in tqdm(rows, desc=f"reading {path.name}", unit="word", delay=2):
            if not word:
                raise UserError(f"{path}, {unit} {number} has no word: add it or remove the row.")
            if word in numbers:
                raise UserError(
                    f"{path}, {unit} {number}: the word '{word}' has been at {unit} "
                    f"{numbers[word]} already; remove one of the two."
                )
            numbers[word] = number
            data += vector.astype(np.float32, copy=False).tobytes()
    if not numbers:
        raise UserError(f"{path} holds no vectors: give a file with a word and its numbers a row.")
    vectors = np.frombuffer(data, np.float32).reshape(len(numbers), -1)
    words = list(numbers)

    def where(row):
        return f"{path}, {unit} {numbers[words[row]]}: the vector of '{words[row]}'"

    refuse(vectors, where, "that word")
    return Space(words, vectors)


def refuse(vectors: Float[np.ndarray, "n d"], where: Callable[[int], str], remove: str) -> None:
    """Raises about the first row, said by `where`, that is not finite or has no direction."""
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))  # NaN where any number is
    for wrong, what in (
        (~np.isfinite(largest), "a number that is NaN, infinite or too large for float32"),
        (largest == 0, "zeros alone, which have no direction"),
    ):
        if wrong.any():
            raise UserError(f"{where(int(wrong.argmax()))} holds {what}; remove {remove}.")


def _text_rows(file: BinaryIO, path: Path) -> Iterator[tuple[int, str, np.ndarray]]:
    lines = _lines(file, path)
    first = next(lines, None)
    if first is None:
        return
    header = HEADER.fullmatch(first[1])
    count, dimension = map(int, header.groups()) if header else (None, first[1].count(" "))
    if not 1 <= dimension <= MOST:
        raise UserError(
            f"{path}, line {first[0]} calls for {dimension or 'no'} numbers: give a file with a "
            "word and its numbers a line, spaces between them."
        )
    rows = 0
    for number, line in lines if header else itertools.chain([first], lines):
        # From the right, because words of GloVe 840B hold spaces.
        word, *values = line.rsplit(" ", dimension)
        try:
            vector = np.array(values, np.float32)
        except ValueError as error:
            raise UserError(
                f"{path}, line {number}: {error}; write a word and {dimension} numbers, one space "
                "between them."
            ) from None
        too_many = " " in word and _is_number(word.rsplit(" ", 1)[1])
        if len(values) < dimension or too_many:
            raise UserError(
                f"{path}, line {number} has {'more' if too_many else 'fewer'} than the {dimension} "
                f"numbers that line {first[0]} calls for: mend the line or fetch the file again."
            )
        yield number, word, vector
        rows += 1
    if header and rows != count:
        raise UserError(
            f"{path} has {rows} rows of vectors but its first line says {count}: correct that "
            "line, or fetch the file again if it was cut."
        )


def _binary_rows(file: BinaryIO, path: Path) -> Iterator[tuple[int, str, np.ndarray]]:
    header = HEADER.fullmatch(file.readline(64).decode("latin-1"))
    if not header or header[2] == "0":
        raise UserError(
            f"{path} does not begin with word2vec's binary header, rows and dimension: for "
            "fastText give the .vec file, for text another suffix than .bin."
        )
    count, dimension = map(int, header.groups())
    for row in range(count):
        letters = iter(lambda: file.read(1).strip(b" "), b"")
        word = b"".join(itertools.islice(letters, MOST + 1))
        if len(word) > MOST:
            raise UserError(
                f"{path}, row index {row} has a word that does not end: fetch the file again, or "
                "give it another suffix than .bin."
            )
        values = file.read(4 * dimension)
        if len(values) < 4 * dimension:
            raise UserError(
                f"{path} ends within row index {row} of the {count} rows that its header says: "
                "fetch the file again."
            )
        if not values.strip(b"0123456789+-.eE \r\n"):
            raise UserError(f"{path} holds text, not floats: give it another suffix than .bin.")
        try:
            word = word.lstrip(b"\n").decode()  # some writers end a row with a line feed
        except UnicodeDecodeError:
            raise UserError(
                f"{path}, row index {row} has a word that is not UTF-8: the file is damaged or is "
                "not word2vec's binary format; fetch or export it again."
            ) from None
        yield row, word, np.frombuffer(values, "<f4")
    if file.read(2).strip(b"\n"):
        raise UserError(
            f"{path} goes on after the {count} rows that its header says: correct the header or "
            "fetch the file again."
        )


def _array_rows(path: Path, words_path: Path | None) -> Iterator[tuple[int, str, np.ndarray]]:
    found = _arrays(path)
    vectors = _real(found.get("vectors"), path)
    if words_path is not None:
        with _opened(words_path) as file:
            words = [line for _, line in _lines(file, words_path)]
    elif "words" not in found:
        raise UserError(f"{path} comes without words: give a word list as well, one word a line.")
    elif found["words"].ndim != 1 or found["words"].dtype.kind != "U":
        raise UserError(f"The array 'words' in {path} is not a list of str: save np.array(words).")
    else:
        words = found["words"].tolist()
    if len(words) != len(vectors):
        raise UserError(
            f"{words_path or path} has {len(words)} words for the {len(vectors)} vectors in "
            f"{path}: give one word a vector, in the same order."
        )
    for row, (word, vector) in enumerate(zip(words, vectors, strict=True)):
        yield row, word, vector


def _arrays(path: Path, only: bool = False) -> dict[str, np.ndarray]:
    """The arrays `vectors` and `words` of a file; `only`: an only array counts as `vectors`."""
    with _explained(path):
        try:
            names = numpy_files.names(path)
            if names is None:
                return {"vectors": numpy_files.npy(path)}
            if only and len(names) == 1:
                return {"vectors": numpy_files.npz(path)[names[0]]}
            return numpy_files.npz(path, ("vectors", "words"))
        except ValueError as error:
            raise UserError(
                f"{path} is cut, is no numpy file, or holds pickled Python objects, which are "
                "never loaded: save plain arrays, of numbers and of str."
            ) from error


def _real(vectors: np.ndarray | None, path: Path) -> np.ndarray:
    """The array, if it is one of vectors."""
    if vectors is None:
        raise UserError(f"{path} has no array 'vectors': save it with np.savez(path, vectors=...).")
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.dtype.kind not in "fiu":
        raise UserError(
            f"The vectors in {path} have shape {vectors.shape} and type {vectors.dtype}: save an "
            "array [rows, dimension] of real numbers."
        )
    return vectors


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
        if len(line) > LONGEST:
            raise UserError(
                f"{path}, line {number} is over {LONGEST >> 20} MiB long: if the file is binary, "
                "give it the suffix of its format (.bin, .npy, .npz, .gz)."
            )
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)  # editors on Windows put it there
        try:
            text = line.decode().rstrip(" \r\n")
        except UnicodeDecodeError:
            raise UserError(
                f"{path}, line {number} is not UTF-8 text: convert the file, or, if it is binary, "
                "give it the suffix of its format (.bin, .npy, .npz, .gz)."
            ) from None
        if text:
            yield number, text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    opening = gzip.open if path.suffix.lower() == ".gz" else open
    with _explained(path), opening(path, "rb") as file:
        yield file


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns what the system or gzip raise about a file into a sentence."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"There is no file {path}: correct the path.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"Cannot read {path} ({getattr(error, 'strerror', None) or error}): check its rights "
            "and that it is whole, or fetch it again."
        ) from error
