"""Damaged files for every reader: a value, or one sentence; soon, and in bounded memory.

python -m tests.faults.fuzz --cases=10600 --out=tests/faults/fuzz.md
"""

import argparse
import gzip
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
import warnings
from pathlib import Path
from typing import NamedTuple

import hypothesis
from absl import logging
from hypothesis import strategies as st

from common.errors import UserError
from tests.faults.readers import Reader, table, zipped

SECONDS = 10.0  # of the processor, whatever else is running
CONSTANT = 4 << 20
ROOM = (
    4 << 30
)  # bytes of address space that a run may take on; a header may ask for a million times
ROOT = Path(__file__).parents[2]
TOP = """# Damaged files, reader by reader

Made by `python -m tests.faults.fuzz --cases={cases} --seed={seed} --out={out}`, on one core.

A case is a whole file or folder with one to three accidents: bytes cut, dropped, repeated or
flipped, other numbers, foreign pieces, another encoding, garbage, a missing file; in an archive
inside or outside. Accepted: a value came back. Refused: one sentence. Anything else, over 10 s, or
more memory than twice the files (unpacked) and 4 MiB (graphs: 40 times, flags: 4) fails the run.
The last column is the peak of what Python and numpy took, as a multiple of the files and 4 MiB.
"""
HEAD = """| reader | cases | accepted | refused | longest, s | greatest memory |
|---|---|---|---|---|---|"""
NUMBERS = b"0 -1 1 2 3 7 99 65536 2147483648 999999999999 1000000000000000000000000 0.5 1e-45 1e39"
NUMBERS = [*NUMBERS.split(), b"nan", b"-inf", b"null", b"true", b'"a"', b"[]", b"{}", b"()", b""]
PIECES = [b"\n", b"\r\n", b"\0", b" ", b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"\x80"]
PIECES += [b"../", b"(" * 500, b"[" * 5000, b'{"a":' * 500, "\U0001f600".encode(), b"<U0", b"|O"]
PIECES += [b"<f8", b"<U999999999", b"True", b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x80\0\0\0"]
ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-7")


class Outcome(NamedTuple):
    """What one case came to; memory is the peak's multiple of the files and 4 MiB."""

    accepted: bool
    seconds: float
    memory: float


@st.composite
def damaged(draw, content: bytes) -> bytes:
    """The content after one to three accidents."""
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        kind = draw(st.sampled_from(ACCIDENTS))
        first = draw(st.integers(0, len(content)))
        last = min(len(content), first + draw(st.integers(0, 60)))
        if kind == "cut":
            content = content[:first]
        elif kind == "drop":
            content = content[:first] + content[last:]
        elif kind == "repeat":
            content = content[:first] + content[first:last] * draw(TIMES) + content[last:]
        elif kind == "flip" and content:
            at = min(first, len(content) - 1)
            flipped = content[at] ^ draw(st.integers(1, 255))
            content = content[:at] + bytes([flipped]) + content[at + 1 :]
        elif kind == "number":
            found = list(re.finditer(rb"-?[0-9][0-9.e+-]*", content[:100_000]))
            if found:
                start, end = draw(st.sampled_from(found)).span()
                content = content[:start] + draw(st.sampled_from(NUMBERS)) + content[end:]
        elif kind == "piece":
            content = content[:first] + draw(st.sampled_from(PIECES)) + content[first:]
        elif kind == "over":
            piece = draw(st.sampled_from(PIECES))
            content = content[:first] + piece + content[first + len(piece) :]
        elif kind == "recode":
            text = content.decode("latin-1")
            content = text.encode(draw(st.sampled_from(ENCODINGS)), "replace")
        elif kind == "garbage":
            content = draw(st.binary(max_size=300))
    return content


ACCIDENTS = ["cut", "drop", "repeat", "flip", "number", "number", "piece", "over", "recode"]
ACCIDENTS += ["garbage"]
TIMES = st.sampled_from([2, 2, 3, 50, 50, 20_000])


@st.composite
def cases(draw, reader: Reader) -> tuple[dict[str, bytes], int]:
    """The reader's files, one of them damaged, before or after it is packed; and bytes unpacked."""
    hit = draw(st.sampled_from(sorted(reader.files)))
    files, size = {}, 0
    for name, content in reader.files.items():
        inside = name == hit and (draw(st.integers(0, 3)) > 0 or isinstance(content, bytes))
        if isinstance(content, dict):
            if inside:
                member = draw(st.sampled_from(sorted(content)))
                renamed = draw(st.sampled_from([member, member, member, "blocks.999999999.npy"]))
                changed = draw(damaged(content[member]))
                content = {k: v for k, v in content.items() if k != member} | {renamed: changed}
            size += sum(map(len, content.values()))
            content = zipped(content, compressed=draw(st.booleans()) if inside else False)
        elif inside:
            content = draw(damaged(content))
        size += len(content)
        if name.endswith(".gz"):
            content = gzip.compress(content, 1, mtime=0)
            inside = inside and draw(st.integers(0, 3)) > 0
        if name == hit and not inside:
            content = draw(damaged(content))
        if name != hit or draw(st.integers(0, 50)):  # now and then there is no such file
            files[name] = content
    return files, size


def check(reader: Reader, files: dict[str, bytes], size: int) -> Outcome:
    """Reads the files, and asserts what has to hold.

    Raises:
      AssertionError: a message that is no sentence, or too much time or memory.
      Exception: whatever the reader raises but a `UserError`.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        laid(files, folder)
        accepted = True
        signal.signal(signal.SIGPROF, _late)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        tracemalloc.start()
        verbosity = logging.get_verbosity()
        logging.set_verbosity(logging.ERROR)
        began = time.process_time()
        try:
            with warnings.catch_warnings(action="ignore"):
                reader.read(folder)
        except UserError as error:
            accepted = False
            assert re.fullmatch(r"[^\x00-\x1f]{10,2500}[.?)]", str(error)), repr(str(error))
        finally:
            seconds = time.process_time() - began
            memory = tracemalloc.get_traced_memory()[1] / (size + CONSTANT)
            tracemalloc.stop()
            signal.setitimer(signal.ITIMER_PROF, 0)
            logging.set_verbosity(verbosity)
    assert memory <= reader.memory, f"{memory:.1f} times the {size} bytes of the files and 4 MiB"
    return Outcome(accepted, seconds, memory)


def whole(reader: Reader) -> dict[str, bytes]:
    """The reader's files as they should be."""
    files = {k: zipped(v) if isinstance(v, dict) else v for k, v in reader.files.items()}
    return {k: gzip.compress(v) if k.endswith(".gz") else v for k, v in files.items()}


def laid(files: dict[str, bytes], folder: Path) -> None:
    """Writes files into a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def _late(*_):
    raise AssertionError(f"more than {SECONDS} seconds")


class Broken(NamedTuple):
    """A case that broke a rule: what was raised, where in our code, and the files."""

    error: str
    files: dict[str, bytes]


def run(reader: Reader, count: int, seed: int) -> tuple[list[Outcome], list[Broken]]:
    """Outcomes of random cases, and one broken case for each place in our code."""
    outcomes, broken = [], {}

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(cases(reader))
    def every(case):
        try:
            outcomes.append(check(reader, *case))
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [f for f in frames if f.filename.startswith(str(ROOT))]
            place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            said = f"{place} {type(error).__name__}: {str(error)[:200]}"
            broken.setdefault((place, type(error)), Broken(said, case[0]))

    every()
    return outcomes, list(broken.values())


def main() -> None:
    """Runs all, writes the table, and fails if a case broke a rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_600, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="readers with this in their name")
    parser.add_argument("--out", type=Path, help="file of the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        readers = table(Path(folder))
    readers = {name: reader for name, reader in readers.items() if options.only in name}
    for reader in readers.values():
        with tempfile.TemporaryDirectory() as folder:
            laid(whole(reader), Path(folder))
            reader.read(Path(folder))  # what is imported or compiled once is no case's memory
    room = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (room + ROOM, resource.RLIM_INFINITY))
    lines, total, failed = [HEAD], 0, False
    for name, reader in readers.items():
        found, broken = run(reader, -(-options.cases // len(readers)), options.seed)
        accepted = sum(outcome.accepted for outcome in found)
        seconds = max((outcome.seconds for outcome in found), default=0)
        memory = max((outcome.memory for outcome in found), default=0)
        lines.append(
            f"| {name} | {len(found)} | {accepted} | {len(found) - accepted} | {seconds:.3f} | "
            f"{memory:.2f} |"
        )
        print(lines[-1], flush=True)
        for case in broken:
            print(f"  BROKEN at {case.error}", flush=True)
            print("   ", {name: content[:300] for name, content in case.files.items()}, flush=True)
        total, failed = total + len(found), failed or bool(broken)
        every = [*lines, f"| all | {total} | | | | |"]
        if options.out:
            options.out.write_text("\n".join([TOP.format(**vars(options)), *every]) + "\n")
    print(every[-1])
    sys.exit(failed)


if __name__ == "__main__":
    main()
