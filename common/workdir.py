"""The folder of one run: its config, its lock, its log, and the finished parts a restart skips.

A run is cut into named parts (one random seed of one method, say). The result of a finished part is
one JSON file, written whole or not at all; a killed run starts again, skips the finished parts and
takes up the broken one at its last checkpoint (`common/train.py`).
"""

import contextlib
import errno
import fcntl
import io
import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from absl import logging
from numpy.typing import ArrayLike  # jaxtyping's imports jax, seconds before a flag is read
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import scalar

from common.data import numpy_files
from common.errors import UserError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` once it is whole.

    A kill or a full disk leaves the old file or the new one.

    Raises:
      OSError: it can't be written; BlockingIOError: another process is writing it.
    """
    half = path.with_name(path.name + ".half")
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with half.open("ab") as file:
            hold(file)
            # Its name may have gone to another process's file, or be that of the whole one by now.
            if not half.exists() or not os.path.samestat(os.fstat(file.fileno()), half.stat()):
                raise BlockingIOError(errno.EAGAIN, "another process holds it")
            try:
                file.truncate(0)  # what a killed process has left
                yield file
                file.flush()
                os.replace(half, path)
            except BaseException:
                half.unlink(missing_ok=True)
                raise


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of a full disk do not name the file: these do."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def hold(file: IO) -> None:
    """Locks an open file for this process, until it is closed or the process ends in any way.

    Raises:
      BlockingIOError: another process holds it.
      OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(errno.EAGAIN, "another process holds it") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file as `replacing` does."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically, indented."""
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode())


def write_arrays(path: Path, arrays: Mapping[str, ArrayLike]) -> None:
    """Writes plain arrays as an .npz atomically.

    The format has a checksum of each array, but a flipped bit in its directory can hide one: the
    archive's comment is a checksum of all before it.
    """
    content = io.BytesIO()
    np.savez(content, **{name: np.asarray(array) for name, array in arrays.items()})
    with zipfile.ZipFile(content, "a") as archive:
        archive.comment = b"%08x" % 0
    content = content.getbuffer()
    content[-8:] = b"%08x" % zlib.crc32(content[:-8])
    write_atomically(path, content)


def checked_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads all arrays of an .npz, by `write_arrays` or not.

    Raises:
      OSError: the file can't be opened.
      ValueError: it is damaged, or no .npz of plain arrays.
    """
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            whole = not file.comment or int(content[-8:], 16) == zlib.crc32(content[:-8])
    except Exception as error:  # of broken bytes zipfile raises about anything
        raise ValueError(f"no whole .npz ({error})") from error
    if not whole:
        raise ValueError("the checksum does not fit")
    return numpy_files.npz(path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """As `checked_arrays`, of a file that the project has written itself.

    Raises:
      UserError: there is no such file, or it is damaged.
    """
    try:
        return checked_arrays(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"The file {path} is damaged ({type(error).__name__}): delete it and run again."
        ) from error


class Workdir:
    """A run's folder, held by one process at a time.

    Args:
      path: the folder; made if need be.
      config: every value of the run, JSON-serialisable; kept as config.json.
      flag: by which a user chooses the folder, for messages.

    Raises:
      UserError: the folder can't be written, another process works in it, or it holds a run of
        another config.
    """

    def __init__(self, path: Path | str, config: dict, flag: str = "--workdir"):
        self._flag = flag
        if not str(path):
            raise UserError(f"The workdir is empty: give {flag}=FOLDER.")
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.path / ".lock", "w")  # noqa: SIM115  # held until the end
        except OSError as error:
            raise UserError(
                f"Cannot write into the workdir {self.path} ({error.strerror}): choose another "
                f"{flag}."
            ) from error
        try:
            hold(self._lock)
        except BlockingIOError:
            raise UserError(
                f"Another process is running in the workdir {self.path}: wait for it or choose "
                f"another {flag}."
            ) from None
        except OSError as error:
            raise UserError(
                f"The workdir {self.path} can't be locked ({error.strerror}): choose another "
                f"{flag} on a file system with locks."
            ) from error
        self._adopt(json.loads(json.dumps(config)))
        self._writers: dict[str, EventsWriter] = {}
        self._log_path = self.path / "metrics.jsonl"

    def _adopt(self, config: dict) -> None:
        path = self.path / "config.json"
        if path.exists():
            found = _read_json(path)
            if found != config:
                raise UserError(
                    f"The workdir {self.path} holds a run with another config "
                    f"({_difference(found, config)}): choose another {self._flag} or delete it."
                )
            logging.info("Resuming the run in %s", self.path)
        write_json(path, config)

    def part(self, name: str, compute: Callable[[], Any], arrays: str | None = None) -> Any:
        """Returns the stored result of a part, or computes and stores it (JSON-serialisable).

        A part is computed again where its checksum does not fit.

        Args:
          name: of the part.
          compute: gives the result.
          arrays: an .npz below the run's folder that `compute` may write; checked as well.
        """
        path = self.path / "parts" / f"{name}.json"
        if path.exists():
            try:
                found = json.loads(path.read_text())
                if found["crc32"] != _checksum(found["result"]):
                    raise ValueError("its checksum does not fit")
                if arrays and (self.path / arrays).exists():
                    read_arrays(self.path / arrays)
                return found["result"]
            except (ValueError, KeyError, TypeError):
                logging.warning("The part %s is damaged: it is computed again.", path)
        result = json.loads(json.dumps(compute()))  # as it will be read: no tuples, names as keys
        write_json(path, {"crc32": _checksum(result), "result": result})
        return result

    def log(self, part: str, step: int, values: dict[str, float]) -> None:
        """Appends one record to metrics.jsonl and to the part's TensorBoard events."""
        record = {"part": part, "step": step, **values}
        with naming(self.path):
            with self._log_path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            # Here and now: SummaryWriter's thread dies of a full disk, and its queue then waits for
            # it without end.
            if part not in self._writers:
                folder = self.path / "tensorboard" / part
                folder.mkdir(parents=True, exist_ok=True)
                self._writers[part] = EventsWriter(str(folder / "events"))
                session = SessionLog(status=SessionLog.START)  # hides later steps of a killed run
                self._event(part, step, session_log=session)
            for name, value in values.items():
                self._event(part, step, summary=scalar(name, value))
            self._writers[part].flush()

    def _event(self, part: str, step: int, **content) -> None:
        self._writers[part].write_event(Event(step=step, wall_time=time.time(), **content))

    def records(self) -> list[dict]:
        """All records of metrics.jsonl; a damaged line, cut short by a kill say, is left out."""
        if not self._log_path.exists():
            return []
        records = []
        for line in self._log_path.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
                records.append(record | {"part": record["part"], "step": record["step"]})
            except (ValueError, KeyError, TypeError):
                logging.warning("Leaving out a broken line of %s", self._log_path)
        return records

    def forget(self, part: str, after: int) -> None:
        """Drops the part's records of steps beyond its checkpoint: they will be made again."""
        records = self.records()
        kept = [r for r in records if r["part"] != part or r["step"] <= after]
        content = "".join(json.dumps(record) + "\n" for record in kept)
        write_atomically(self._log_path, content.encode())

    def close_log(self, part: str) -> None:
        """Flushes the TensorBoard events of a part."""
        if part in self._writers:
            self._writers.pop(part).close()


def _checksum(value: Any) -> int:
    return zlib.crc32(json.dumps(value).encode())


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise UserError(
            f"The file {path} is not whole JSON: delete it and run again, the rest is kept."
        ) from None


def _difference(old: Any, new: Any, prefix: str = "") -> str:
    """The first few values that differ, as `key: old there, new here`."""
    found = []
    for key in sorted(set(old) | set(new)):
        before, now = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(now, dict):
            found.append(_difference(before, now, f"{prefix}{key}."))
        elif before != now:
            found.append(f"{prefix}{key} was {before}, is now {now}")
    return "; ".join([text for text in found if text][:3])
