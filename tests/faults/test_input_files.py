"""A damaged or hostile input file is read, or refused by one sentence; it is never executed."""

import io
import random
import re
import subprocess
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from tests.faults.readers import packed, readers, write

CASES = 15  # damaged versions of each reader's files
MEMORY = 4  # bytes that may be allocated for each byte of the files, and for CONSTANT
CONSTANT = 4 << 20
NUMBERS = b'0 -1 3 65536 2147483648 999999999999 0.5 1e-45 1e39 nan -inf null true "a" [] {}'
NUMBERS = NUMBERS.split()
TOKENS = [b"\n", b"\r\n", b"\0", b" ", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"../", b"(" * 500]
TOKENS += [b"[" * 5000, b'{"a":' * 500, b"<U999999999", b"|O", b"True", b"\x7f\xff\xff\xff"]


def replaced(content, rng):
    """With another number in the place of one, or unchanged if there is none."""
    found = list(re.finditer(rb"-?[0-9][0-9.e+-]*", content[:100_000]))
    if not found:
        return content
    first, last = rng.choice(found).span()
    return content[:first] + rng.choice(NUMBERS) + content[last:]


def changed(content, rng):
    """One random change of a file's bytes."""
    first = rng.randint(0, len(content))
    last = min(len(content), first + rng.randint(0, 60))
    token = rng.choice(TOKENS)
    encoding = rng.choice(["utf-16", "utf-32", "latin-1", "utf-7"])
    changes = [
        lambda: content[:first],
        lambda: content[:first] + content[last:],
        lambda: content[:last] + content[first:last] * rng.choice([1, 2, 20_000]) + content[last:],
        lambda: (
            content[:first] + bytes(b ^ 16 for b in content[first : first + 1]) + content[last:]
        ),
        lambda: replaced(content, rng),
        lambda: content[:first] + token + content[first:],
        lambda: content[:first] + token + content[first + len(token) :],
        lambda: content.decode("latin-1").encode(encoding, "replace"),
        lambda: rng.randbytes(rng.randint(0, 300)),
    ]
    return rng.choice(changes)()


def damaged(files, rng):
    """Packed files of which one has one to three changes, within its archive or as a whole."""
    target, inside = rng.choice(sorted(files)), rng.random() < 0.6
    found = {}
    for name, content in files.items():
        hit = name == target
        if hit and rng.random() < 0.02:
            continue  # a missing file
        if hit and inside:
            for _ in range(rng.choice([1, 1, 2, 3])):
                if isinstance(content, dict):
                    member = rng.choice(sorted(content))
                    content = content | {member: changed(content[member], rng)}
                else:
                    content = changed(content, rng)
        found[name] = packed(name, content)
        if hit and not inside:
            found[name] = changed(found[name], rng)
    return found


@pytest.fixture(scope="module")
def all_readers(tmp_path_factory):
    found = readers()
    for name, reader in found.items():  # also imports and compiles what is done once
        folder = tmp_path_factory.mktemp("valid")
        write({file: packed(file, content) for file, content in reader.files.items()}, folder)
        assert reader.read(folder) is not None, name
    return found


def test_damaged_files_are_read_or_refused_by_a_sentence(all_readers, tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)  # no package is downloaded
    for name, reader in all_readers.items():
        for case in range(CASES):
            files = damaged(reader.files, random.Random(case))
            folder = tmp_path / f"{name}-{case}".replace("/", "-")
            write(files, folder)
            folder.mkdir(exist_ok=True)
            tracemalloc.start()
            try:
                with warnings.catch_warnings(action="ignore"):
                    reader.read(folder)
            except UserError as error:
                assert re.fullmatch(r"[^\x00-\x1f]{10,2500}[.?)]", str(error)), (name, case, error)
            except Exception as error:
                raise AssertionError(f"{name}, case {case}: not a UserError") from error
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            size = sum(map(len, files.values())) + CONSTANT
            assert peak < MEMORY * size, f"{name}, case {case}: {peak / size:.0f} bytes a byte"


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.mkdir, (self.path,)


def test_pickles_are_refused_and_never_executed(all_readers, tmp_path):
    mark, pickled, tried = tmp_path / "mark", io.BytesIO(), 0
    np.save(pickled, np.array([[Payload(mark)]], object), allow_pickle=True)
    np.load(io.BytesIO(pickled.getvalue()), allow_pickle=True)
    mark.rmdir()  # so the payload works where pickles are allowed
    for reader in all_readers.values():
        for file, content in reader.files.items():
            versions = [pickled.getvalue()] if file.endswith(".npy") else []
            if isinstance(content, dict) and file.endswith(".npz"):
                versions = [content | {member: pickled.getvalue()} for member in content]
            for version in versions:
                tried += 1
                folder = tmp_path / str(tried)
                files = reader.files | {file: version}
                write({name: packed(name, whole) for name, whole in files.items()}, folder)
                with pytest.raises(UserError):
                    reader.read(folder)
    assert tried > 15 and not mark.exists()
