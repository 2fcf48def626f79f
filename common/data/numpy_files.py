"""numpy's files from anywhere: nothing in them is run, and none takes more memory than it says.

`np.load` makes room for what the header of a member of an `.npz` asks for before it looks at the
file, so that a thousand bytes can ask for a terabyte; on foreign bytes it raises about anything.
"""

import math
import os
import zipfile
from collections.abc import Collection
from pathlib import Path

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy_format

RATIO = 1032  # deflate packs no tighter
# 2 and 3 differ in the encoding of the names of fields, of which plain arrays have none.
HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
    (3, 0): npy_format.read_array_header_2_0,
}


def npz(path: Path, wanted: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz, those of `wanted` that it has or all.

    Raises:
      OSError: the file can't be opened.
      ValueError: it is no whole .npz, holds pickled objects, or says other sizes than it has.
    """
    with path.open("rb") as file:
        try:
            return _arrays(file, wanted)
        except Exception as error:  # zipfile, zlib and numpy's reader of headers raise many kinds
            raise ValueError(f"no whole .npz of plain arrays ({error})") from error


def npy(path: Path) -> Shaped[np.ndarray, "..."]:
    """Reads the array of a .npy, mapped from the file and read-only.

    Raises:
      OSError: the file can't be opened.
      ValueError: it is no whole .npy, or holds pickled objects.
    """
    path.open("rb").close()
    try:
        array = npy_format.open_memmap(path, mode="r")
        _check(array.dtype)
    except Exception as error:
        raise ValueError(f"no whole .npy of a plain array ({error})") from error
    return array


def names(path: Path) -> list[str] | None:
    """The names of the arrays of an .npz; None of another file.

    Raises:
      OSError: the file can't be opened.
    """
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return [name.removesuffix(".npy") for name in archive.namelist()]
        except Exception:  # `zipfile.BadZipFile`, and others where the end of the file is damaged
            return None


def _arrays(file, wanted):
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if wanted is not None:
            members = {name: member for name, member in members.items() if name in wanted}
        if sum(member.compress_size for member in members.values()) > size:
            raise ValueError("members overlap")
        return {name: _member(archive, member) for name, member in members.items()}


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.file_size > RATIO * (member.compress_size + 1):
        raise ValueError(f"{member.filename} can't be as large as it says")
    with archive.open(member) as file:
        version = npy_format.read_magic(file)
        shape, _, dtype = HEADERS[version](file)
        _check(dtype)
        if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename} has not the size that its header says")
    with archive.open(member) as file:
        return npy_format.read_array(file, allow_pickle=False)


def _check(dtype: np.dtype) -> None:
    if dtype.hasobject:
        raise ValueError("pickled objects are never loaded")
    if not dtype.itemsize or dtype.kind == "V":  # of no size: a list of them would have one
        raise ValueError(f"items of type {dtype}")
