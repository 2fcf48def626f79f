"""The folder of one run: its config, its lock, its log, and the finished parts a restart skips.

A run is cut into named parts (one random seed of one method, say). The result of a finished part is
one JSON file, written whole or not at all; a killed run starts again, skips the finished parts and
takes up the broken one at its last checkpoint (`common/train.py`).
"""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import logging
from tensorboardX import SummaryWriter

from common.errors import UserError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file so that a kill or a full disk leaves the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(path.name + ".half")
    half.write_bytes(content)
    os.replace(half, path)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically, indented."""
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode())


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
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"Another process is running in the workdir {self.path}: wait for it or choose "
                f"another {flag}."
            ) from None
        self._adopt(json.loads(json.dumps(config)))
        self._writers: dict[str, SummaryWriter] = {}
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

    def part(self, name: str, compute: Callable[[], Any]) -> Any:
        """Returns the stored result of a part, or computes and stores it (JSON-serialisable)."""
        path = self.path / "parts" / f"{name}.json"
        if path.exists():
            return _read_json(path)
        result = compute()
        write_json(path, result)
        return result

    def log(self, part: str, step: int, values: dict[str, float]) -> None:
        """Appends one record to metrics.jsonl and to the part's TensorBoard events."""
        record = {"part": part, "step": step, **values}
        with self._log_path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        if part not in self._writers:
            folder = self.path / "tensorboard" / part
            self._writers[part] = SummaryWriter(str(folder), purge_step=step, write_to_disk=True)
        for name, value in values.items():
            self._writers[part].add_scalar(name, value, step)

    def records(self) -> list[dict]:
        """All records of metrics.jsonl; a line cut short by a kill is left out."""
        if not self._log_path.exists():
            return []
        records = []
        for line in self._log_path.read_text().splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
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
