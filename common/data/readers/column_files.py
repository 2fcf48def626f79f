"""Reading vectors from parquet and Arrow files, a block of rows at a time.

One column holds the vectors, lists of numbers of one length, and one may hold the words, which
identify the rows. Without a name given for it, the column of vectors is that of lists of floats, or
if there is none that of lists of integers, and the column of words is that of strings; if several
fit, it is `vectors` or `words`. A folder of shards is read as one file.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float
from pyarrow import ipc, types

from common.errors import UserError

TEXT_ROWS = 1 << 14  # that are read at a time
BUFFER = 1 << 20  # bytes that are read of a column at a time, so that row groups may be large
SUFFIXES = (".parquet", ".arrow", ".feather")
VECTOR_FLAGS = "--vector_column (of migrate --old_column and --new_column)"


class Rows(NamedTuple):
    """Rows of a table, all of their columns, and the name of the column of their vectors."""

    batch: pa.RecordBatch
    vectors: str


class Block(NamedTuple):
    """Some rows of a file: words (empty: it has none), vectors, and all columns if asked for."""

    words: list[str]
    vectors: Float[np.ndarray, "n d"]
    rows: Rows | None = None


class Wanted(NamedTuple):
    """Columns of the words (of any type) and of the vectors; `rows`: all, in place of the words."""

    ids: str | None = None
    vectors: str | None = None
    rows: bool = False


def blocks(path: Path, block_rows: int, num_rows: int | None, wanted: Wanted) -> Iterator[Block]:
    """Yields the rows of a file, or of all shards in a folder, at most `block_rows` each.

    Of an Arrow file a record batch is held in memory. No row group behind `num_rows` rows is read.
    UserError: a file is damaged or of another format, no column or several fit, rows are of unequal
    length, or shards have different columns; OSError: a file cannot be opened.
    """
    count, dimension, schema = 0, None, None
    for file in files_of(path):
        left = None if num_rows is None else num_rows - count
        for block in _blocks(file, block_rows, left, dimension, wanted):
            if block.rows:
                rows = _with_partitions(block.rows, file.relative_to(path))
                block, schema = block._replace(rows=rows), schema or rows.batch.schema
                if not rows.batch.schema.equals(schema):
                    raise UserError(
                        f"{file} has columns of other names or types than the first file of "
                        f"{path}: give shards of one table."
                    )
            if not np.isnan(block.vectors[:, 0]).all():  # rows of null alone have no length
                dimension = block.vectors.shape[1]
            count += len(block.vectors)
            yield block
        if count == num_rows:
            return


def texts(path: Path, columns: Mapping[str, str]) -> list[list[str]]:
    """Columns, by their flags, of a file or all shards in a folder, as texts; null is empty.

    UserError: as `blocks`, or there is no such column.
    """

    def chosen(schema: pa.Schema) -> list[str]:
        for flag, name in columns.items():
            _check_column(schema, path, name, flag)
        return list(columns.values())

    found: list[list[str]] = [[] for _ in columns]
    for file in files_of(path):
        with _opened(file) as opened:
            for batch in _table(opened, file, TEXT_ROWS, chosen)[1]:
                for values, name in zip(found, columns.values(), strict=True):
                    values += _as_texts(batch.column(name))
    return found


def files_of(path: Path) -> list[Path]:
    """The file itself; of a folder all its parquet files, or else Arrow files, in order of name.

    Those in the folders of partitions (`year=2024`) are among them. Numbers in names count as such.
    Of a data set that Hugging Face's `datasets` has saved, those that it names. UserError: none.
    """
    if not path.is_dir():
        return [path]
    state = path / "state.json"
    if state.is_file():
        try:
            names = [Path(x["filename"]).name for x in json.loads(state.read_text())["_data_files"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{state} is damaged: save the data set again.") from error
        return [path / name for name in names]
    for suffix in SUFFIXES:
        found = {x.relative_to(path): x for x in path.rglob("*") if x.suffix.lower() == suffix}
        files = [name for name in found if not any(part[0] in "._" for part in name.parts)]
        if files:
            return [found[name] for name in sorted(files, key=_place)]
    raise UserError(
        f"Cannot read {path} (a directory without parquet or Arrow files): give the file of "
        "vectors, or the folder with its shards."
    )


def _with_partitions(rows: Rows, file: Path) -> Rows:
    """The rows with a column for each folder `name=value` in which their file is."""
    batch = rows.batch
    for folder in file.parts[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name not in batch.schema.names:
            batch = batch.append_column(name, pa.array([unquote(value)] * len(batch)))
    return rows._replace(batch=batch)


def _place(path: Path) -> list[tuple[bool, int, str]]:
    parts = re.split(r"([0-9]+)", str(path))
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _blocks(
    path: Path, block_rows: int, num_rows: int | None, dimension: int | None, wanted: Wanted
) -> Iterator[Block]:
    """The blocks of one file; of vectors of `dimension` numbers, or as many as its first has."""
    with _opened(path) as file:
        columns, batches = _table(
            file, path, block_rows, lambda schema: _columns(schema, path, wanted), wanted.rows
        )
        rows = 0
        for whole in batches:
            (whole if wanted.rows else whole.select(columns)).validate(full=True)
            for start in range(0, len(whole), block_rows):
                left = block_rows if num_rows is None else min(block_rows, num_rows - rows)
                batch = whole.slice(start, left)
                column = batch.column(columns[0])
                vectors = column.storage if isinstance(column, pa.ExtensionArray) else column
                # pyarrow makes its functions when it is imported.
                lengths = pc.list_value_length(vectors)  # pyright: ignore[reportAttributeAccessIssue]
                lengths = lengths.to_numpy(zero_copy_only=False)
                null = vectors.is_null().to_numpy(zero_copy_only=False)
                dimension = dimension or next(iter(lengths[~null]), 0)
                wrong = ((lengths != dimension) | (lengths == 0)) & ~null
                if wrong.any():
                    raise UserError(
                        f"{path}, row {rows + int(wrong.argmax()) + 1} of '{columns[0]}' has not "
                        "as many numbers as the first row, or none: give vectors of one length."
                    )
                table = np.full((len(batch), int(dimension) or 1), np.nan, np.float32)
                with np.errstate(over="ignore"):  # infinity and NaN are refused by the caller
                    flat = vectors.flatten().to_numpy(zero_copy_only=False)
                    table[~null] = flat.reshape(-1, table.shape[1])
                rows += len(table)
                words = _as_texts(batch.column(columns[1])) if len(columns) > 1 else []
                yield Block(words, table, Rows(batch, columns[0]) if wanted.rows else None)
                if rows == num_rows:
                    return


def _as_texts(column: pa.Array) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _table(
    file: pa.NativeFile,
    path: Path,
    block_rows: int,
    choose: Callable[[pa.Schema], list[str]],
    whole: bool = False,
) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The columns that are chosen by a file's schema, and its rows, which may be read `whole`."""
    if path.suffix.lower() == ".parquet":
        # Pre-buffering would hold row groups in memory.
        table = pq.ParquetFile(
            file, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
        )
        columns = choose(table.schema_arrow)
        read = None if whole else columns
        return columns, table.iter_batches(block_rows, columns=read, use_threads=False)
    if file.read(6) == b"ARROW1":
        reader = ipc.open_file(file)
        batches = map(reader.get_batch, range(reader.num_record_batches))
    else:
        file.seek(0)
        batches = reader = ipc.open_stream(file)
    return choose(reader.schema), batches


