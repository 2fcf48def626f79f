"""IDX, the file format in which MNIST and similar image sets are published."""

import io
import math
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from common.data.readers.line_files import opened
from common.errors import UserError


def read(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """Reads an IDX file, or that with .gz appended; UserError: there is none, or as `parse`."""
    compressed = path.with_name(f"{path.name}.gz")
    with opened(path if path.exists() or not compressed.exists() else compressed) as file:
        return parse(file, dimensions, str(path))


def parse(file: io.BufferedIOBase, dimensions: int, name: str) -> UInt8[np.ndarray, "..."]:
    """Reads an array of bytes: 0, 0, 8 (their type), dimensions; 4 bytes for each size; the data.

    UserError, with the name: another format, or more or fewer bytes than the header states.
    """
    header = file.read(4 + 4 * dimensions)
    sizes = np.frombuffer(header[4:].ljust(4 * dimensions, b"\0"), ">u4").tolist()
    count = math.prod(sizes)
    data = bytearray()  # grows with the file, whatever the header states
    while len(data) <= count and (part := file.read(1 << 20)):
        data += part
    if header[:4] != bytes((0, 0, 8, dimensions)) or not 0 < len(data) == count:
        raise UserError(
            f"{name} is no complete IDX file of {dimensions} dimensions of bytes: fetch the "
            "files again as they are published."
        )
    return np.frombuffer(data, np.uint8).reshape(sizes)
