"""Files that are written whole or not at all, and arrays that are read with suspicion.

`np.load` allocates what the header of an array states before it looks at the data, so that a file
of a thousand bytes can ask for a terabyte, and on damaged files it raises many types of errors.
"""

import contextlib
import io
import json
import math
import os
import uuid
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from common.errors import UserError, is_unreadable

MAX_RATIO = 1032  # of sizes before and after deflate, which compresses no further
# Versions 2 and 3 differ in the encoding of field names, which plain arrays do not have.
HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
    (3, 0): npy_format.read_array_header_2_0,
}


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` atomically when the block ends without an error."""
    half = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.half")
    try:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with half.open("wb") as file:
                yield file
            os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds the path to an OSError; the errors of a full disk do not have it."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Writes a file by `replacing`."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Writes indented JSON by `replacing`, as `as_json` changes the value."""
    write_atomically(path, (json.dumps(as_json(value), indent=1) + "\n").encode())


def as_json(value: Any) -> Any:
    """The value as it is read from JSON, with None for NaN and infinity."""
    return json.loads(json.dumps(value), parse_constant=lambda word: None)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays to an .npz by `replacing`.

    The format has a checksum of each array, but not of its directory, where a flipped bit can hide
    an array. So a checksum of the whole file is stored as the archive's comment.
    """
    buffer = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(buffer, **named)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"%08x" % 0
    with buffer.getbuffer() as content:
        content[-8:] = b"%08x" % zlib.crc32(content[:-8])
        write_atomically(path, content)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz from any source; checks the checksum of `write_arrays`.

    UserError: it is missing, damaged or no .npz of plain arrays; OSError: it cannot be read.
    """
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            if file.comment and int(content[-8:], 16) != zlib.crc32(content[:-8]):
                raise ValueError("wrong checksum")
        return read_npz(path)
    except Exception as error:  # zipfile raises many kinds of error for damaged files
        if is_unreadable(error):
            raise
        reason = f"missing or damaged ({type(error).__name__})"
        raise UserError(f"The file {path} is {reason}: delete it and run again.") from error


def read_npz(path: Path, wanted: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz, those of `wanted` that it has or all.

    OSError: it cannot be opened; ValueError: it is damaged, has pickled objects or wrong sizes.
    """
    with path.open("rb") as file:
        try:
            size = os.fstat(file.fileno()).st_size
            with zipfile.ZipFile(file) as archive:
                members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
                if wanted is not None:
                    members = {name: m for name, m in members.items() if name in wanted}
                if sum(member.compress_size for member in members.values()) > size:
                    raise ValueError("members overlap")
                return {name: _member(archive, member) for name, member in members.items()}
        except Exception as error:  # zipfile, zlib and numpy raise many types
            raise ValueError(f"no complete .npz of plain arrays ({error})") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.file_size > MAX_RATIO * (member.compress_size + 1):
        raise ValueError(f"{member.filename} cannot be as large as it states")
    with archive.open(member) as file:
        version = npy_format.read_magic(file)
        shape, _, dtype = HEADERS[version](file)
        check_dtype(dtype)
        if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename} does not have the size that its header states")
    with archive.open(member) as file:
        return npy_format.read_array(file, allow_pickle=False)


def check_dtype(dtype: np.dtype) -> None:
    """Raises a ValueError for items that are no plain numbers or texts."""
    # Items of size zero would make the size of the file independent of their number.
    if dtype.hasobject or dtype.kind == "V" or not dtype.itemsize:
        raise ValueError(f"items of type {dtype}")
