import gzip
import struct

import numpy as np
import pytest

from common.data.sets import images
from common.errors import UserError

OVERFLOWING = struct.pack(">3I", 1_620_712, 878_418, 38_871_733)


def content(array, kind=8):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes((0, 0, kind, array.ndim)) + sizes + array.tobytes()


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, number in (("train", 5), ("t10k", 3)):
        pictures = rng.integers(0, 256, (number, 28, 20), dtype=np.uint8)
        packed = gzip.compress(content(pictures)) if name == "train" else content(pictures)
        end = ".gz" if name == "train" else ""
        (tmp_path / f"{name}-images-idx3-ubyte{end}").write_bytes(packed)
        labels = np.arange(number, dtype=np.uint8)
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(content(labels))
    return tmp_path


def test_both_splits_are_read_compressed_or_not(folder):
    train, test = images.read_idx(folder, "train"), images.read_idx(folder, "test")
    rng = np.random.default_rng(0)
    for part, number in ((train, 5), (test, 3)):
        expected = rng.integers(0, 256, (number, 28, 20), dtype=np.uint8)
        np.testing.assert_array_equal(part.images, expected[..., None])
        np.testing.assert_array_equal(part.labels, np.arange(number))


@pytest.mark.parametrize(
    "broken",
    [
        lambda good: good[:-1],
        lambda good: good + b"x",
        lambda good: good[:9],
        lambda good: good[:4] + b"\xff" * 12 + good[16:],
        # The product of the sizes is 3 x 2^64 + 1,680, which is 1,680 in 64 bits.
        lambda good: good[:4] + OVERFLOWING + good[16:],
        lambda good: b"",
        lambda good: b"\x89PNG" + good,
        lambda good: good[:2] + b"\x0d" + good[3:],  # another type
        lambda good: good[:3] + b"\x01" + good[4:],
    ],
)
def test_a_broken_file_is_a_user_error(folder, broken):
    path = folder / "t10k-images-idx3-ubyte"
    path.write_bytes(broken(path.read_bytes()))
    with pytest.raises(UserError, match="no complete IDX file of 3 dimensions of bytes"):
        images.read_idx(folder, "test")


def test_damaged_compression_and_wrong_or_missing_files_are_user_errors(folder):
    path = folder / "train-images-idx3-ubyte.gz"
    good = path.read_bytes()
    for content_ in (good[:-20], b"no gzip", good[:40] + bytes(20) + good[60:]):
        path.write_bytes(content_)
        with pytest.raises(UserError, match="Cannot read"):
            images.read_idx(folder, "train")
    path.unlink()
    with pytest.raises(UserError, match=r"Cannot read .*ubyte\.gz .*No such file"):
        images.read_idx(folder, "train")
    (folder / "t10k-labels-idx1-ubyte").write_bytes(content(np.zeros(4, np.uint8)))
    with pytest.raises(UserError, match="3 images and 4 labels"):
        images.read_idx(folder, "test")
    with pytest.raises(UserError, match="no split 'train\\[:5\\]'"):
        images.read_idx(folder, "train[:5]")
