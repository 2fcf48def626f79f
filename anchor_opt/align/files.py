"""Files of `python -m anchor_opt.align`: the spaces and pairs it reads, the results it writes."""

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from absl import logging
from jaxtyping import Float, Shaped
from numpy.lib import format as npy_format
from tqdm import tqdm

from anchor_opt.align.space import Space
from common.alignment import Aligner
from common.arrays import AnyArray
from common.data.readers import vector_files
from common.data.readers.pair_files import Pairs
from common.data.sets import dictionary
from common.errors import UserError, writing
from common.run.workdir import replacing, write_atomically

# Measured between GloVe, Word2Vec, French fastText and MiniLM's words, sentences and input vectors:
# 50 or more rows of the source that were not used, rarer words or of one topic, have at least .48,
# MiniLM's sentences among its words .64, another space of the same width at most .31.
MIN_LIKENESS = 0.4
MIN_COMPARED = 50  # rows
Block = tuple[Sequence[str], Float[np.ndarray, "n d"]]  # words and vectors


def read_space(path: Path, name: str, num_rows: int | None = None) -> Space:
    """Reads a file by `vector_files.read`.

    Raises:
      UserError: the file can't be read, or a word has a line end, which would break a `.vec`.
    """
    words, vectors = vector_files.read(path, num_words=num_rows, progress=True)
    _refuse_line_ends(words, path)
    return Space(name, words, vectors)


def map_blocks(path: Path, aligner: Aligner) -> Iterator[Block]:
    """Maps the vectors of a file a block of rows at a time.

    It warns if the first block is not like the vectors of the aligner's source.

    Raises:
      UserError: as `read_space` and `Aligner.apply`.
    """
    start = 0
    for words, vectors in vector_files.stream(path, progress=True):
        _refuse_line_ends(words, path)
        try:
            mapped_vectors = np.asarray(aligner.apply(vectors))
            if not start and len(words) >= MIN_COMPARED:
                _warn_of_another_space(path, aligner, vectors)
        except UserError as error:
            raise UserError(f"{path}, with rows counted from its row {start}: {error}") from error
        yield words, mapped_vectors
        start += len(words)


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


def _refuse_line_ends(words: Sequence[str], path: Path) -> None:
    for word in words:
        if any(c in word for c in "\r\n"):
            raise UserError(f"{path} has the word {word!r}: words must hold no line end.")


def with_pairs(source: Space, target: Space, pairs: Pairs, are_rows: bool, path: Path) -> Space:
    """The source with its known pairs.

    Args:
      source: the space that is mapped.
      target: the space that it is mapped onto.
      pairs: those of the file.
      are_rows: whether they are row numbers if the file does not say what they are.
      path: of the file, for messages.

    Raises:
      UserError: a pair is to be of row numbers and is not, or none is in both spaces.
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
    try:
        found = dictionary.lookup(entries, *words)
    except UserError as error:
        hint = " Give --pair_rows if they are row numbers." * all(map(str.isdecimal, entries[0]))
        raise UserError(f"{path}: {error}{hint}") from error
    return source._replace(pairs=found.pairs, num_unknown=found.num_missing)


def write_blocks(path: Path, blocks: Iterator[Block]) -> int:
    """Writes words and vectors that come in blocks, and returns the number of rows.

    The file appears when it is complete. Its suffix is a key of `WRITERS`: `.npy` gets the vectors
    alone; `.parquet` the columns, and `.npz` the arrays, `words` and `vectors`; `.vec` and `.txt`
    are word2vec text. Blocks are written as they come, but for `.npz`, which gathers them.

    Raises:
      UserError: another suffix, or the file can't be written.
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
    for start in tqdm(range(0, len(words), rows), desc="writing vectors", unit="block", delay=2):
        yield words[start : start + rows], np.asarray(vectors[start : start + rows])


def _write_npy(file: BinaryIO, blocks: Iterator[Block]) -> int:
    def header(count, dimension):
        content = io.BytesIO()
        stated = {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
        npy_format.write_array_header_1_0(content, stated)
        return content.getvalue()

    def rows(_, vectors):
        yield np.ascontiguousarray(vectors, "<f4").data

    return _write_counted(file, blocks, header, rows)


def _write_text(file: BinaryIO, blocks: Iterator[Block]) -> int:
    def header(count, dimension):
        return f"{count} {dimension}".ljust(20).encode() + b"\n"

    def rows(words, vectors):
        form = " ".join(["%.6g"] * vectors.shape[1])
        for word, vector in zip(words, vectors, strict=True):
            yield f"{word} {form % tuple(vector.tolist())}\n".encode()

    return _write_counted(file, blocks, header, rows)


def _write_counted(
    file: BinaryIO,
    blocks: Iterator[Block],
    header: Callable[[int, int], bytes],
    rows: Callable[..., Iterator[bytes | memoryview]],
) -> int:
    """Writes a header with the number of rows, whose length does not depend on it, and rows."""
    file.write(header(0, 0))
    count, dimension = 0, 0
    for words, vectors in blocks:
        file.writelines(rows(words, vectors))
        count += len(words)
        dimension = vectors.shape[1]
    file.seek(0)
    file.write(header(count, dimension))
    return count


def _write_npz(file: BinaryIO, blocks: Iterator[Block]) -> int:
    words, vectors = map(np.concatenate, zip(*blocks, strict=True))
    np.savez(file, words=words, vectors=vectors)
    return len(words)


def _write_parquet(file: BinaryIO, blocks: Iterator[Block]) -> int:
    first = next(blocks)
    dimension = first[1].shape[1]
    kinds = {"words": pa.string(), "vectors": pa.list_(pa.float32(), dimension)}
    count = 0
    with pq.ParquetWriter(file, pa.schema(kinds), use_dictionary=False) as writer:
        for words, vectors in itertools.chain([first], blocks):
            lists = pa.FixedSizeListArray.from_arrays(vectors.ravel(), dimension)
            writer.write_batch(pa.record_batch([pa.array(words), lists], schema=writer.schema))
            count += len(words)
    return count


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
