"""Reading word vectors from a user's files, in the formats common in the field.

`stream` reads any of them a block of rows at a time, `read` the whole.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import ml_dtypes
import numpy as np
import pyarrow as pa
from absl import logging
from jaxtyping import Bool, Float

from common.data.readers import column_files, json_files, numpy_files
from common.data.readers.column_files import Block
from common.data.readers.line_files import explained, opened, read_lines
from common.data.readers.word2vec_files import binary_rows, text_rows
from common.data.space import Space
from common.errors import UserError, check_count, named
from common.files import read_npz
from common.progress import progress_bar

BLOCK_ROWS = 1 << 14  # of `stream`
ALIKE, MIN_ALIKE = 0.2, 5  # share and number of equal rows that are mentioned
ARRAYS = {  # of files of arrays, by suffix
    ".npy": lambda path: {"vectors": numpy_files.npy(path)},
    ".npz": read_npz,
    ".safetensors": numpy_files.safetensors_matrices,
}


class NoVectors(UserError):
    """A file without a row, as programs write that split a table into many files."""


class RowNumbers(list[str]):
    """The words of rows that have none: their numbers, which identify nothing in another file."""


class Form(NamedTuple):
    """What the suffix of a file leaves open: see `column_files.Wanted` and `line_files.lines_of`.

    `invalid` is "drop", to leave out vectors that are none, or "refuse", to name them.
    """

    id_column: str | None = None
    vector_column: str | None = None
    errors: str = "strict"
    invalid: str = "refuse"


STRICT = Form()


def read(
    path: Path,
    words_path: Path | None = None,
    num_words: int | None = None,
    *,
    form: Form = STRICT,
    distinct: bool = True,
    rows: bool = False,
    progress: bool = False,
) -> Space:
    """Reads words and their vectors, in the order of the file; see `stream`."""
    words: list[str] = RowNumbers()
    data = bytearray()  # grows in place, where a list of blocks would take twice the memory
    options = {"form": form, "distinct": distinct, "rows": rows, "progress": progress}
    for block in stream(path, words_path, num_words, **options):
        words = words if isinstance(block.words, RowNumbers) else list(words)
        words += block.words
        data += block.vectors.tobytes()
    vectors = np.frombuffer(data, np.float32).reshape(len(words), -1)
    _warn_of_one_vector(words, vectors, path)
    return Space(words, vectors)


def _warn_of_one_vector(words: list[str], vectors: Float[np.ndarray, "n d"], path: Path) -> None:
    """Says if many rows are the same vector, which some services give where they have none."""
    columns = vectors[:, :: max(1, vectors.shape[1] // 3)].astype(np.float64)
    _, group = np.unique((columns * np.arange(1, columns.shape[1] + 1)).sum(1), return_inverse=True)
    alike = np.flatnonzero(group == np.bincount(group).argmax())
    alike = alike[(vectors[alike] == vectors[alike[0]]).all(axis=1)]
    if len(alike) >= max(MIN_ALIKE, ALIKE * len(words)):
        logging.warning(
            "%d of %d rows of %s are one and the same vector: %s. If it stands for items without a "
            "vector, leave them out.",
            len(alike), len(words), path, named([words[i] for i in alike]),
        )  # fmt: skip


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
    - `.jsonl`, `.ndjson`, `.json`: an object a line, see `json_files`.
    - `.bin`: word2vec binary.
    - Any other suffix is text, a line being a word and its d numbers: see `word2vec_files`.

    Text, JSON, `.bin` and word lists may be compressed (`.gz` after the suffix). The words of
    vectors without words are their row numbers; `words_path`, a word a line, precedes those of an
    array. With `distinct` they must differ and not be empty: their hashes of 64 bits are compared,
    and two of ten million words have the same one with a probability of 3e-6. With `rows`, all
    columns of a table are read in the place of its words. Vectors are float32, finite and not zero.

    UserError: a file that is missing, damaged or of another format; an empty or repeated word; rows
    of unequal dimension; a number that is not finite; a zero vector.
    """
    if num_words is not None:
        check_count("num_words", num_words)
    count, seen, invalid = 0, [], []
    shown = {"desc": f"reading {path.name}", "unit": "word", "delay": 2, "disable": not progress}
    with progress_bar(**shown) as bar:
        for words, vectors, columns in _blocks(path, words_path, num_words, form, rows):
            if not words:
                words = RowNumbers(map(str, range(count, count + len(vectors))))
            elif distinct:
                _check_words(words, seen, path, count)
            count += len(words)
            bar.update(len(words))
            valid = is_valid(vectors)
            invalid += [f"'{words[row]}'" for row in np.flatnonzero(~valid)]
            if not valid.all() and form.invalid == "drop":
                # Row numbers stay row numbers.
                words = type(words)(words[row] for row in np.flatnonzero(valid))
                vectors = vectors[valid]
                if columns:
                    columns = columns._replace(batch=columns.batch.filter(pa.array(valid)))
            # Of a file that is refused, the invalid ones are counted to its end.
            if len(words) and (form.invalid == "drop" or not invalid):
                yield Block(words, vectors, columns)
    if form.invalid == "drop":
        count -= len(invalid)
        if invalid:
            about = len(invalid), path, named(invalid)
            logging.warning("%d vectors of %s are zero or not finite and left out: %s.", *about)
    elif invalid:
        what = "The vector of", "The vectors of"
        refuse_invalid(
            what, invalid, f"in {path}", " (--invalid=drop of align, apply and migrate does it)"
        )
    if not count:
        raise NoVectors(f"{path} holds no vectors: give a file with a word and its numbers a row.")


