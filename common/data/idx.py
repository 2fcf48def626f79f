"""Labelled images from IDX files, the format in which MNIST and similar sets are published."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from common.data.images import Images
from common.errors import UserError

PREFIX = {"train": "train", "test": "t10k"}
UINT8 = 0x08


def load(folder: Path, split: str) -> Images:
    """Reads a split from a folder with MNIST's four files.

    Args:
      folder: has train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
        t10k-labels-idx1-ubyte, each also accepted as .gz.
      split: 'train' or 'test'.

    Raises:
      UserError: another split, a missing or broken file, or files of different length.
    """
    if split not in PREFIX:
        raise UserError(f"IDX files have no split '{split}': choose train or test.")
    images = read(folder / f"{PREFIX[split]}-images-idx3-ubyte", dimensions=3)
    labels = read(folder / f"{PREFIX[split]}-labels-idx1-ubyte", dimensions=1)
    if len(images) != len(labels):
        raise UserError(
            f"The {split} files in {folder} hold {len(images)} images and {len(labels)} labels: "
            "take both from one set."
        )
    return Images(images[..., None], labels.astype(int), split)


def read(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """Reads one IDX file: the bytes 0, 0, type, number of dimensions; 4 bytes a size; the data.

    Args:
      path: the file; if there is none, it is read from the compressed file with .gz appended.
      dimensions: the number of dimensions that it must have; the type must be unsigned bytes.

    Raises:
      UserError: no such file, another format, or more or fewer bytes than the header states.
    """
    compressed = path.with_name(f"{path.name}.gz")
    try:
        with path.open("rb") if path.exists() else gzip.open(compressed) as file:
            header = file.read(4 + 4 * dimensions)
            sizes = np.frombuffer(header[4:].ljust(4 * dimensions, b"\0"), ">u4").tolist()
            count = math.prod(sizes)
            data = bytearray()  # grows with the file, whatever the header states
            while len(data) <= count and (part := file.read(1 << 20)):
                data += part
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"Cannot read {path} or {path.name}.gz ({error}): fetch the file again."
        ) from error
    if header[:4] != bytes((0, 0, UINT8, dimensions)) or not 0 < len(data) == count:
        raise UserError(
            f"{path} is no complete IDX file of {dimensions} dimensions of bytes: fetch MNIST's "
            "files again as they are published."
        )
    return np.frombuffer(data, np.uint8).reshape(sizes)
