import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy_format

from common.data import numpy_files

TERABYTE = 10**12


def npy(shape, dtype, data=b"", version=1):
    """A .npy whose header may say what is not so."""
    content = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    if version == 1:
        npy_format.write_array_header_1_0(content, header)
    else:
        npy_format.write_array_header_2_0(content, header)
    return content.getvalue().replace(b"NUMPY\2", b"NUMPY%c" % version) + data


def packed(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return content.getvalue()


def lying_zip():
    """A member of a hundred bytes whose zip entries say a terabyte too."""
    content = bytearray(packed(x=npy((TERABYTE // 8,), "<f8", bytes(100))))
    size = len(npy((TERABYTE // 8,), "<f8"))
    old, new = struct.pack("<I", size + 100), struct.pack("<I", 0xFFFFFFF0)
    return bytes(content.replace(old * 2, old + new))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_whole_files(tmp_path, version):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["é", "word"]), "c": np.int32(4)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = numpy_files.npz(tmp_path / "a.npz")
    assert found.keys() == arrays.keys() and set(numpy_files.names(tmp_path / "a.npz")) == {*"abc"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    assert numpy_files.npz(tmp_path / "a.npz", ("b", "none")).keys() == {"b"}
    (tmp_path / "a.npy").write_bytes(npy((2,), "<f4", b"\0" * 8, version))
    assert numpy_files.npy(tmp_path / "a.npy").tolist() == [0, 0]
    (tmp_path / "b.npz").write_bytes(packed(x=npy((2,), "<f4", b"\0" * 8, version)))
    assert numpy_files.npz(tmp_path / "b.npz")["x"].tolist() == [0, 0]
    assert numpy_files.names(tmp_path / "a.npy") is None


@pytest.mark.parametrize(
    "content",
    [
        packed(x=npy((TERABYTE,), "<f8", bytes(100))),
        packed(x=npy((2, 3), "<f8", bytes(40))),
        packed(x=npy((2, 3), "<f8", bytes(56))),
        packed(x=npy((TERABYTE,), "<U0")),  # a list of it would have the size that it has not
        packed(x=npy((1,), "|O", bytes(8))),
        packed(x=npy((1,), [("a", "<f4")], bytes(4))),
        packed(x=b"no array"),
        packed(x=npy((1,), "<f8", bytes(8)).replace(b"shape", b"((((("[:5])),
        lying_zip(),
        packed(x=npy((9,), "<f8", bytes(72)))[:-30],
        b"PK\x05\x06",
        b"",
    ],
)
def test_a_file_that_is_not_what_it_says(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"no whole \.npz"):
        numpy_files.npz(tmp_path / "a.npz")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        npy((TERABYTE,), "<f8", bytes(100)),
        npy((10**30,), "<f8", bytes(100)),
        npy((2, 3), "<f8", bytes(40)),
        npy((TERABYTE,), "<U0"),
        npy((1,), "|O", bytes(8)),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 70_000,
        b"",
    ],
)
def test_an_array_that_is_not_what_it_says(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"no whole \.npy"):
        numpy_files.npy(tmp_path / "a.npy")


def test_members_that_overlap(tmp_path):
    """A zip can name the same bytes many times."""
    content = packed(x=npy((1000,), "<f8", bytes(8000)))
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = content[start:end]
    entries = [entry.replace(b"x.npy", b"%c.npy" % letter) for letter in b"xyz"]
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 3, 3, 3 * len(entry), start, 0)
    (tmp_path / "a.npz").write_bytes(content[:start] + b"".join(entries) + tail)
    with pytest.raises(ValueError, match="overlap"):
        numpy_files.npz(tmp_path / "a.npz")


def test_no_file(tmp_path):
    for read in (numpy_files.npz, numpy_files.npy, numpy_files.names):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            read(tmp_path)
