import hashlib
import importlib.util
import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.data import packages
from common.errors import UserError
from tests import commands
from tests.faults.readers import archive

NAME, VERSION = "isthmus_test_data", "1.0"
INFO = f"{NAME}-{VERSION}.dist-info"
FILES = {"./data/a.txt": b"first", "./data/b.txt": b"second", "./other.txt": b"third"}


def tiny(filename, files):
    """The content of a package, and its entry in the table."""
    content = archive(Path(filename).suffix, files)
    digest = hashlib.sha256(content).hexdigest()
    entry = packages.Package(filename=filename, sha256=digest, licence="none", source="this test")
    return entry, content


PACKAGE, CONTENT = tiny(  # that pip accepts
    f"{NAME}-{VERSION}-py3-none-any.whl",
    {
        f"{NAME}/data.txt": b"some data",
        f"{INFO}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n".encode(),
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        f"{INFO}/RECORD": b"",
    },
)
RELEASES = {  # file name -> the client's argument that names the release
    "tiny-data-1.0.tgz": "tiny-data@1.0",
    "tiny-data_1.0-2_all.deb": "tiny-data=1.0-2",
}


def replace_client(monkeypatch, download):
    """Replaces clients by `download(folder)`, which may return an error message; their commands."""
    commands = []

    def run(command, cwd, **_):
        commands.append(command)
        found = None if "venv" in command else download(Path(cwd))
        error = found if isinstance(found, str) else ""
        return subprocess.CompletedProcess(command, bool(error), stderr=error)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    return commands


def write_package(cache, content=CONTENT):
    (cache / "packages").mkdir()
    (cache / "packages" / PACKAGE.filename).write_bytes(content)


def test_the_cache_directory(monkeypatch, tmp_path):
    home = Path.home()
    defaults = {str(tmp_path): tmp_path, "~/here": home / "here", "": home / ".cache/isthmus"}
    for value, folder in defaults.items():
        monkeypatch.setenv(packages.CACHE_VARIABLE, value)
        assert packages.cache_dir() == folder
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as without HOME in a container
    with pytest.raises(UserError, match=r"ISTHMUS_CACHE: The home folder in .* is not known"):
        packages.cache_dir()
    monkeypatch.setenv(packages.CACHE_VARIABLE, "gs://bucket/cache")
    with pytest.raises(UserError, match="ISTHMUS_CACHE: 'gs://bucket/cache' is the address"):
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
    monkeypatch.setattr(subprocess, "run", None)
    assert packages.fetch(PACKAGE, cache).read_bytes() == CONTENT


