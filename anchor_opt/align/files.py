"""Files of `python -m anchor_opt.align`: the spaces and pairs it reads, the results it writes."""

import hashlib
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float, Shaped
from numpy.lib import format as npy_format
from tqdm import tqdm

from anchor_opt.align.space import Space
from common.alignment import Aligner
from common.arrays import AnyArray
from common.data.readers import column_files, numpy_files, vector_files
from common.data.readers.line_files import MAX_LINE
from common.data.readers.vector_files import STRICT, Block, Form
from common.errors import UserError, writing
from common.run.workdir import replacing, write_atomically

MAX_WORD = MAX_LINE // 2  # bytes of a word in text, so that a line holds its numbers as well


def read_space(path: Path, num_rows: int | None = None, form: Form = STRICT) -> Space:
    """Reads a file by `vector_files.read`; its name up to a dot is that of the space.

    Raises:
      UserError: the file can't be read, or has a word that the tables of results can't hold.
    """
    words, vectors = vector_files.read(
        path, num_words=num_rows, form=form, distinct=False, progress=True
    )
    for word in words:
        if not _fits_text(word):
            raise UserError(
                f"{path} has the word {word!r}: words must not be empty or too long or hold a tab "
                "or line end, so change it, or identify the rows of a table by an --id_column."
            )
    return Space(path.name.split(".")[0], words, vectors)


def content_hash(path: Path) -> str:
    """A hash of the content of a file, or of the shards in a folder."""
    digest = hashlib.sha256()
    for part in column_files.files_of(path):
        with part.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def map_blocks(
    path: Path, aligner: Aligner, form: Form = STRICT, *, rows: bool = False
) -> Iterator[Block]:
    """Maps the vectors of a file a block of rows at a time.

    Args:
      path: the file.
      aligner: the map.
      form: see `vector_files.Form`.
      rows: whether all columns of a table are passed on, see `vector_files.stream`.

    Raises:
      UserError: as `vector_files.stream` and `Aligner.apply`.
    """
    start = 0
    blocks = vector_files.stream(path, form=form, distinct=False, rows=rows, progress=True)
    for block in blocks:
        try:
            mapped_vectors = np.asarray(aligner.apply(block.vectors))
        except UserError as error:
            raise UserError(f"{path}, with rows counted from its row {start}: {error}") from error
        yield block._replace(vectors=mapped_vectors)
        start += len(block.words)


def _fits_text(word: str) -> bool:
    """Whether a line or a field of a table can hold a word, so that it is read back."""
    return 0 < len(word.encode()) <= MAX_WORD and not re.search(r"[\t\r\n]", word)


def read_known_pairs(path: Path, source: Space, target: Space) -> Space:
    """The source with its known pairs of words, or of row numbers where a space has no words.

    Raises:
      UserError: the file can't be read, none of its pairs is in both spaces, or several rows of a
        space have a word of them.
    """
    pairs = list(dict.fromkeys(vector_files.read_pairs(path)))
    source_row, target_row = (
        _rows_of(set(words), space, path)
        for words, space in zip(zip(*pairs, strict=True), (source, target), strict=True)
    )
    rows = [(source_row[s], target_row[t]) for s, t in pairs if s in source_row and t in target_row]
    if not rows:
        raise UserError(
            f"None of the {len(pairs)} pairs of {path} is in both spaces (the first is "
            f"'{pairs[0][0]}', '{pairs[0][1]}'): give words of the source, then of the target."
        )
    return source._replace(pairs=np.array(rows, np.int64), num_unknown=len(pairs) - len(rows))


def _rows_of(words: Set[str], space: Space, path: Path) -> dict[str, int]:
    """The row of each of the words that the space has."""
    rows: dict[str, int] = {}
    for row, word in enumerate(space.words):
        if word in words and rows.setdefault(word, row) != row:
            raise UserError(
                f"{path} has a pair with '{word}', the word of several rows of '{space.name}': "
                "remove the pair, or choose what identifies rows (--id_column of a table)."
            )
    return rows


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
    for start in tqdm(range(0, len(words), rows), desc="writing vectors", unit="block", delay=2):
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
            if not _fits_text(word):
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
