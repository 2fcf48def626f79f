"""The folder of a run: its config, lock, log, and the finished parts that a resumed run skips.

A run consists of named parts, for instance one random run of one method. The result of a finished
part is a JSON file, written atomically. A run that was killed is started again by the same command:
it skips finished parts and resumes the unfinished one from its last checkpoint (train.py).
"""

import fcntl
import json
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from absl import logging
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2, summary_pb2
from tensorboardX.summary import hparams, scalar

from common.errors import UserError
from common.files import as_json, naming, read_arrays, write_atomically, write_json

# protobuf makes these types when it is imported.
Event = event_pb2.Event  # pyright: ignore[reportAttributeAccessIssue]
SessionLog = event_pb2.SessionLog  # pyright: ignore[reportAttributeAccessIssue]
Summary = summary_pb2.Summary  # pyright: ignore[reportAttributeAccessIssue]
COMMAND = "command.txt"  # of the run, without the workdir, for those who keep its results


class Workdir:
    """The folder of a run, used by one process at a time.

    Args:
      path: the folder; created if it does not exist.
      config: all values of the run, JSON-serialisable; stored as config.json.
      flag: the command-line flag of the folder, quoted in error messages.

    Raises:
      UserError: the folder cannot be written, is used by another process, or has a run with another
        config.
    """

    def __init__(self, path: Path | str, config: dict, flag: str = "--workdir"):
        self.path = Path(path)
        self.started = time.time()
        self.quick = bool(config.get("quick"))  # small sizes, whose results stand beside no other
        self._log_path = self.path / "metrics.jsonl"
        self._writers: dict[str, EventsWriter] = {}
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
                changes = _differences(json.loads(config_path.read_text()), config)
            except (ValueError, AttributeError) as error:
                message = f"The file {config_path} is damaged: delete it and run again."
                raise UserError(message) from error
            if changes:
                what = f"a run with another config ({'; '.join(changes[:3])})"
                raise UserError(
                    f"The workdir {self.path} has {what}: choose another {flag} or delete it."
                )
            logging.info("Resuming the run in %s", self.path)
        write_json(config_path, config)

    def part(self, name: str, compute: Callable[[], Any], arrays: str | None = None) -> Any:
        """Returns the stored result of a part, or computes and stores it.

        A result whose checksum is wrong is computed again.

        Args:
          name: name of the part.
          compute: returns the result, JSON-serialisable.
          arrays: an .npz in the run's folder that `compute` may write; its checksum is checked too.
        """
        path = self.path / "parts" / f"{name}.json"
        if path.exists():
            try:
                stored = json.loads(path.read_text())
                if stored["crc32"] != _checksum(stored["result"]):
                    raise ValueError("wrong checksum")
                if arrays and (self.path / arrays).exists():
                    read_arrays(self.path / arrays)
                return stored["result"]
            except (ValueError, KeyError, TypeError):
                logging.warning("The part %s is damaged and is computed again.", path)
        result = as_json(compute())  # as it will be read
        write_json(path, {"crc32": _checksum(result), "result": result})
        return result

    def log(self, part: str, records: Mapping[int, Mapping[str, float]]) -> None:
        """Appends step -> values to metrics.jsonl and to the part's TensorBoard events."""
        lines = [
            json.dumps(as_json({"part": part, "step": step, **values}))
            for step, values in records.items()
        ]
        with naming(self.path):
            with self._log_path.open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
            # EventsWriter writes in this thread. The thread of SummaryWriter ends on a full disk,
            # and then the queue to it blocks forever.
            if part not in self._writers:
                folder = self.path / "tensorboard" / part
                folder.mkdir(parents=True, exist_ok=True)
                self._writers[part] = EventsWriter(str(folder / "events"))
                session = SessionLog(status=SessionLog.START)  # hides later steps of a killed run
                self._event(part, min(records, default=0), session_log=session)
            for step, values in records.items():
                for name, value in values.items():
                    self._event(part, step, summary=scalar(name, value))
            self._writers[part].flush()  # waits for the disk, so once for all records

    def show(self, images: Mapping[str, bytes], values: Mapping[str, Any]) -> None:
        """Writes the TensorBoard events of the whole run, in the place of those of a run before.

        Args:
          images: name -> PNG.
          values: the hyper-parameters by name.
        """
        folder = self.path / "tensorboard/run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        simple = (bool, int, float, str)
        shown = {name: x if isinstance(x, simple) else str(x) for name, x in values.items()}
        with naming(self.path):
            self._writers["run"] = EventsWriter(str(folder / "events"))
            for summary in hparams(shown, {}):
                self._event("run", 0, summary=summary)
            for name, content in images.items():
                height, width = reversed(struct.unpack(">II", content[16:24]))  # of a PNG
                image = {"encoded_image_string": content, "colorspace": 4}
                image |= {"height": height, "width": width}
                self._event("run", 0, summary=Summary(value=[{"tag": name, "image": image}]))
            self.close_log("run")

    def _event(self, part: str, step: int, **content) -> None:
        self._writers[part].write_event(Event(step=step, wall_time=time.time(), **content))

    def records(self) -> list[dict]:
        """All records of metrics.jsonl but for damaged lines, which a kill can leave."""
        if not self._log_path.exists():
            return []
        records = []
        for line in self._log_path.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
                records.append(record | {"part": record["part"], "step": record["step"]})
            except (ValueError, KeyError, TypeError):
                logging.warning("Omitting a damaged line of %s", self._log_path)
        return records

    def forget(self, part: str, after: int) -> None:
        """Deletes the part's records of later steps than its checkpoint, which will be repeated."""
        records = [r for r in self.records() if r["part"] != part or r["step"] <= after]
        content = "".join(json.dumps(record) + "\n" for record in records)
        write_atomically(self._log_path, content.encode())

    def close_log(self, part: str) -> None:
        """Closes the TensorBoard events of a part."""
        if part in self._writers:
            self._writers.pop(part).close()


def _checksum(value: Any) -> int:
    return zlib.crc32(json.dumps(value).encode())


def _differences(old: Mapping, new: Mapping, prefix: str = "") -> list[str]:
    """A phrase for each value that differs."""
    found = []
    for key in sorted(old.keys() | new.keys()):
        before, now = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(now, dict):
            found += _differences(before, now, f"{prefix}{key}.")
        elif before != now:
            found.append(f"{prefix}{key} was {before}, is now {now}")
    return found
