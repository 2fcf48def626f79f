"""The metrics of a run, step by step: a file that the code reads, and TensorBoard's events."""

import json
import shutil
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import logging
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2, summary_pb2
from tensorboardX.summary import hparams, scalar

from common.files import as_json, naming, write_atomically

# protobuf makes these types when it is imported.
Event = event_pb2.Event  # pyright: ignore[reportAttributeAccessIssue]
SessionLog = event_pb2.SessionLog  # pyright: ignore[reportAttributeAccessIssue]
Summary = summary_pb2.Summary  # pyright: ignore[reportAttributeAccessIssue]


class MetricsLog:
    """The metrics of the parts of a run, in its folder: metrics.jsonl and tensorboard/."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._path = folder / "metrics.jsonl"
        self._writers: dict[str, EventsWriter] = {}

    def add(self, part: str, records: Mapping[int, Mapping[str, float]]) -> None:
        """Appends step -> values to metrics.jsonl and to the part's TensorBoard events."""
        lines = [
            json.dumps(as_json({"part": part, "step": step, **values}))
            for step, values in records.items()
        ]
        with naming(self._folder):
            with self._path.open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
            # EventsWriter writes in this thread. The thread of SummaryWriter ends on a full disk,
            # and then the queue to it blocks forever.
            if part not in self._writers:
                folder = self._folder / "tensorboard" / part
                folder.mkdir(parents=True, exist_ok=True)
                self._writers[part] = EventsWriter(str(folder / "events"))
                session = SessionLog(status=SessionLog.START)  # hides later steps of a killed run
                self._event(part, min(records, default=0), session_log=session)
            for step, values in records.items():
                for name, value in values.items():
                    self._event(part, step, summary=scalar(name, value))
            self._writers[part].flush()  # waits for the disk, so once for all records

    def show(self, images: Mapping[str, bytes], values: Mapping[str, Any]) -> None:
        """Writes the TensorBoard events of the run anew: PNGs and hyper-parameters by name."""
        folder = self._folder / "tensorboard/run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        simple = (bool, int, float, str)
        shown = {name: x if isinstance(x, simple) else str(x) for name, x in values.items()}
        with naming(self._folder):
            self._writers["run"] = EventsWriter(str(folder / "events"))
            for summary in hparams(shown, {}):
                self._event("run", 0, summary=summary)
            for name, content in images.items():
                height, width = reversed(struct.unpack(">II", content[16:24]))  # of a PNG
                image = {"encoded_image_string": content, "colorspace": 4}
                image |= {"height": height, "width": width}
                self._event("run", 0, summary=Summary(value=[{"tag": name, "image": image}]))
            self.close("run")

    def _event(self, part: str, step: int, **content) -> None:
        self._writers[part].write_event(Event(step=step, wall_time=time.time(), **content))

    def records(self) -> list[dict]:
        """All records of metrics.jsonl but for damaged lines, which a kill can leave."""
        if not self._path.exists():
            return []
        records = []
        for line in self._path.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
                records.append(record | {"part": record["part"], "step": record["step"]})
            except (ValueError, KeyError, TypeError):
                logging.warning("Omitting a damaged line of %s", self._path)
        return records

    def forget(self, part: str, after: int) -> None:
        """Deletes the part's records of later steps than its checkpoint, which will be repeated."""
        records = [r for r in self.records() if r["part"] != part or r["step"] <= after]
        content = "".join(json.dumps(record) + "\n" for record in records)
        write_atomically(self._path, content.encode())

    def close(self, part: str) -> None:
        """Closes the TensorBoard events of a part."""
        if part in self._writers:
            self._writers.pop(part).close()
