"""A file of vectors, once it is read, and its name."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.errors import UserError

RESERVED_NAMES = (
    "target",
    "learning",
    "tensorboard",
    "parts",
    "common",
)  # in the folder of results


class Space(NamedTuple):
    """A space, and its known pairs with the target.

    Pairs are left out if a space lacks one of their words or rows; `num_unknown` is their number.
    """

    name: str
    words: list[str]
    vectors: Float[np.ndarray, "n d"]
    pairs: Int[np.ndarray, "s 2"] | None = None  # (source row, target row)
    num_unknown: int = 0


def name_spaces(sources: Sequence[Path], target: Path) -> list[str]:
    """A name for each source and for the target, made of what differs in their paths.

    It is the shortest of these forms in which all names differ and no source has a reserved one:
    the file's name up to its first dot, without its suffix, or whole, alone or after its folder's
    name, or after more folders' names.

    Raises:
      UserError: a file is given twice.
    """
    paths = [Path(os.path.abspath(path)) for path in (*sources, target)]
    for path in paths:
        if paths.count(path) > 1:
            raise UserError(f"{path} is given twice as a space: give different files.")
    for num_folders in range(max(len(path.parts) for path in paths)):
        for form in (_up_to_first_dot, _without_suffix, str):
            names = [_name(path, num_folders, form) for path in paths]
            usable = (name.split(".")[0] not in ("", *RESERVED_NAMES) for name in names[:-1])
            if len({*names}) == len(names) and names[-1] and all(usable):
                return names
    raise UserError(f"There are no different names for {', '.join(map(str, paths))}: rename one.")


def _name(path: Path, num_folders: int, form: Callable[[str], str]) -> str:
    folders = path.parts[1:-1]
    return "-".join((*folders[max(0, len(folders) - num_folders) :], form(path.name)))


def _up_to_first_dot(name: str) -> str:
    return name.split(".")[0]


def _without_suffix(name: str) -> str:
    return Path(name.removesuffix(".gz")).stem
