"""Arrays that take long to compute, kept in the cache directory under a hash of their recipe."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from absl import logging

from common.data.wheels import CACHE_VARIABLE
from common.errors import UserError
from common.workdir import read_arrays, write_arrays

Arrays = dict[str, np.ndarray]


def arrays(folder: Path, name: str, recipe: object, compute: Callable[[], Arrays]) -> Arrays:
    """Reads named arrays from `folder`, or computes them once into it; again where it is damaged.

    Args:
      folder: inside the cache directory.
      name: what the file's name begins with.
      recipe: all that determines the arrays, JSON-serialisable; tuples count as lists.
      compute: gives the arrays.

    Raises:
      UserError: the folder can't be written.
    """
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    path = folder / f"{name}-{digest[:24]}.npz"
    if path.exists():
        try:
            return read_arrays(path)
        except UserError:
            logging.warning("%s is damaged.", path)
    logging.info("Computing '%s' once into %s", name, path)
    found = {key: np.asarray(array) for key, array in compute().items()}
    try:
        write_arrays(path, found)
    except BlockingIOError:
        return found  # another process is writing the same
    except OSError as error:
        raise UserError(
            f"Cannot write {path} ({error.strerror or error}): point {CACHE_VARIABLE} at a "
            "writable folder with room."
        ) from error
    return read_arrays(path)


def digest(*arrays: np.ndarray) -> str:
    """A hash of arrays' shapes, types and values, for a recipe."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.shape}{array.dtype}".encode())
        found.update(np.ascontiguousarray(array))
    return found.hexdigest()
