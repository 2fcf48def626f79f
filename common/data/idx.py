"""Labelled images from IDX files, the form in which MNIST and its relatives are published."""

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
    """Reads a split from a folder of MNIST's four files, compressed or not.

    Args:
      folder: of train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
        t10k-labels-idx1-ubyte, each maybe with .gz; a dot for the last hyphen will do.
      split: 'train' or 'test'.

    Raises:
      UserError: another split, a file that is missing or broken, or files that do not belong
        together.
    """
    if split not in PREFIX:
        raise UserError(f"IDX files have no split '{split}': choose train or test.")
    images = read(_find(folder, f"{PREFIX[split]}-images", "idx3-ubyte"), dimensions=3)
    labels = read(_find(folder, f"{PREFIX[split]}-labels", "idx1-ubyte"), dimensions=1)
    if len(images) != len(labels):
        raise UserError(
            f"The {split} files in {folder} hold {len(images)} images and {len(labels)} labels: "
            "take both from one set."
        )
    return Images(images[..., None], labels.astype(int), split)


def read(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """Reads one IDX file of unsigned bytes: 0 0 type dimensions, each size as 4 bytes, the data.

    Args:
      path: of the file; compressed where its name ends in .gz.
      dimensions: that it has to have.

    Raises:
      UserError: no such file, another format, or more or fewer bytes than its header says.
    """
    opening = gzip.open if path.suffix == ".gz" else open
    try:
        with opening(path, "rb") as file:
            header = file.read(4 + 4 * dimensions)
            sizes = np.frombuffer(header[4:].ljust(4 * dimensions, b"\0"), ">u4").tolist()
            count = math.prod(sizes)
            data = bytearray()  # grows with what there is, not with what the header says
            while len(data) <= count and (part := file.read(1 << 20)):
                data += part
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"Cannot read {path} ({error}): fetch the file again.") from error
    if header[:4] != bytes((0, 0, UINT8, dimensions)):
        raise UserError(
            f"{path} is no IDX file of {dimensions} dimensions of bytes (it begins with "
            f"{header[:4].hex(' ') or 'nothing'}): give MNIST's files as they are published."
        )
    if not data or len(data) != count:
        raise UserError(
            f"{path} holds {len(data):,} bytes{' or more' if len(data) > count else ''}, its "
            f"header says {' x '.join(map(str, sizes))}: it is cut short or damaged, fetch it "
            "again."
        )
    return np.frombuffer(data, np.uint8).reshape(sizes)


def _find(folder: Path, start: str, end: str) -> Path:
    for name in (f"{start}-{end}", f"{start}.{end}"):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.exists():
                return path
    raise UserError(f"There is no {start}-{end} or {start}-{end}.gz in {folder}: put it there.")
