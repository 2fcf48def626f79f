"""Files of vectors and pairs of `isthmus align`, `apply` and `migrate`: read, mapped, written."""

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from absl import logging
from jaxtyping import Array, Float, Shaped
from numpy.lib import format as npy_format

from common.alignment import Aligner
from common.arrays import AnyArray
from common.data.readers import numpy_files, vector_files
from common.data.readers.line_files import MAX_LINE
from common.data.readers.pair_files import Pairs
from common.data.readers.vector_files import STRICT, Block, Form
from common.data.sets import dictionary
from common.errors import UserError, writing
from common.files import replacing, write_atomically
from common.linear import unit
from common.progress import progress_bar
from isthmus.align.space import Space

MAX_WORD = MAX_LINE // 2  # bytes of a word in text, so that a line holds its numbers as well
# Measured between GloVe, Word2Vec, French fastText and MiniLM's words, sentences and input vectors:
# 50 or more rows of the source that were not used, rarer words or of one topic, have at least .48,
# MiniLM's sentences among its words .64, another space of the same width at most .31.
MIN_LIKENESS = 0.4
MIN_COMPARED = 50  # rows
SIDES: dict[str, Callable[[Aligner, np.ndarray], Array]] = {  # what a map does with vectors
    "source": Aligner.apply,
    "target": Aligner.normalise_target,
    "back": Aligner.map_back,
}


def read_space(path: Path, name: str, num_rows: int | None = None, form: Form = STRICT) -> Space:
    """Reads a file by `vector_files.read`, and raises its errors."""
    words, vectors = vector_files.read(
        path, num_words=num_rows, form=form, distinct=False, progress=True
    )
    return Space(name, words, vectors)


def map_blocks(
    path: Path, aligner: Aligner, form: Form = STRICT, *, side: str = "source", rows: bool = False
) -> Iterator[Block]:
    """Maps the vectors of a file a block of rows at a time, to unit length.

    It warns if vectors that are to be of the aligner's source are, in the first block, not like it.

    Args:
      path: the file.
      aligner: the map.
      form: see `vector_files.Form`.
      side: key of `SIDES`.
      rows: whether all columns of a table are passed on, see `vector_files.stream`.

    Raises:
      UserError: as `vector_files.stream` and `Aligner.apply`.
    """
    start = 0
    blocks = vector_files.stream(path, form=form, distinct=False, rows=rows, progress=True)
    for block in blocks:
        try:
            mapped_vectors = unit(np.asarray(SIDES[side](aligner, block.vectors)))
            if side == "source" and not start and len(block.words) >= MIN_COMPARED:
                _warn_of_another_space(path, aligner, block.vectors)
        except UserError as error:
            raise UserError(f"{path}, with rows counted from its row {start}: {error}") from error
        yield block._replace(vectors=mapped_vectors)
        start += len(block.words)


def _warn_of_another_space(path: Path, aligner: Aligner, vectors: np.ndarray) -> None:
    likeness = aligner.likeness(vectors)
    if likeness is not None and likeness < MIN_LIKENESS:
        logging.warning(
            "The vectors of %s are not like those of '%s', for which the map is (likeness %.2f; of "
            "vectors of the same space it is about 1, of another space about 0): give vectors of "
            "the same model.",
            path,
            aligner.source,
            likeness,
        )


def fits_text(word: str) -> bool:
    """Whether a line of text can hold a word, so that it is read back."""
    return 0 < len(word.encode()) <= MAX_WORD and not re.search(r"[\t\r\n]", word)


def with_pairs(source: Space, target: Space, pairs: Pairs, are_rows: bool, path: Path) -> Space:
    """The source with its known pairs.

    Args:
      source: the space that is mapped.
      target: the space that it is mapped onto.
      pairs: those of the file.
      are_rows: whether they are row numbers if the file does not say what they are.
      path: of the file, for messages.

    Raises:
      UserError: a pair is to be of row numbers and is not, none is in both spaces, or several rows
        of a space have a word of them.
    """
    entries, words = pairs.entries, (source.words, target.words)
    if are_rows if pairs.are_rows is None else pairs.are_rows:
        wrong = next((pair for pair in entries if not all(map(str.isdecimal, pair))), None)
        if wrong:
            raise UserError(
                f"{path} has the pair '{wrong[0]}', '{wrong[1]}', but pairs are to be row numbers, "
                "counted from 0: correct it, or leave out --pair_rows if it is a pair of words."
            )
        entries = [(f"{int(s)}", f"{int(t)}") for s, t in entries]
        words = [list(map(str, range(len(space)))) for space in words]
    for named, space_words, space in zip(
        zip(*entries, strict=True), words, (source, target), strict=True
    ):
        _refuse_repeated({*named}, space_words, space.name, path)
    try:
        found = dictionary.lookup(entries, *words)
    except UserError as error:
        hint = " Give --pair_rows if they are row numbers." * all(map(str.isdecimal, entries[0]))
        raise UserError(f"{path}: {error}{hint}") from error
    return source._replace(pairs=found.pairs, num_unknown=found.num_missing)


