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
from common.hosts import all_hosts
from common.progress import progress_bar

Arrays = dict[str, np.ndarray]
Items = TypeVar("Items", Sequence[str], np.ndarray)


def load_or_compute(
    folder: Path, name: str, recipe: object, compute: Callable[[], Mapping[str, Any]]
) -> Arrays:
    """Reads named arrays from `folder`; computes and stores them if they are absent or damaged.

    The file's name has the hash of `recipe`, which is JSON of all that determines the arrays.
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

    A shard is stored at once, so that a killed run resumes, under the hash of its own items, so
    that it serves a longer list too. `compute` gets its items and a bar, which it may advance.
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
    """The stored arrays; None if on any host there are none or they are damaged."""
    stored = None
    if path.exists():
        try:
            stored = read_arrays(path)
        except UserError:
            logging.warning("%s is damaged.", path)
    return stored if all_hosts(stored is not None) else None


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
