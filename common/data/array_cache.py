"""Arrays that take long to compute, stored in the cache directory under a hash of their inputs."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from absl import logging

from common.data.packages import CACHE_VARIABLE
from common.errors import UserError
from common.workdir import read_arrays, write_arrays

Arrays = dict[str, np.ndarray]


def load_or_compute(
    folder: Path, name: str, recipe: object, compute: Callable[[], Arrays]
) -> Arrays:
    """Reads named arrays from `folder`; computes and stores them if they are absent or damaged.

    Args:
      folder: inside the cache directory.
      name: prefix of the file's name.
      recipe: everything that determines the arrays, JSON-serialisable. Its hash is in the file's
        name, so that another recipe is another file.
      compute: returns the arrays.

    Raises:
      UserError: the folder cannot be written.
    """
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    path = folder / f"{name}-{digest[:24]}.npz"
    if path.exists():
        try:
            return read_arrays(path)
        except UserError:
            logging.warning("%s is damaged.", path)
    logging.info("Computing '%s' once into %s", name, path)
    computed = {key: np.asarray(array) for key, array in compute().items()}
    try:
        write_arrays(path, computed)
    except OSError as error:
        raise UserError(
            f"Cannot write {path} ({error.strerror or error}): make room, or point "
            f"{CACHE_VARIABLE} at a writable folder if it is in the cache."
        ) from error
    return computed


def digest(*arrays: np.ndarray) -> str:
    """Returns a hash of the shapes, types and values of arrays, to be part of a recipe."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.shape}{array.dtype}".encode())
        found.update(np.ascontiguousarray(array))
    return found.hexdigest()
