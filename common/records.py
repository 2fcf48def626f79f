"""Records: finished runs whose results are stored in docs/results and shown on its pages."""

import json
from pathlib import Path
from typing import NamedTuple

from common.report import Row


class Record(NamedTuple):
    """A finished run.

    Attributes:
      name: PAPER/NAME, which is docs/results/PAPER/NAME.json.
      config: values of its config.
      rows: its results.
      failed: parts of the run whose method reported a failure.
      command: its command without the workdir.
      finished: date and time, UTC.
      commit: commit of the code.
      cores: number of processor cores.
      seconds: duration; None if the run was resumed.
      quoted: parts of its table.md that are not in `rows`.
    """

    name: str
    config: dict
    rows: list[Row]
    failed: list[str]
    command: str
    finished: str
    commit: str
    cores: int
    seconds: float | None
    quoted: str

    def provenance(self) -> str:
        """One line with the command, date, commit, cores and duration."""
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        seconds = f" in {self.seconds:,.0f} s" if self.seconds else ""
        return f"`{self.command}`: {self.finished[:10]}, {self.commit}, {cores}{seconds}."


def read(folder: Path, name: str) -> Record:
    """Reads a record that `docs/keep.py` wrote.

    Args:
      folder: docs/results.
      name: PAPER/NAME.

    Raises:
      FileNotFoundError: the record does not exist.
    """
    found = json.loads((folder / f"{name}.json").read_text())
    shared, rows = found.pop("shared"), found.pop("rows")
    merged = [
        shared | row | {"labels": shared.get("labels", {}) | row.get("labels", {})} for row in rows
    ]
    return Record(name=name, rows=[Row(**row) for row in merged], **found)


class Headline(NamedTuple):
    """A main result of a paper: one line of the README's table.

    Attributes:
      measure: what is measured, in words.
      record: PAPER/NAME of the run.
      row: fields and labels that select one row of the record.
      reference: fields and labels of a row to compare it with, for instance that of the true
        pairing; None: no such row.
    """

    measure: str
    record: str
    row: dict
    reference: dict | None = None
