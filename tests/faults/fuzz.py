"""Damages the files of every reader at random: each is read, or refused by one sentence.

A case is a reader's valid files of which one has one to three changes: bytes cut, dropped, repeated
or flipped, other numbers, foreign bytes, another encoding, or no file at all; in an archive within
a member or as a whole. It fails by any other error than a UserError of one sentence, by a wrong
value where a checksum makes damage known, by more memory of Python and NumPy than twice the files
and CONSTANT, or if the process, of which Rust and C++ libraries are a part, grows by more than
twice the files and RESIDENT. test_input_files.py tries a few, README.md has a record of thousands.
"""

import random
import re
import subprocess
import tempfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from unittest import mock

from common.errors import UserError
from tests.faults.readers import Reader, packed, readers, write

MEMORY = 2  # bytes that may be allocated for each byte of the files, and for CONSTANT
CONSTANT = 4 << 20
RESIDENT = 64 << 20
NUMBERS = b'0 -1 3 65536 2147483648 999999999999 0.5 1e-45 1e39 nan -inf null true "a" [] {}'
NUMBERS = NUMBERS.split()
TOKENS = [b"\n", b"\r\n", b"\0", b" ", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"../", b"(" * 500]
TOKENS += [b"[" * 5000, b'{"a":' * 500, b"<U999999999", b"|O", b"True", b"\x7f\xff\xff\xff"]


def replaced(content: bytes, rng: random.Random) -> bytes:
    """With another number in the place of one, or unchanged if there is none."""
    numbers = list(re.finditer(rb"-?[0-9][0-9.e+-]*", content[:100_000]))
    if not numbers:
        return content
    first, last = rng.choice(numbers).span()
    return content[:first] + rng.choice(NUMBERS) + content[last:]


def changed(content: bytes, rng: random.Random) -> bytes:
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


def damaged(files: dict, rng: random.Random) -> dict[str, bytes]:
    """Packed files of which one has one to three changes, within its archive or as a whole."""
    target, inside = rng.choice(sorted(files)), rng.random() < 0.6
    packed_files = {}
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
        compressed = hit and inside and rng.random() < 0.5
        packed_files[name] = packed(
            name, content, zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        )
        if hit and not inside:
            packed_files[name] = changed(packed_files[name], rng)
    return packed_files


def check(reader: Reader, files: dict[str, bytes], folder: Path) -> str | None:
    """Reads damaged files, which are written into a folder; the sentence that refuses them."""
    folder.mkdir(parents=True)
    write(files, folder)
    size = sum(map(len, files.values()))
    Path("/proc/self/clear_refs").write_text("5")  # lets VmHWM begin again (proc(5))
    before, sentence = resident("VmRSS"), None
    tracemalloc.start()
    try:
        with warnings.catch_warnings(action="ignore"):
            reader.read(folder)
    except UserError as error:
        sentence = str(error)
        assert re.fullmatch(r"[^\x00-\x1f]{10,2500}[.?)]", sentence), repr(sentence)
    except Exception as error:
        raise AssertionError(f"not a UserError but {error!r}") from error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak <= MEMORY * (size + CONSTANT), f"{peak:,} bytes of arrays"
    grown = resident("VmHWM") - before
    assert grown <= MEMORY * size + RESIDENT, f"the process grew by {grown >> 20} MiB"
    return sentence


def resident(name: str) -> int:
    """The process's VmRSS, or VmHWM, its maximum, in bytes."""
    match = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert match
    return int(match[1]) << 10


def without_network():
    """No package is downloaded: each client fails."""
    failed = subprocess.CompletedProcess([], 1, stderr="")
    return mock.patch.object(subprocess, "run", lambda *_, **__: failed)


def prepared() -> dict[str, Reader]:
    """All readers, each of which has read its valid files once, which imports and compiles."""
    all_readers = readers()
    for name, reader in all_readers.items():
        with tempfile.TemporaryDirectory() as folder, without_network():
            valid = {file: packed(file, content) for file, content in reader.files.items()}
            write(valid, Path(folder))
            assert reader.read(Path(folder)) is not None, name
    return all_readers
