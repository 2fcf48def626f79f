"""Reading .npz, .npy and .safetensors files: no pickles, no more memory than the file has.

The words of an .npz are stored by `word_arrays`, so that the size of the file follows their length.

`np.load` allocates what the header of an array states before it looks at the data, so that a file
of a thousand bytes can ask for a terabyte, and on damaged files it raises many types of errors.
"""

import itertools
import json
import math
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import safetensors
from jaxtyping import Shaped
from numpy.lib import format as npy_format

MAX_RATIO = 1032  # of sizes before and after deflate, which compresses no further
# Versions 2 and 3 differ in the encoding of field names, which plain arrays do not have.
HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
    (3, 0): npy_format.read_array_header_2_0,
}
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": jnp.bfloat16}


def npz(path: Path, wanted: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz, those of `wanted` that it has or all.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no complete .npz, holds pickled objects, or states sizes it does not have.
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


def npy(path: Path) -> Shaped[np.ndarray, "..."]:
    """Maps the array of a .npy into memory, read-only.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no complete .npy, or holds pickled objects.
    """
    path.open("rb").close()
    try:
        array = npy_format.open_memmap(path, mode="r")
        _check(array.dtype)
    except Exception as error:
        raise ValueError(f"no complete .npy of a plain array ({error})") from error
    return array


def safetensors_matrices(path: Path) -> dict[str, np.ndarray]:
    """Maps the matrices of floats of a .safetensors into memory, read-only.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no complete .safetensors.
    """
    with path.open("rb") as file:
        try:
            safetensors.safe_open(path, "numpy")  # checks that the tensors fill the file
            start = 8 + int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(start - 8))
        except Exception as error:  # safetensors raises an error of its own
            raise ValueError(f"no complete .safetensors ({error})") from error
    return {
        name: np.memmap(
            path, FLOATS[x["dtype"]], "r", start + x["data_offsets"][0], tuple(x["shape"])
        )
        for name, x in header.items()
        if name != "__metadata__" and x["dtype"] in FLOATS and len(x["shape"]) == 2
    }


def word_arrays(words: Sequence[str]) -> dict[str, np.ndarray]:
    """Arrays of plain numbers that hold words of any length.

    NumPy's own array of strings gives each word the room of the longest, 4 bytes a character.

    Returns:
      `words_utf8`, the bytes of all words one after another, and `words_offsets` [n + 1]: word i is
      `words_utf8[words_offsets[i] : words_offsets[i + 1]]`.
    """
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"words_utf8": np.frombuffer(b"".join(encoded), np.uint8), "words_offsets": offsets}


def words_of(arrays: Mapping[str, np.ndarray]) -> list[str] | None:
    """The words in the form of `word_arrays` or in an array `words` of strings; None: none.

    Raises:
      ValueError: the arrays are of another form, or hold no words in UTF-8.
    """
    if "words" in arrays:
        if arrays["words"].dtype.kind != "U":
            raise ValueError(f"words of type {arrays['words'].dtype}")
        words = arrays["words"].ravel().tolist()
        for word in words:
            word.encode()  # half of a surrogate pair raises a ValueError
        return words
    if "words_utf8" not in arrays:
        return None
    content, offsets = arrays["words_utf8"], arrays.get("words_offsets", np.zeros(0))
    if (
        (content.dtype, offsets.dtype.kind) != (np.uint8, "i")
        or (content.ndim, offsets.ndim) != (1, 1)
        or offsets[:1].tolist() != [0]
        or offsets[-1] != len(content)
        or (offsets[1:] < offsets[:-1]).any()
    ):
        raise ValueError("offsets of words that do not fit")
    letters = content.tobytes()
    return [letters[start:end].decode() for start, end in itertools.pairwise(offsets.tolist())]


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.file_size > MAX_RATIO * (member.compress_size + 1):
        raise ValueError(f"{member.filename} cannot be as large as it states")
    with archive.open(member) as file:
        version = npy_format.read_magic(file)
        shape, _, dtype = HEADERS[version](file)
        _check(dtype)
        if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename} does not have the size that its header states")
    with archive.open(member) as file:
        return npy_format.read_array(file, allow_pickle=False)


def _check(dtype: np.dtype) -> None:
    # Items of size zero would make the size of the file independent of their number.
    if dtype.hasobject or dtype.kind == "V" or not dtype.itemsize:
        raise ValueError(f"items of type {dtype}")
