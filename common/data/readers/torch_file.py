"""The tensors of a PyTorch checkpoint, read without PyTorch and without running code of the file.

A checkpoint is a pickle, which can call any function that it names. Here it can name only those
that describe tensors, each of which stands for a harmless one of ours; any other name is an error.
There are two layouts (torch/serialization.py), both with items of little-endian byte order:

* zip, since PyTorch 1.6: `<folder>/data.pkl` is the pickle, and `<folder>/data/<key>` has the items
  of a storage;
* legacy: pickles of a magic number, the protocol's version, sizes of types, the checkpoint and the
  list of the storages' keys; then for each storage the number of items in 8 bytes, and the items.

A tensor is a strided view of a storage: its item (i, j) is item offset + i s_0 + j s_1 there.
"""

import io
import math
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from common.errors import UserError

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
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


class _Storage(NamedTuple):
    key: str
    dtype: str  # a value of ITEM_TYPES
    size: int  # number of items

    @property
    def num_bytes(self) -> int:
        return self.size * np.dtype(self.dtype).itemsize


class _Tensor(NamedTuple):
    """Arguments of torch._utils._rebuild_tensor_v2, as the file has them; `_array` checks them."""

    storage: _Storage
    offset: int  # in items, as are the strides
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read(content: bytes, name: str) -> dict[str, np.ndarray]:
    """Reads a dictionary of tensors, a `state_dict`: name -> array; UserError for anything else."""
    try:
        is_zip = content.startswith(b"PK")
        checkpoint, storages = _read_zip(content) if is_zip else _read_legacy(content)
        if not isinstance(checkpoint, dict):
            raise ValueError(f"it holds one object of type {type(checkpoint).__name__}")
        return {key: _array(key, tensor, storages) for key, tensor in checkpoint.items()}
    except Exception as error:  # pickle and zipfile raise many types on damaged files
        raise UserError(
            f"{name} is no complete PyTorch checkpoint of named tensors alone "
            f"({type(error).__name__}: {str(error)!r:.200}): fetch it again, or save a state_dict."
        ) from error


def _read_zip(content: bytes) -> tuple[Any, dict[str, bytes]]:
    """The checkpoint, tensors being `_Tensor`s, and the content of each storage."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.filename: member for member in archive.infolist()}
        compressed = any(member.compress_type for member in members.values())
        if compressed or sum(member.file_size for member in members.values()) > len(content):
            raise ValueError("members are compressed or overlap")
        (path,) = [path for path in members if path.endswith("/data.pkl")]
        folder = path.removesuffix("data.pkl")
        order = f"{folder}byteorder"  # stated since PyTorch 2.1
        if order in members and archive.read(order) != b"little":
            raise ValueError("its byte order is not little-endian")
        unpickler = _Unpickler(io.BytesIO(archive.read(path)))
        checkpoint = unpickler.load()
        return checkpoint, {key: archive.read(f"{folder}data/{key}") for key in unpickler.storages}


def _read_legacy(content: bytes) -> tuple[Any, dict[str, bytes]]:
    """As `_read_zip`."""
    file = io.BytesIO(content)
    header = [_Unpickler(file).load() for _ in range(3)]
    if header[:2] != [MAGIC_NUMBER, PROTOCOL_VERSION] or header[2]["little_endian"] is not True:
        raise ValueError("its first bytes are not those of a little-endian checkpoint")
    unpickler = _Unpickler(file)
    checkpoint = unpickler.load()
    keys = _Unpickler(file).load()
    if sorted(keys) != sorted(unpickler.storages):
        raise ValueError("its list of storages is not that of its tensors")
    storages = {}
    for key in keys:
        storage = unpickler.storages[key]
        if int.from_bytes(file.read(8), "little") != storage.size:
            raise ValueError(f"the storage {key} has not {storage.size} items")
        storages[key] = file.read(storage.num_bytes)
    if file.read(1):
        raise ValueError("it goes on after its last storage")
    return checkpoint, storages


class _Unpickler(pickle.Unpickler):
    """Reads the pickle at the position of a file; only tensors and containers can result."""

    def __init__(self, file: io.BytesIO):
        start = file.tell()
        for opcode, argument, _ in pickletools.genops(file):
            # The memo is an array, which grows to the largest index that the pickle names.
            if opcode.name in ("PUT", "LONG_BINPUT") and (argument or 0) > file.tell():
                raise pickle.UnpicklingError("the index of a memo is too large")
        file.seek(start)
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name of the pickle stands for; of a storage's type, the type of items."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            # A function of its own for each pickle, which can set a function's attributes.
            return lambda storage, offset, shape, strides, *_: _Tensor(
                storage, offset, shape, strides
            )
        if module == "torch" and name in ITEM_TYPES:
            return ITEM_TYPES[name]  # a string can be neither called nor changed by the pickle
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """Returns the description of a storage, which the pickle refers to by its key."""
        kind, dtype, key, _, size, *view = pid
        if kind != "storage" or dtype not in ITEM_TYPES.values() or view not in ([], [None]):
            raise pickle.UnpicklingError("a reference is not one to a storage")
        if not isinstance(key, str) or type(size) is not int or size < 0:
            raise pickle.UnpicklingError("a storage has no size")
        storage = _Storage(key, dtype, size)
        if self.storages.setdefault(key, storage) != storage:
            raise pickle.UnpicklingError(f"the storage {key} has two descriptions")
        return storage


def _array(name: Any, tensor: Any, storages: dict[str, bytes]) -> np.ndarray:
    """A copy of the tensor's items, after checking that they are inside its storage."""
    if not isinstance(name, str) or not isinstance(tensor, _Tensor):
        raise ValueError(f"{name!r:.50} is a {type(tensor).__name__}")
    storage, offset, shape, strides = tensor
    if not isinstance(storage, _Storage) or len(storages[storage.key]) != storage.num_bytes:
        raise ValueError(f"{name} has no storage of the size that it states")
    numbers = (offset, *shape, *strides)
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError(f"{name} has a shape, stride or offset that is no natural number")
    if math.prod(shape) > storage.size:  # strides of zero would repeat items without limit
        raise ValueError(f"{name} has more items than its storage")
    itemsize = np.dtype(storage.dtype).itemsize
    array = np.ndarray(  # raises a ValueError if an item is outside the buffer
        shape,
        storage.dtype,
        storages[storage.key],
        offset * itemsize,
        [stride * itemsize for stride in strides],
    )
    return np.array(array, order="C")
