"""The tensors of a PyTorch checkpoint, read without PyTorch and without running code of the file.

A checkpoint is a pickle, which can call any function that it names. Here it can name only those
that describe tensors, each of which stands for a harmless one of ours; any other name is an error.
Files come from packages, whose hashes are checked, so that nothing else is suspected of them.
There are two layouts (torch/serialization.py), both with items of little-endian byte order:

* zip, since PyTorch 1.6: `<folder>/data.pkl` is the pickle, and `<folder>/data/<key>` has the items
  of a storage;
* legacy: pickles of a magic number, the protocol's version, sizes of types, the checkpoint and the
  list of the storages' keys; then for each storage the number of items in 8 bytes, and the items.

A tensor is a strided view of a storage: its item (i, j) is item offset + i s_0 + j s_1 there.
"""

import io
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from common.errors import UserError

ITEM_TYPES = {
    "BoolStorage": "?",
    "ByteStorage": "<u1",
    "CharStorage": "<i1",
    "ShortStorage": "<i2",
    "IntStorage": "<i4",
    "LongStorage": "<i8",
    "HalfStorage": "<f2",
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
}


def read(content: bytes, name: str) -> dict[str, np.ndarray]:
    """Reads a dictionary of tensors, a `state_dict`: name -> array; UserError for anything else."""
    try:
        tensors = _read_zip(content) if content.startswith(b"PK") else _read_legacy(content)
        if not all(isinstance(tensor, np.ndarray) for tensor in tensors.values()):
            raise ValueError("it holds other things than tensors")
        return {key: np.array(tensor, order="C") for key, tensor in tensors.items()}
    except Exception as error:  # pickle and zipfile raise many types for other files
        raise UserError(
            f"{name} is no complete PyTorch checkpoint of named tensors alone "
            f"({type(error).__name__}: {str(error)!r:.200}): fetch it again, or save a state_dict."
        ) from error


def _read_zip(content: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (path,) = [path for path in archive.namelist() if path.endswith("/data.pkl")]
        unpickler = _Unpickler(io.BytesIO(archive.read(path)))
        tensors = unpickler.load()
        for key, storage in unpickler.storages.items():
            _fill(storage, archive.read(f"{path.removesuffix('.pkl')}/{key}"))
    return tensors


def _read_legacy(content: bytes) -> dict[str, Any]:
    file = io.BytesIO(content)
    for _ in range(3):  # the magic number, the version, and the sizes of types
        _Unpickler(file).load()
    unpickler = _Unpickler(file)
    tensors, keys = unpickler.load(), _Unpickler(file).load()
    for key in keys:
        storage = unpickler.storages[key]
        file.seek(8, io.SEEK_CUR)  # the number of items
        _fill(storage, file.read(storage.nbytes))
    return tensors


def _fill(storage: np.ndarray, content: bytes) -> None:
    storage.view(np.uint8)[:] = np.frombuffer(content, np.uint8)


class _Unpickler(pickle.Unpickler):
    """Reads the pickle at the position of a file; tensors are views of `storages`, still empty."""

    def __init__(self, file: io.BytesIO):
        super().__init__(file)
        self.storages: dict[str, np.ndarray] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name of the pickle stands for; of a storage's type, the type of items."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            # A function of its own for each pickle, which can set a function's attributes.
            return lambda *arguments: _tensor(*arguments[:4])
        if module == "torch" and name in ITEM_TYPES:
            return ITEM_TYPES[name]  # a string can be neither called nor changed by the pickle
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: tuple) -> np.ndarray:
        """Returns a storage, which the pickle refers to by its key, the same one for each key."""
        _, dtype, key, _, size, *_ = pid
        return self.storages.setdefault(key, np.zeros(size, dtype))


def _tensor(storage: np.ndarray, offset: int, shape: tuple, strides: tuple) -> np.ndarray:
    """A view of a storage; offset and strides are in items; ValueError: it would leave it."""
    size = storage.itemsize
    return np.ndarray(shape, storage.dtype, storage, offset * size, [size * s for s in strides])
