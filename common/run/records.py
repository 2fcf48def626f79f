"""Records: finished runs whose results are stored in docs/results and shown on its pages."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from common.run.results import FIELDS, Row, fields, from_fields

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 6  # decimal places of a kept number


class Stated(NamedTuple):
    """What one part of a run says about its own result, and what is true.

    Attributes:
      part: of the run.
      initialization: the one that it took.
      probability: that it states of its success.
      succeeded: whether it has succeeded in truth.
    """

    part: str
    initialization: str
    probability: float
    succeeded: bool


class Record(NamedTuple):
    """A finished run.

    Attributes:
      name: PAPER/NAME, which is docs/results/PAPER/NAME.json.
      config: values of its config.
      rows: its results.
      failed: parts of the run whose method reported a failure.
      stated: of the parts whose method states a probability of success.
      command: its command without the workdir.
      finished: date and time, UTC.
      commit: commit of the code.
      cores: number of processor cores.
      device: the accelerator that computed it, and the release of JAX there; empty: the cores.
      others: date, commit and machine of the methods that were not run again with the others;
        empty: all are of one run.
      seconds: duration; None if the run was resumed.
      quoted: parts of its table.md that are not in `rows`.
      empty_cache_seconds: duration if data have to be fetched and prepared too; None: not measured.
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
    stated: Sequence[Stated] = ()
    empty_cache_seconds: float | None = None
    device: str = ""
    others: str = ""

    def machine(self) -> str:
        """The accelerator, or the number of cores."""
        return self.device or f"{self.cores} core{'s' if self.cores > 1 else ''}"

    def provenance(self) -> str:
        """One line with the command, date, commit, cores or accelerator, and duration."""
        seconds = f" in {self.seconds:,.0f} s" if self.seconds else ""
        others = f"; {self.others}" if self.others else ""
        made = f"{self.finished[:10]}, {self.commit}, {self.machine()}{seconds}{others}"
        return f"`{self.command}`: {made}."


def read(folder: Path, name: str) -> Record:
    """Reads a record that `docs/keep.py` wrote.

    Args:
      folder: docs/results.
      name: PAPER/NAME.

    Raises:
      FileNotFoundError: the record does not exist.
    """
    return _of_text((folder / f"{name}.json").read_text())._replace(name=name)


@lru_cache(maxsize=256)  # the pages quote a record several times
def _of_text(text: str) -> Record:
    head, rows = unpacked(text)
    head["stated"] = [Stated(*values) for values in head.get("stated", ())]
    return Record(name="", rows=[from_fields(row) for row in rows], **head)


def frame(folder: Path) -> "pd.DataFrame":
    """The rows of all records as one table: a column for each field and label.

    Labels whose name is that of a field have `label_` before it. Columns that no row fills are left
    out. `record` is the name, as of `read`.

    Args:
      folder: docs/results.
    """
    import pandas as pd  # half a second, which a run does not need

    lines = []
    for path in sorted(folder.glob("*/*.json")):
        name = str(path.relative_to(folder).with_suffix(""))
        for row in read(folder, name).rows:
            about = fields(row)
            labels = about.pop("labels")
            about |= {f"label_{k}" if k in FIELDS else k: v for k, v in labels.items()}
            lines.append({"record": name, **about})
    return pd.DataFrame(lines).convert_dtypes()


def packed(head: dict, rows: Sequence[dict]) -> str:
    """JSON text of rows below what is said of all: fields that the rows share stand once.

    Args:
      head: JSON-serialisable, without the names `shared` and `rows`.
      rows: fields of `Row`, and others.
    """
    labels = [row["labels"] for row in rows]
    rows = [{k: v for k, v in row.items() if k != "labels" and v is not None} for row in rows]
    (shared, rows), (shared_labels, labels) = _split(rows), _split(labels)
    lines = [
        json.dumps(row | ({"labels": own} if own else {}))
        for row, own in zip(rows, labels, strict=True)
    ]
    top = json.dumps(head | {"shared": shared | {"labels": shared_labels}}, indent=1)
    return top.removesuffix("\n}") + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def unpacked(text: str) -> tuple[dict, list[dict]]:
    """The head and the rows of a `packed` text."""
    head = json.loads(text)
    shared, rows = head.pop("shared"), head.pop("rows")
    return head, [
        shared | row | {"labels": shared["labels"] | row.get("labels", {})} for row in rows
    ]


def _split(rows: Sequence[dict]) -> tuple[dict, list[dict]]:
    """What all rows have in common, and the rest of each row."""
    shared = {k: v for k, v in rows[0].items() if all(k in row and row[k] == v for row in rows)}
    return shared, [{k: v for k, v in row.items() if k not in shared} for row in rows]


def rounded(rows: Sequence[dict]) -> list[dict]:
    """Rows with the decimal places that are kept, in their fields and labels."""
    return [
        {k: _rounded(v) for k, v in row.items()}
        | {"labels": {k: _rounded(v) for k, v in row["labels"].items()}}
        for row in rows
    ]


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


class Headline(NamedTuple):
    """A main result of a paper: one line of RESULTS.md, the first two of the README.

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
