"""Reading .npz, .npy and .safetensors files: no pickles, no more memory than the file has.

The words of an .npz are stored by `word_arrays`, so that the size of the file follows their length.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors
from jaxtyping import Shaped
from numpy.lib import format as npy_format

from common.files import check_dtype

FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


def npy(path: Path) -> Shaped[np.ndarray, "..."]:
    """Maps a .npy into memory, read-only; OSError if it cannot be opened, ValueError if damaged."""
    path.open("rb").close()
    try:
        array = npy_format.open_memmap(path, mode="r")
        check_dtype(array.dtype)
    except Exception as error:
        raise ValueError(f"no complete .npy of a plain array ({error})") from error
    return array


def safetensors_matrices(path: Path) -> dict[str, np.ndarray]:
    """Maps the matrices of floats of a .safetensors into memory, read-only; errors as of `npy`."""
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
    """`words_utf8`, all words as bytes, and their `words_offsets` [n + 1].

    NumPy's own array of strings gives each word the room of the longest, 4 bytes a character.
    """
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"words_utf8": np.frombuffer(b"".join(encoded), np.uint8), "words_offsets": offsets}


def words_of(arrays: Mapping[str, np.ndarray]) -> list[str] | None:
    """The words of `word_arrays`, or of an array `words` of strings; None if there are none.

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
