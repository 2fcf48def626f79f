"""Two small files, written by PyTorch 2.13 in both layouts, and pickles written by hand.

Recipe of the files: torch.save(state, path), and the same with
_use_new_zipfile_serialization=False for the legacy layout, where `state` is the state_dict of
Sequential(Linear(3, 2), BatchNorm1d(2)), whose i-th array has the values i, i + 1, ..., with the
tensors of `EXTRA`; g = torch.arange(24.0).reshape(4, 6).
"""

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from common.data.readers import torch_file
from common.errors import UserError
from tests.faults.readers import packed

FIXTURES = Path(__file__).parents[2] / "fixtures"
LAYOUTS = {name: (FIXTURES / f"torch_{name}.pt").read_bytes() for name in ("zip", "legacy")}
GRID = np.arange(24, dtype=np.float32).reshape(4, 6)
EXTRA = {
    "view": GRID[1:, 2:5].T,  # shares its storage with the next one
    "whole": GRID,
    "doubles": np.array([0.5, -2]),
    "halves": np.array([0.5, -2], np.float16),
    "bytes": np.array([[255, 0]], np.uint8),
    "booleans": np.array([True, False]),
    "none": np.zeros((0, 3), np.float32),
}


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def numbers(*values):
    return b"(" + b"".join(map(number, values)) + b"t"


def name(module, function):
    return f"c{module}\n{function}\n".encode()


def storage(key="0", size=4, kind=b"ctorch\nFloatStorage\n"):
    return b"(" + text("storage") + kind + text(key) + text("cpu") + number(size) + b"tQ"


def tensor(storage=storage(), offset=0, shape=(2, 2), strides=(2, 1)):  # noqa: B008
    rebuild = name("torch._utils", "_rebuild_tensor_v2")
    end = b"\x89" + name("collections", "OrderedDict") + b")RtR"
    return rebuild + b"(" + storage + number(offset) + numbers(*shape) + numbers(*strides) + end


def checkpoint(*entries, start=b"\x80\x02", data=np.arange(4, dtype="<f4").tobytes()):  # noqa: B008
    """A checkpoint in the zip layout, of the pickled keys and values of a dictionary."""
    pickled = start + b"}(" + b"".join(entries) + b"u."
    return packed("", {"a/data.pkl": pickled, "a/data/0": data})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_pytorch_are_read(layout):
    tensors = torch_file.read(LAYOUTS[layout], "x.pt")
    shapes = {"0.weight": (2, 3)} | dict.fromkeys(
        ("0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var"), (2,)
    )
    assert list(tensors) == [*shapes, "1.num_batches_tracked", *EXTRA]
    for i, (key, shape) in enumerate(shapes.items()):
        values = np.arange(i, i + np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(tensors[key], values, strict=True)
    np.testing.assert_array_equal(tensors["1.num_batches_tracked"], np.int64(0), strict=True)
    for key, values in EXTRA.items():
        np.testing.assert_array_equal(tensors[key], values, strict=True)
    tensors["view"][:] = -1  # a copy
    np.testing.assert_array_equal(tensors["whole"], GRID)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "call", ["os.system", "builtins.getattr", "torch._utils._rebuild_parameter"]
)
def test_other_names_are_refused_and_not_called(call, layout, tmp_path):
    mark = tmp_path / "executed"
    module, _, function = call.rpartition(".")
    attack = name(module, function) + b"(" + text(f"touch {mark}") + b"tR"
    content = checkpoint(text("a"), tensor(), text("b"), attack)
    if layout == "legacy":
        content = b"\x80\x02" + attack + b"." + LAYOUTS["legacy"]
    with pytest.raises(UserError, match=rf"it names {module}\.{function}"):
        torch_file.read(content, "x.pt")
    assert not mark.exists()
    if module == "os":  # so the attack works where pickles are allowed
        pickle.loads(attack + b".")
        assert mark.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        tensor(offset=1),
        tensor(offset=3, shape=(2,), strides=(-4,)),
        tensor(storage(size=-4)),
        tensor(storage(key="1")),
        tensor(text("bytes")),
        name("torch", "FloatStorage"),
        name("torch", "FloatStorage") + b")R",
        b"}",
    ],
)
def test_wrong_tensors_are_user_errors(wrong):
    with pytest.raises(UserError, match=r"x\.pt is no complete PyTorch checkpoint"):
        torch_file.read(checkpoint(text("a"), tensor(), text("b"), wrong), "x.pt")


def test_a_pickle_cannot_change_how_the_next_file_is_read():
    rebuild = name("torch._utils", "_rebuild_tensor_v2")
    change = rebuild + b"(N}" + text("__defaults__") + b"NstbR"
    with pytest.raises(UserError):
        torch_file.read(checkpoint(text("a"), change), "x.pt")
    assert len(torch_file.read(LAYOUTS["zip"], "x.pt")) == 14


EMPTY = b"\x80\x02}."
OTHERS = [
    checkpoint(text("a"), tensor(), data=bytes(15)),  # a storage of another length
    b"PK",
    packed("", {"a/data.pkl": b"\x80\x02K\x01."}),
    packed("", {"a/data.pkl": EMPTY, "b/data.pkl": EMPTY}),
]
OTHERS += [x[:length] for x in LAYOUTS.values() for length in range(0, len(x), 31)]


def test_other_and_truncated_files_are_user_errors():
    for content in OTHERS:
        with pytest.raises(UserError, match="no complete PyTorch checkpoint"):
            torch_file.read(content, "x.pt")