def _columns(schema: pa.Schema, path: Path, wanted: Wanted) -> list[str]:
    """The names of the column of vectors and, if there is one, of that of words."""
    for name, flag in ((wanted.ids, "--id_column"), (wanted.vectors, "--vector_column")):
        if name is not None:
            _check_column(schema, path, name, flag)
    lists = [(field.name, kind) for field in schema if (kind := _items(field.type))]
    floats = [name for name, kind in lists if types.is_floating(kind)]
    integers = [name for name, kind in lists if types.is_integer(kind)]
    vectors = wanted.vectors or _only(floats or integers, "vectors", VECTOR_FLAGS, path)
    if vectors is None or vectors not in floats + integers:
        raise UserError(
            f"{path} has no column of lists of numbers ({', '.join(schema.names[:20])}), or "
            "--vector_column is another one: store the vectors in one."
        )
    if wanted.rows:
        return [vectors]
    texts = [field.name for field in schema if _holds_words(field.type)]
    words = wanted.ids or _only(texts, "words", "--id_column", path)
    return [vectors, words] if words else [vectors]


def _check_column(schema: pa.Schema, path: Path, name: str, flag: str) -> None:
    if schema.names.count(name) != 1:
        raise UserError(
            f"{path} has not one column '{name}' but {', '.join(schema.names[:20])}: choose "
            f"another {flag}."
        )


def _only(found: list[str], name: str, flag: str, path: Path) -> str | None:
    """The only column that is found, or of several the one of this name; None: there is none."""
    if len(found) > 1 and found.count(name) != 1:
        listed = ", ".join(f"'{column}'" for column in found[:20])
        raise UserError(
            f"{path} has several columns of {name} ({listed}): name one of them '{name}', choose "
            f"one by {flag}, or store it alone."
        )
    return name if len(found) > 1 else next(iter(found), None)


def _items(kind: pa.DataType) -> pa.DataType | None:
    """The type of the items of lists, or of a tensor of one axis; None of other columns."""
    if isinstance(kind, pa.FixedShapeTensorType) and len(kind.shape) == 1:
        kind = kind.storage_type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return kind.value_type if lists else None


def _holds_words(kind: pa.DataType) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


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
