"""Reading word vectors from a user's files, in the formats common in the field.

`stream` reads any of them a block of rows at a time, `read` the whole.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from common.data.readers import column_files, numpy_files
from common.data.readers.line_files import explained, opened, read_lines
from common.data.readers.word2vec_files import Row, binary_rows, text_rows
from common.data.space import Space
from common.errors import UserError
from common.files import read_npz
from common.progress import progress_bar

BLOCK_ROWS = 1 << 14  # of `stream`
ARRAYS = {  # of files of arrays, by suffix
    ".npy": lambda path: {"vectors": numpy_files.npy(path)},
    ".npz": read_npz,
    ".safetensors": numpy_files.safetensors_matrices,
}


class Block(NamedTuple):
    """Some rows of a file: words, vectors, and `rows` if all columns of a table are read."""

    words: list[str]
    vectors: Float[np.ndarray, "n d"]
    rows: column_files.Rows | None = None


class Form(NamedTuple):
    """What the suffix of a file leaves open.

    Attributes:
      id_column: of parquet and Arrow, the column whose values are the words; None: the only one of
        strings, or `words`.
      vector_column: of parquet and Arrow, the column of vectors; None: see `column_files`.
      errors: of text and .bin, what becomes of bytes that are not UTF-8, see `line_files.lines_of`.
    """

    id_column: str | None = None
    vector_column: str | None = None
    errors: str = "strict"


STRICT = Form()


def read(
    path: Path,
    words_path: Path | None = None,
    num_words: int | None = None,
    *,
    form: Form = STRICT,
    distinct: bool = True,
    progress: bool = False,
) -> Space:
    """Reads words and their vectors, in the order of the file; see `stream`."""
    words: list[str] = []
    data = bytearray()  # grows in place, where a list of blocks would take twice the memory
    options = {"form": form, "distinct": distinct, "progress": progress}
    for block in stream(path, words_path, num_words, **options):
        words += block.words
        data += block.vectors.tobytes()
    return Space(words, np.frombuffer(data, np.float32).reshape(len(words), -1))


def stream(
    path: Path,
    words_path: Path | None = None,
    num_words: int | None = None,
    *,
    form: Form = STRICT,
    distinct: bool = True,
    rows: bool = False,
    progress: bool = False,
) -> Iterator[Block]:
    """Yields words and their vectors in blocks of at most BLOCK_ROWS rows, in the file's order.

    The suffix determines the format:
    - `.npy`: an array [n, d].
    - `.npz`: the only array or `vectors`, with the words `words` [n] or those of
      `numpy_files.word_arrays`. It is read as a whole.
    - `.safetensors`: the only matrix of floats or `vectors`.
    - `.parquet`, `.arrow`, `.feather`, or a folder of such files: see `column_files`.
    - `.bin`: word2vec binary.
    - Any other suffix is text, a line being a word and its d numbers: word2vec and fastText `.vec`
      with a first line "n d", GloVe without, tables with commas. See `word2vec_files.text_rows`.

    Text, `.bin` and word lists may be compressed (`.gz` after the suffix). The words of vectors
    without words are their row numbers. Words are compared by hashes of 64 bits, of which eight
    bytes for each word are kept: that two of ten million words have the same hash has a probability
    of 3e-6.

    Args:
      path: the file of vectors.
      words_path: the word list of an array, one word a line. It takes precedence over `words`.
      num_words: maximum number of rows to read; None reads the whole file.
      form: what the suffix leaves open.
      distinct: whether the words identify rows, and so must differ and not be empty.
      rows: whether the columns of a table are read, all of them, in the place of its words.
      progress: whether to show a progress bar after two seconds.

    Yields:
      Words and their float32 vectors, all finite and none zero.

    Raises:
      UserError: a file that is missing, damaged or of another format; an empty or repeated word
        where these have to be distinct; rows of unequal dimension; a number that is not finite; a
        zero vector.
    """
    count, seen = 0, []
    shown = {"desc": f"reading {path.name}", "unit": "word", "delay": 2, "disable": not progress}
    with progress_bar(**shown) as bar:
        for words, vectors, columns in _blocks(path, words_path, num_words, form, rows):
            if words is None:
                words = [str(row) for row in range(count, count + len(vectors))]
            elif distinct:
                _check_words(words, seen, path, count)
            check_rows(vectors, lambda row, of=words: f"The vector of '{of[row]}' in {path}")
            count += len(words)
            yield Block(words, vectors, columns)
            bar.update(len(words))
    if not count:
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
    path: Path, words_path: Path | None, num_words: int | None, form: Form, rows: bool
) -> Iterator[column_files.Block]:
    """Blocks of a file, whose values are still to be checked."""
    suffix = path.suffix.lower()
    columns = suffix in column_files.SUFFIXES or path.is_dir()
    if suffix in ARRAYS and not columns:
        yield from _array_blocks(path, words_path, num_words)
        return
    if words_path is not None:
        raise UserError(f"{path} is no file of arrays: leave out the word list {words_path}.")
    if columns:
        wanted = column_files.Wanted(form.id_column, form.vector_column, rows)
        with explained(path):
            yield from column_files.blocks(path, BLOCK_ROWS, num_words, wanted)
        return
    binary = path.name.lower().removesuffix(".gz").endswith(".bin")
    with opened(path) as file:
        if binary:
            lines = binary_rows(file, path, form.errors)
        else:
            lines = text_rows(file, path, form.errors, num_words)
        lines = itertools.islice(lines, num_words)
        while block := _next_rows(lines):
            words, vectors = zip(*block, strict=True)
            yield column_files.Block(list(words), np.stack(vectors))


def _next_rows(rows: Iterator[Row]) -> list[Row]:
    with np.errstate(over="ignore"):  # check_rows refuses infinity
        return list(itertools.islice(rows, BLOCK_ROWS))


def _array_blocks(
    path: Path, words_path: Path | None, num_words: int | None
) -> Iterator[column_files.Block]:
    arrays = _arrays(path)
    name = "vectors" if len(arrays) != 1 else next(iter(arrays))
    what = f"The array 'vectors' in {path} ({', '.join(map(repr, arrays)) or 'none'})"
    as_vectors(arrays.get(name), what, 0)
    count, words = len(arrays[name]), None
    if words_path is not None:
        words = read_lines(words_path)
    else:
        try:
            words = numpy_files.words_of(arrays)
        except ValueError:
            words = []
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
        yield column_files.Block(words and words[rows], as_vectors(arrays[name][rows], what))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with explained(path):
        try:
            return ARRAYS[path.suffix.lower()](path)
        except ValueError as error:
            raise UserError(
                f"{path} is cut, is no file of its format, or holds pickled Python objects, which "
                "are never loaded: save plain arrays, of numbers and of str."
            ) from error
