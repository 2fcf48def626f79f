"""The folder of a run: its config, lock, and the finished parts that a resumed run skips.

A run consists of named parts, for instance one random run of one method. The result of a finished
part is a JSON file, written atomically. A run that was killed is started again by the same command:
it skips finished parts and resumes the unfinished one from its last checkpoint (train.py).
"""

import fcntl
import json
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from absl import logging

from common.errors import UserError
from common.files import as_json, read_arrays, write_json
from common.hosts import all_hosts
from common.run.metrics_log import MetricsLog

COMMAND = "command.txt"  # of the run, without the workdir, for those who keep its results


class Workdir:
    """The folder of a run, used by one process at a time, with its values in config.json.

    UserError, which names the `flag`: it cannot be written, is in use, or has another config.
    """

    def __init__(self, path: Path | str, config: dict, flag: str = "--workdir"):
        self.path = Path(path)
        self.started = time.time()
        self.quick = bool(config.get("quick"))  # small sizes, whose results stand beside no other
        self.metrics = MetricsLog(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.path / ".lock", "w")  # noqa: SIM115  # open during the whole run
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            other = f"Another process is running in the workdir {self.path}"
            raise UserError(f"{other}: wait for it or choose another {flag}.") from error
        except OSError as error:
            what = f"Cannot write or lock files in the workdir {self.path} ({error.strerror})"
            raise UserError(f"{what}: choose another {flag}.") from error
        for half in self.path.rglob("*.????????.half"):  # of a killed process
            half.unlink()
        self.config = config = as_json(config)
        config_path = self.path / "config.json"
        self.resumed = config_path.exists()
        if self.resumed:
            try:
                changes = differences(json.loads(config_path.read_text()), config)
            except (ValueError, AttributeError) as error:
                message = f"The file {config_path} is damaged: delete it and run again."
                raise UserError(message) from error
            # Only if anything has been computed; a first try may have ended by a misspelt name.
            names = {path.name for path in self.path.rglob("*") if path.is_file()}
            self.resumed = bool(names - {".lock", "config.json", COMMAND})
            if changes and self.resumed:
                what = f"a run with another config ({'; '.join(changes[:3])})"
                raise UserError(
                    f"The workdir {self.path} has {what}: choose another {flag} or delete it."
                )
            logging.info("Resuming the run in %s", self.path)
        write_json(config_path, config)

    def part(self, name: str, compute: Callable[[], Any], arrays: str | None = None) -> Any:
        """Returns the stored result of a part, or computes and stores it, JSON-serialisable.

        It is computed again if its checksum is wrong, or that of `arrays`, an .npz it may write, on
        any host.
        """
        path = self.path / "parts" / f"{name}.json"
        stored = self._stored(path, arrays)
        if all_hosts(stored is not None):
            return stored["result"]
        result = as_json(compute())  # as it will be read
        write_json(path, {"crc32": _checksum(result), "result": result})
        return result

    def _stored(self, path: Path, arrays: str | None) -> Any:
        """The file of a part; None if there is none or it is damaged."""
        if path.exists():
            try:
                stored = json.loads(path.read_text())
                if stored["crc32"] != _checksum(stored["result"]):
                    raise ValueError("wrong checksum")
                if arrays and (self.path / arrays).exists():
                    read_arrays(self.path / arrays)
                return stored
            except (ValueError, KeyError, TypeError):
                logging.warning("The part %s is damaged and is computed again.", path)
        return None


def _checksum(value: Any) -> int:
    return zlib.crc32(json.dumps(value).encode())


def differences(old: Mapping, new: Mapping, prefix: str = "") -> list[str]:
    """A phrase for each value of two configs that differs."""
    found = []
    for key in sorted(old.keys() | new.keys()):
        before, now = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(now, dict):
            found += differences(before, now, f"{prefix}{key}.")
        elif before != now:
            found.append(f"{prefix}{key} was {before}, is now {now}")
    return found
