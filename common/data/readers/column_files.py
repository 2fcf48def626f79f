"""Reading vectors from parquet and Arrow files, a block of rows at a time.

One column holds lists of floats of one length, the vectors, and at most one holds strings, the
words. If several columns fit, the vectors are the column `vectors` and the words the column
`words`. Other columns are left out.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float
from pyarrow import ipc, types

from common.errors import UserError

BUFFER = 1 << 20  # bytes that are read of a column at a time, so that row groups may be large
Block = tuple[list[str] | None, Float[np.ndarray, "n d"]]


def parquet(path: Path, block_rows: int, num_rows: int | None = None) -> Iterator[Block]:
    """Yields the words, None if there are none, and the vectors of a parquet file.

    Args:
      path: the file.
      block_rows: maximum number of rows of a block.
      num_rows: maximum number of rows to read; None: all. Row groups behind them are not read.

    Raises:
      OSError: the file cannot be opened.
      UserError: the file is damaged or of another format, no column or several columns fit, or a
        row has no vector or one of another length.
    """
    with _opened(path) as file:
        # Pre-buffering would hold row groups in memory.
        table = pq.ParquetFile(
            file, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
        )
        columns = _columns(table.schema_arrow, path)
        batches = table.iter_batches(block_rows, columns=columns, use_threads=False)
        yield from _blocks(batches, columns, path, block_rows, num_rows)


def arrow(path: Path, block_rows: int, num_rows: int | None = None) -> Iterator[Block]:
    """Yields the words and vectors of an Arrow file (Feather, version 2) or stream: see `parquet`.

    A record batch is held in memory as a whole.
    """
    with _opened(path) as file:
        if file.read(6) == b"ARROW1":
            reader = ipc.open_file(file)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            file.seek(0)
            batches = reader = ipc.open_stream(file)
        columns = _columns(reader.schema, path)
        yield from _blocks(batches, columns, path, block_rows, num_rows)


def _columns(schema: pa.Schema, path: Path) -> list[str]:
    """The names of the column of vectors and, if there is one, of that of words."""
    vectors = _fitting(schema, _holds_vectors, "vectors", path)
    if not vectors:
        raise UserError(
            f"{path} has no column of lists of floats ({', '.join(schema.names[:20])}): store the "
            "vectors in one."
        )
    return vectors + _fitting(schema, _holds_words, "words", path)


def _fitting(
    schema: pa.Schema, fits: Callable[[pa.DataType], bool], name: str, path: Path
) -> list[str]:
    """The name of the only column that fits or of that with the given name; empty: none fits."""
    found = [field.name for field in schema if fits(field.type)]
    if len(found) > 1 and found.count(name) != 1:
        listed = ", ".join(f"'{column}'" for column in found[:20])
        raise UserError(
            f"{path} has several columns of {name} ({listed}): name one of them '{name}', or store "
            "it alone."
        )
    return [name] if len(found) > 1 else found


def _holds_vectors(kind: pa.DataType) -> bool:
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return lists and types.is_floating(kind.value_type)


def _holds_words(kind: pa.DataType) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _blocks(
    batches: Iterator[pa.RecordBatch],
    columns: list[str],
    path: Path,
    block_rows: int,
    num_rows: int | None,
) -> Iterator[Block]:
    rows, dimension = 0, None
    for batch in batches:
        batch = batch.select(columns)
        batch.validate(full=True)
        for start in range(0, len(batch), block_rows):
            left = block_rows if num_rows is None else min(block_rows, num_rows - rows)
            vectors, *words = batch.slice(start, left).columns
            # pyarrow makes its functions when it is imported.
            lengths = pc.list_value_length(vectors)  # pyright: ignore[reportAttributeAccessIssue]
            lengths = lengths.to_numpy(zero_copy_only=False)
            dimension = dimension or lengths[0]  # NaN if there is no list
            wrong = (lengths != dimension) | vectors.is_null().to_numpy(zero_copy_only=False)
            if wrong.any() or not dimension:
                raise UserError(
                    f"{path}, row {rows + int(wrong.argmax()) + 1} of '{columns[0]}' has not as "
                    "many numbers as the first row, or none: give vectors of one length."
                )
            table = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, int(dimension))
            with np.errstate(over="ignore"):  # infinity is refused by the caller
                table = table.astype(np.float32)
            rows += len(table)
            yield [word or "" for word in words[0].to_pylist()] if words else None, table
            if rows == num_rows:
                return


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pa.NativeFile]:
    """Opens a file, and turns the many types of errors that pyarrow raises into a UserError."""
    path.open("rb").close()  # the system's errors
    try:
        with pa.OSFile(str(path)) as file:
            yield file
    except UserError:
        raise
    except Exception as error:
        reason = str(error).split(". ")[0]
        raise UserError(
            f"{path} is damaged or of another format than its suffix says ({reason}): write or "
            "fetch it again."
        ) from error
