"""A cache directory whose trained models are its own, and whose packages are the user's."""

from collections.abc import Iterable
from pathlib import Path

from common.data.packages import cache_dir


def linked(folder: Path, shared: Iterable[str]) -> Path:
    """Makes a cache directory, whose `shared` folders are links to the user's; its full path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in shared:
        (cache_dir() / name).mkdir(parents=True, exist_ok=True)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(cache_dir().absolute() / name)
    return folder.absolute()
