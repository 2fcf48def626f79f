import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy_format

from common.data.readers import numpy_files

TERABYTE = 10**12


def npy(shape, dtype, data=b"", version=1):
    """A .npy whose header may state anything."""
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


def false_sizes():
    """An archive with a member of a hundred bytes that all headers state to be a terabyte."""
    content = bytearray(packed(x=npy((TERABYTE // 8,), "<f8", bytes(100))))
    size = len(npy((TERABYTE // 8,), "<f8"))
    old, new = struct.pack("<I", size + 100), struct.pack("<I", 0xFFFFFFF0)
    return bytes(content.replace(old * 2, old + new))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_complete_files_are_read(tmp_path, version):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["é", "word"]), "c": np.int32(4)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    read = numpy_files.npz(tmp_path / "a.npz")
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    assert numpy_files.npz(tmp_path / "a.npz", ("b", "none")).keys() == {"b"}
    (tmp_path / "a.npy").write_bytes(npy((2,), "<f4", b"\0" * 8, version))
    assert numpy_files.npy(tmp_path / "a.npy").tolist() == [0, 0]
    (tmp_path / "b.npz").write_bytes(packed(x=npy((2,), "<f4", b"\0" * 8, version)))
    assert numpy_files.npz(tmp_path / "b.npz")["x"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "content",
    [
        packed(x=npy((TERABYTE,), "<f8", bytes(100))),
        packed(x=npy((2, 3), "<f8", bytes(40))),
        packed(x=npy((2, 3), "<f8", bytes(56))),
        packed(x=npy((TERABYTE,), "<U0")),  # a list of such items would take memory
        packed(x=npy((1,), "|O", bytes(8))),
        packed(x=npy((1,), [("a", "<f4")], bytes(4))),
        packed(x=b"no array"),
        packed(x=npy((1,), "<f8", bytes(8)).replace(b"shape", b"((((("[:5])),
        false_sizes(),
        packed(x=npy((9,), "<f8", bytes(72)))[:-30],
        b"PK\x05\x06",
        b"",
    ],
)
def test_a_damaged_or_hostile_npz_is_refused_without_allocating_its_size(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"no complete \.npz"):
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
def test_a_damaged_or_hostile_npy_is_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"no complete \.npy"):
        numpy_files.npy(tmp_path / "a.npy")


def test_overlapping_members_are_refused(tmp_path):
    """The directory of a zip can list the same bytes many times."""
    content = packed(x=npy((1000,), "<f8", bytes(8000)))
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = content[start:end]
    entries = [entry.replace(b"x.npy", b"%c.npy" % letter) for letter in b"xyz"]
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 3, 3, 3 * len(entry), start, 0)
    (tmp_path / "a.npz").write_bytes(content[:start] + b"".join(entries) + tail)
    with pytest.raises(ValueError, match="overlap"):
        numpy_files.npz(tmp_path / "a.npz")


def test_missing_files_and_folders_raise_os_errors(tmp_path):
    for read in (numpy_files.npz, numpy_files.npy):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            read(tmp_path)