def as_vectors(
    array: np.ndarray | None, what: str, num_rows: int | None = None
) -> Float[np.ndarray, "n d"]:
    """An array, or its first `num_rows` rows, as float32; or a UserError that says `what` it is."""
    if (
        array is None
        or not (array.dtype.kind in "fiu" or array.dtype == ml_dtypes.bfloat16)
        or array.ndim != 2
        or 0 in array.shape
    ):
        found = "missing" if array is None else f"of shape {array.shape} and type {array.dtype}"
        raise UserError(f"{what} is {found}: save an array [rows, dimension] of real numbers.")
    with np.errstate(over="ignore"):  # `stream` refuses infinity
        return array[:num_rows].astype(np.float32)


def is_valid(vectors: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
    """Whether each row is finite and not zero."""
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))  # NaN if any number is
    return np.isfinite(largest) & (largest != 0)


def refuse_invalid(
    what: tuple[str, str], rows: Sequence[object], where: str, hint: str = ""
) -> NoReturn:
    """Raises a UserError for vectors that are zero or not finite; `what`: one row, several."""
    of, hold, them = (what[1], "hold", "them") if rows[1:] else (what[0], "holds", "it")
    raise UserError(
        f"{of} {named(rows)} {where} {hold} a number that is NaN, null, infinite or too large for "
        f"float32, or only zeros, which have no direction: remove {them}{hint}."
    )


def _check_words(words: list[str], seen: list[np.ndarray], path: Path, start: int) -> None:
    """Raises a UserError if a word of a block, from row `start`, is empty or occurs before.

    `seen` gets its hashes: sorted arrays, each at least twice as long as the next one, so few.
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
) -> Iterator[Block]:
    """Blocks of a file, whose values are still to be checked."""
    suffix = path.suffix.lower()
    wanted = column_files.Wanted(form.id_column, form.vector_column, rows)
    columns = suffix in column_files.SUFFIXES or path.is_dir()
    if suffix in ARRAYS and not columns:
        yield from _array_blocks(path, words_path, num_words)
        return
    if words_path is not None:
        raise UserError(f"{path} is no file of arrays: leave out the word list {words_path}.")
    if columns:
        with explained(path):
            yield from column_files.blocks(path, BLOCK_ROWS, num_words, wanted)
        return
    name = path.name.lower().removesuffix(".gz")
    with opened(path) as file:
        if name.endswith(json_files.SUFFIXES):
            lines = json_files.rows(file, path, wanted)
        elif name.endswith(".bin"):
            lines = binary_rows(file, path, form.errors)
        else:
            lines = text_rows(file, path, form.errors, num_words)
        lines = itertools.islice(lines, num_words)
        while block := list(itertools.islice(lines, BLOCK_ROWS)):
            words, vectors = zip(*block, strict=True)
            yield Block([] if words[0] is None else list(words), np.stack(vectors))


def _array_blocks(path: Path, words_path: Path | None, num_words: int | None) -> Iterator[Block]:
    arrays = _arrays(path)
    name = "vectors" if len(arrays) != 1 else next(iter(arrays))
    what = f"The array 'vectors' in {path} ({', '.join(map(repr, arrays)) or 'none'})"
    if name in arrays and arrays[name].shape[:1] == (0,):
        return
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
        yield Block(words[rows] if words else [], as_vectors(arrays[name][rows], what))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with explained(path):
        try:
            return ARRAYS[path.suffix.lower()](path)
        except ValueError as error:
            raise UserError(
                f"{path} is cut, is no file of its format, or holds pickled Python objects, which "
                "are never loaded: save plain arrays, of numbers and of str."
            ) from error
