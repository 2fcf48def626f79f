"""Complete files of arrays, and a zip that lies; test_broken_files.py has other broken ones."""

import struct

import numpy as np
import pytest

from common.data.readers import numpy_files
from tests.faults.readers import npy_header, packed


@pytest.mark.parametrize("version", [1, 2, 3])
def test_complete_files_are_read(tmp_path, version):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["é", "word"]), "c": np.int32(4)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    read = numpy_files.npz(tmp_path / "a.npz")
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    assert numpy_files.npz(tmp_path / "a.npz", ("b", "none")).keys() == {"b"}
    content = npy_header((2,), "<f4", b"\0" * 8, version)
    (tmp_path / "a.npy").write_bytes(content)
    assert numpy_files.npy(tmp_path / "a.npy").tolist() == [0, 0]
    (tmp_path / "b.npz").write_bytes(packed("", {"x.npy": content}))
    assert numpy_files.npz(tmp_path / "b.npz")["x"].tolist() == [0, 0]


def test_overlapping_members_are_refused(tmp_path):
    """The directory of a zip can list the same bytes many times."""
    content = packed("", {"x.npy": npy_header((1000,), "<f8", bytes(8000))})
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = content[start:end]
    entries = [entry.replace(b"x.npy", b"%c.npy" % letter) for letter in b"xyz"]
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 3, 3, 3 * len(entry), start, 0)
    (tmp_path / "a.npz").write_bytes(content[:start] + b"".join(entries) + tail)
    with pytest.raises(ValueError, match="overlap"):
        numpy_files.npz(tmp_path / "a.npz")
