"""Arrays that take long to compute, stored in the cache directory under a hash of their inputs."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from absl import logging
from jaxtyping import Float
from tqdm import tqdm

from common.data.packages import CACHE_VARIABLE
from common.errors import UserError
from common.files import read_arrays, write_arrays
from common.progress import progress_bar

Arrays = dict[str, np.ndarray]
Items = TypeVar("Items", Sequence[str], np.ndarray)


def load_or_compute(
    folder: Path, name: str, recipe: object, compute: Callable[[], Mapping[str, Any]]
) -> Arrays:
    """Reads named arrays from `folder`; computes and stores them if they are absent or damaged.

    Args:
      folder: inside the cache directory.
      name: prefix of the file's name.
      recipe: everything that determines the arrays, JSON-serialisable. Its hash is in the file's
        name, so that another recipe is another file.
      compute: returns the arrays, or what becomes arrays by `np.asarray`.

    Raises:
      UserError: the folder cannot be written.
    """
    path = _path(folder, name, recipe)
    stored = _read(path)
    if stored is None:
        logging.info("Computing '%s' once into %s", name, path)
        stored = _write(path, compute())
    return stored


def load_or_compute_shards(
    folder: Path,
    name: str,
    recipe: object,
    items: Items,
    compute: Callable[[Items, tqdm], Float[np.ndarray, "k d"]],
    *,
    shard_size: int,
    progress: str | None,
    unit: str,
) -> Float[np.ndarray, "n d"]:
    """Reads one vector for each item; computes and stores the shards that are absent or damaged.

    A shard is `shard_size` items in a row. Each is stored as soon as it is computed, so that a run
    that was killed resumes. The file of a shard is named by its own items, so that the shards of
    the first items serve a longer list as well.

    Args:
      folder: see `load_or_compute`.
      name: see `load_or_compute`.
      recipe: everything but the items that determines an item's vector, JSON-serialisable.
      items: n texts, or an array of n rows.
      compute: returns the vectors of a shard's items; it may advance the bar by their number.
      shard_size: number of items of a shard.
      progress: label of the progress bar, which appears after two seconds; None: no bar.
      unit: what an item is, on the progress bar.

    Raises:
      UserError: the folder cannot be written, or raised by `compute`.
    """
    vectors = []
    shown = {"desc": progress, "unit": unit, "delay": 2, "disable": progress is None}
    with progress_bar(total=len(items), **shown) as bar:
        for start in range(0, max(1, len(items)), shard_size):  # no items are one empty shard
            shard = items[start : start + shard_size]
            content = digest(shard) if isinstance(shard, np.ndarray) else list(shard)
            path = _path(folder, f"{name}-{start:07d}", [recipe, content])
            stored = _read(path)
            if stored is None:
                stored = _write(path, {"vectors": compute(shard, bar)})
            vectors.append(stored["vectors"])
            bar.update(start + len(shard) - bar.n)
    return np.concatenate(vectors)


def _path(folder: Path, name: str, recipe: object) -> Path:
    digest_of_recipe = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    return folder / f"{name}-{digest_of_recipe[:24]}.npz"


def _read(path: Path) -> Arrays | None:
    """The stored arrays; None if there are none or they are damaged."""
    if path.exists():
        try:
            return read_arrays(path)
        except UserError:
            logging.warning("%s is damaged.", path)
    return None


def _write(path: Path, computed: Mapping[str, Any]) -> Arrays:
    arrays = {key: np.asarray(array) for key, array in computed.items()}
    try:
        write_arrays(path, arrays)
    except OSError as error:
        raise UserError(
            f"Cannot write {path} ({error.strerror or error}): make room, or point "
            f"{CACHE_VARIABLE} at a writable folder if it is in the cache."
        ) from error
    return arrays


def digest(*arrays: np.ndarray) -> str:
    """Returns a hash of the shapes, types and values of arrays, to be part of a recipe."""
    content_hash = hashlib.sha256()
    for array in arrays:
        content_hash.update(f"{array.shape}{array.dtype}".encode())
        content = np.ascontiguousarray(array)
        content_hash.update(content)  # pyright: ignore[reportArgumentType]  # stubs: since Python 3.12
    return content_hash.hexdigest()