def _refuse_repeated(named: Set[str], words: Sequence[str], space: str, path: Path) -> None:
    """A word in a pair has to name one row."""
    counts = Counter(word for word in words if word in named)
    for word in (word for word, count in counts.items() if count > 1):
        raise UserError(
            f"{path} has a pair with '{word}', the word of several rows of '{space}': remove the "
            "pair, or choose what identifies rows (--id_column of a table)."
        )


def write_blocks(path: Path, blocks: Iterator[Block]) -> int:
    """Writes words and vectors that come in blocks, and returns the number of rows.

    The file appears when it is complete. Its suffix is a key of `WRITERS`: `.npy` gets the vectors
    alone; `.parquet` the columns of the blocks' `rows`, or else `words` and `vectors`; `.npz` the
    array `vectors` and those of `numpy_files.word_arrays`; `.vec` and `.txt` are word2vec text.
    Blocks are written as they come, but for `.npz`, which gathers them.

    Raises:
      UserError: another suffix, a word that the format can't hold, or the file can't be written.
    """
    if path.suffix not in WRITERS:
        raise UserError(
            f"No vectors can be written to {path}: choose an --out that ends with "
            f"{', '.join(WRITERS)}."
        )
    with writing(path, "--out"), replacing(path) as file:
        return WRITERS[path.suffix](file, blocks)


def in_blocks(words: Sequence[str], vectors: Float[AnyArray, "n d"]) -> Iterator[Block]:
    """Words with their vectors, in blocks of rows as `write_blocks` takes them."""
    rows = vector_files.BLOCK_ROWS
    for start in progress_bar(
        range(0, len(words), rows), desc="writing vectors", unit="block", delay=2
    ):
        block = slice(start, start + rows)
        yield Block(list(words[block]), np.asarray(vectors[block]))


def _write_npy(file: BinaryIO, blocks: Iterator[Block]) -> int:
    def header(count, dimension):
        content = io.BytesIO()
        stated = {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
        npy_format.write_array_header_1_0(content, stated)
        return content.getvalue()

    def rows(block):
        yield np.ascontiguousarray(block.vectors, "<f4").data

    return _write_counted(file, blocks, header, rows)


def _write_text(file: BinaryIO, blocks: Iterator[Block]) -> int:
    def header(count, dimension):
        return f"{count} {dimension}".ljust(20).encode() + b"\n"

    def rows(block):
        form = " ".join(["%.6g"] * block.vectors.shape[1])
        for word, vector in zip(block.words, block.vectors, strict=True):
            if not fits_text(word):
                raise UserError(
                    f"The word {word!r} can't be written to text, whose words are not empty, too "
                    "long, or with a tab or line end: choose an --out that ends with .parquet or "
                    ".npz."
                )
            yield f"{word} {form % tuple(vector.tolist())}\n".encode()

    return _write_counted(file, blocks, header, rows)


def _write_counted(
    file: BinaryIO,
    blocks: Iterator[Block],
    header: Callable[[int, int], bytes],
    rows: Callable[[Block], Iterator[bytes | memoryview]],
) -> int:
    """Writes a header with the number of rows, whose length does not depend on it, and rows."""
    file.write(header(0, 0))
    count, dimension = 0, 0
    for block in blocks:
        file.writelines(rows(block))
        count, dimension = count + len(block.words), block.vectors.shape[1]
    file.seek(0)
    file.write(header(count, dimension))
    return count


def _write_npz(file: BinaryIO, blocks: Iterator[Block]) -> int:
    words, vectors, _ = zip(*blocks, strict=True)
    words = list(itertools.chain.from_iterable(words))
    arrays: dict[str, Any] = {"vectors": np.concatenate(vectors), **numpy_files.word_arrays(words)}
    np.savez(file, **arrays)
    return len(words)


def _write_parquet(file: BinaryIO, blocks: Iterator[Block]) -> int:
    batches = map(_batch, blocks)
    first = next(batches)
    count = 0
    with pq.ParquetWriter(file, first.schema, use_dictionary=False) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            count += len(batch)
    return count


def _batch(block: Block) -> pa.RecordBatch:
    """The columns of the block's rows with its vectors in their place, or words and vectors."""
    lists = pa.FixedSizeListArray.from_arrays(block.vectors.ravel(), block.vectors.shape[1])
    if block.rows is None:
        return pa.record_batch({"words": pa.array(block.words, pa.string()), "vectors": lists})
    batch, name = block.rows
    return batch.set_column(batch.schema.get_field_index(name), pa.field(name, lists.type), lists)


WRITERS = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".vec": _write_text,
    ".txt": _write_text,
}


def write_table(path: Path, columns: Mapping[str, Shaped[np.ndarray, " n"]]) -> None:
    """Writes tab-separated columns with their names atomically; real numbers have four decimals.

    Values with a tab or a quote are between quotes, as `csv` and pandas read them.

    Raises:
      UserError: the file can't be written.
    """
    texts = [
        [f"{value:.4f}" if column.dtype.kind == "f" else str(value) for value in column]
        for column in columns.values()
    ]
    content = io.StringIO()
    csv.writer(content, "excel-tab", lineterminator="\n").writerows(
        (columns, *zip(*texts, strict=True))
    )
    with writing(path, "--out"):
        write_atomically(path, content.getvalue().encode())