def test_without_a_network_the_error_names_the_alternative(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # as in a notebook, no file
    with pytest.raises(UserError, match=r"No matching distribution .* by hand\.$"):
        packages.fetch(PACKAGE, tmp_path)


def test_an_environment_without_pip_fetches_from_the_index_of_uv(monkeypatch, tmp_path):
    commands = replace_client(monkeypatch, lambda x: (x / PACKAGE.filename).write_bytes(CONTENT))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://localhost/index")
    assert packages.fetch(PACKAGE, tmp_path).read_bytes() == CONTENT
    (python, *_, folder), download = commands
    assert python == sys.executable and download[0] == f"{folder}/bin/python"
    assert download[1:4] == ["-m", "pip", "download"]
    assert download[download.index("--index-url") + 1] == "http://localhost/index"


@pytest.mark.parametrize("filename", RELEASES)
def test_npm_and_apt_fetch_a_package_once(monkeypatch, tmp_path, filename):
    package, content = tiny(filename, FILES)
    commands = replace_client(monkeypatch, lambda x: (x / filename).write_bytes(content))
    assert packages.read_member(package, tmp_path, "data/b.txt") == b"second"
    assert {command[0] for command in commands} == {package.client}
    assert commands[-1][-1] == RELEASES[filename]
    number = len(commands)
    members = packages.read_folder(package, tmp_path, "data/")
    assert members == {"data/a.txt": b"first", "data/b.txt": b"second"}
    assert len(commands) == number
    assert [p.name for p in (tmp_path / "packages").iterdir()] == [filename]


def full_disk(folder):
    (folder / PACKAGE.filename).write_bytes(CONTENT[:100])
    raise OSError(28, "No space left on device")


def another_file(folder):
    (folder / PACKAGE.filename).write_bytes(b"")


@pytest.mark.parametrize(
    ("filename", "download", "sentence"),
    [
        (PACKAGE.filename, lambda _: "/bin/python: No module named pip\n", "(No module named pip)"),
        (PACKAGE.filename, another_file, "(its SHA-256 is e3b0c44298fc"),
        (PACKAGE.filename, full_disk, "No space left on device"),
        (
            "tiny-data-1.0.tgz",
            lambda _: "npm warn x\nnpm error code E404\nnpm error 404\n",
            "npm cannot fetch tiny-data==1.0 (npm error code E404): without npm or a network, put ",
        ),
        (
            "tiny-data_1.0-2_all.deb",
            lambda _: "E: Unable to locate package tiny-data\n",
            "apt-get cannot fetch tiny-data==1.0-2 (E: Unable to locate package tiny-data)",
        ),
    ],
)
def test_a_failed_download_is_a_user_error_and_leaves_nothing_behind(
    monkeypatch, tmp_path, filename, download, sentence
):
    package, _ = tiny(filename, {})
    replace_client(monkeypatch, download)
    with pytest.raises(UserError) as error:
        packages.fetch(package, tmp_path)
    assert sentence in str(error.value)
    assert not list((tmp_path / "packages").iterdir())


@pytest.mark.parametrize("filename", RELEASES)
def test_a_client_that_is_missing_is_a_user_error(monkeypatch, tmp_path, filename):
    package, _ = tiny(filename, {})
    monkeypatch.setattr(shutil, "which", lambda name: None)
    sentence = f"fetched by {package.client}, which is not on this machine: .* {filename} into "
    with pytest.raises(UserError, match=sentence):
        packages.fetch(package, tmp_path)


def test_every_package_names_its_release():
    assert packages.PACKAGES["finnish"].release == ("spacy-fi-experimental-web-md", "0.15.0")
    assert all(len(package.sha256) == 64 for package in packages.PACKAGES.values())


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[:50] + b"!" + CONTENT[51:], b""])
def test_a_damaged_package_is_fetched_again(monkeypatch, tmp_path, caplog, damaged):
    write_package(tmp_path, damaged)
    served = [damaged, CONTENT]
    replace_client(monkeypatch, lambda x: (x / PACKAGE.filename).write_bytes(served.pop(0)))
    with pytest.raises(UserError, match=r"pip cannot fetch .*SHA-256"):
        packages.fetch(PACKAGE, tmp_path)
    assert packages.fetch(PACKAGE, tmp_path).read_bytes() == CONTENT
    assert f"{PACKAGE.filename} is damaged: fetching it again" in caplog.text


def test_a_folder_that_cannot_be_made_is_a_user_error(tmp_path):
    cache = tmp_path / "cache"
    cache.write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot store .*{cache}.* point ISTHMUS_CACHE"):
        packages.fetch(PACKAGE, cache)


def test_members_are_never_extracted_whatever_their_names(tmp_path):
    names = ("data/a.txt", "../outside.txt", "/outside.txt")
    package, content = tiny(PACKAGE.filename, dict.fromkeys(names, b"some data"))
    cache = tmp_path / "deep" / "cache"
    cache.mkdir(parents=True)
    write_package(cache, content)
    assert len(packages.read_folder(package, cache, "")) == 3
    assert packages.read_member(package, cache, "../outside.txt") == b"some data"
    assert not list(tmp_path.rglob("outside*")) and not Path("/outside.txt").exists()


def test_the_entry_of_a_file_is_printed(monkeypatch, tmp_path, capsys):
    about = b'Metadata-Version: 2.4\nName: tiny\nSummary: A "tiny" set\nLicense-Expression: MIT\n'
    about += b"Classifier: License :: OSI Approved :: MIT License\n\nLicense: of another\n"
    files = {
        "tiny-1.0-py3-none-any.whl": {"tiny-1.0.dist-info/METADATA": about},
        "tiny-1.0.tgz": {"package/package.json": b'{"license": "ISC", "description": "On npm"}'},
        "tiny_1.0-2_all.deb": {"./usr/share/doc/tiny/copyright": b"Files: *\nLicense: GPL-3\n" * 2},
    }
    for name, members in files.items():
        (tmp_path / name).write_bytes(archive(Path(name).suffix, members))
    assert not commands.run(monkeypatch, "common.data.pin", *(tmp_path / name for name in files))
    entries = eval(f"[{capsys.readouterr().out}]", {"Package": packages.Package})
    said = [(entry.licence, entry.source) for entry in entries]
    assert said[0] == ("MIT, MIT License", 'A "tiny" set')
    assert said[1:] == [("ISC", "On npm"), ("GPL-3", "none stated")]
    for entry in entries:
        content = (tmp_path / entry.filename).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry.sha256


def test_what_is_no_package_file_has_no_entry(monkeypatch, tmp_path, capfd):
    sentence = commands.refused(monkeypatch, capfd, "common.data.pin", tmp_path / "tiny.zip")
    assert "tiny.zip is no package file: give a .whl, a .tgz of npm or a .deb." in sentence
