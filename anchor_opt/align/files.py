"""Files of `python -m anchor_opt.align`: the spaces and pairs it reads, the results it writes."""

import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float, Shaped
from numpy.lib import format as npy_format
from tqdm import tqdm

from anchor_opt.align.space import Space
from common.alignment import Aligner
from common.arrays import AnyArray
from common.data.readers import vector_files
from common.errors import UserError, writing
from common.run.workdir import replacing, write_atomically

Block = tuple[Sequence[str], Float[np.ndarray, "n d"]]  # words and vectors


def read_space(path: Path, num_rows: int | None = None) -> Space:
    """Reads a file by `vector_files.read`; its name up to a dot is that of the space.

    Raises:
      UserError: the file can't be read, or a word has a tab or line end, which would break a table.
    """
    words, vectors = vector_files.read(path, num_words=num_rows, progress=True)
    _refuse_line_ends(words, path)
    return Space(path.name.split(".")[0], words, vectors)


def map_blocks(path: Path, aligner: Aligner) -> Iterator[Block]:
    """Maps the vectors of a file a block of rows at a time.

    Raises:
      UserError: as `read_space` and `Aligner.apply`.
    """
    start = 0
    for words, vectors in vector_files.stream(path, progress=True):
        _refuse_line_ends(words, path)
        try:
            mapped_vectors = np.asarray(aligner.apply(vectors))
        except UserError as error:
            raise UserError(f"{path}, with rows counted from its row {start}: {error}") from error
        yield words, mapped_vectors
        start += len(words)


def _refuse_line_ends(words: Sequence[str], path: Path) -> None:
    for word in words:
        if any(c in word for c in "\t\r\n"):
            raise UserError(f"{path} has the word {word!r}: words must hold no tab or line end.")


def read_known_pairs(path: Path, source: Space, target: Space) -> Space:
    """The source with its known pairs of words, or of row numbers where a space has no words.

    Raises:
      UserError: the file can't be read, or none of its pairs is in both spaces.
    """
    pairs = list(dict.fromkeys(vector_files.read_pairs(path)))
    source_row, target_row = (
        {word: row for row, word in enumerate(space.words)} for space in (source, target)
    )
    rows = [(source_row[s], target_row[t]) for s, t in pairs if s in source_row and t in target_row]
    if not rows:
        raise UserError(
            f"None of the {len(pairs)} pairs of {path} is in both spaces (the first is "
            f"'{pairs[0][0]}', '{pairs[0][1]}'): give words of the source, then of the target."
        )
    return source._replace(pairs=np.array(rows, np.int64), num_unknown=len(pairs) - len(rows))


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

    Raises:
      UserError: the file can't be written.
    """
    texts = [
        [f"{value:.4f}" if column.dtype.kind == "f" else str(value) for value in column]
        for column in columns.values()
    ]
    lines = ["\t".join(row) + "\n" for row in (columns, *zip(*texts, strict=True))]
    with writing(path, "--out"):
        write_atomically(path, "".join(lines).encode())
