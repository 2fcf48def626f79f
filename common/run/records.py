"""Records: what a run writes of itself when it ends, and what docs/results keeps of it."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from matplotlib.figure import Figure

from common.files import as_json, write_atomically, write_json
from common.run import results, settings
from common.run.figures import png
from common.run.results import FIELDS, Row
from common.run.workdir import COMMAND, Workdir

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).parents[2]
FILE = "record.json"  # in the folder of a run
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
      command: its command without the workdir.
      finished: date and time, UTC.
      commit: of the code; empty without git.
      changed: files of the code that differed from the commit.
      cores: number of processor cores.
      device: the accelerator that computed it, and the release of JAX there; empty: the cores.
      seconds: duration; None if the run was resumed.
      config: values of its config.
      failed: parts of the run whose method reported a failure.
      stated: of the parts whose method states a probability of success.
      quoted: Markdown of the run that rows cannot say.
      rows: its results.
      others: date, commit and machine of rows that were made apart from the others.
      stale: since which commit the code computes something else, and why; empty if it holds.
    """

    name: str
    command: str
    finished: str
    commit: str
    cores: int
    config: dict
    rows: list[Row]
    failed: Sequence[str] = ()
    stated: Sequence[Stated] = ()
    seconds: float | None = None
    changed: Sequence[str] = ()
    device: str = ""
    quoted: str = ""
    others: str = ""
    stale: str = ""

    def machine(self) -> str:
        """The accelerator, or the number of cores."""
        return self.device or f"{self.cores} core{'s' if self.cores > 1 else ''}"

    def provenance(self) -> str:
        """One line with the command, date, commit, cores or accelerator, and duration."""
        seconds = f" in {self.seconds:,.0f} s" if self.seconds else ""
        others = f"; {self.others}" if self.others else ""
        made = f"{self.finished[:10]}, {self.commit}, {self.machine()}{seconds}{others}"
        return f"`{self.command}`: {made}."


def finish(
    work: Workdir,
    rows: Sequence[Row],
    table: str,
    figures: Mapping[str, Figure] | None = None,
    quoted: str = "",
) -> str:
    """Writes the results, table, figures and record of a run, and returns what it prints.

    Figures and the values of the config are TensorBoard events too. What a quick run writes says
    that it is one.

    Args:
      work: the run's folder.
      rows: the results.
      table: Markdown.
      figures: file name without `.png` -> figure.
      quoted: Markdown below the table that rows cannot say, which the record keeps too.
    """
    values = as_json([dataclasses.asdict(row) for row in rows])
    write_json(work.path / "results.json", values)
    table = results.marked(work, f"{table}\n\n{quoted}".strip())
    write_atomically(work.path / "table.md", f"{table}\n".encode())
    images = {}
    for name, figure in (figures or {}).items():
        if work.quick:
            figure.suptitle(f"QUICK: {figure.get_suptitle()}")
        images[name] = png(figure)
        write_atomically(work.path / f"{name}.png", images[name])
    work.metrics.show(images, settings.flat(work.config))
    head = _head(work) | {"quoted": quoted}
    write_atomically(work.path / FILE, packed(head, rounded(values)).encode())
    return table


def _head(work: Workdir) -> dict[str, Any]:
    """What a record says of all rows of a run that ends now."""
    command, device = work.path / COMMAND, jax.devices()[0]
    accelerator = "" if device.platform == "cpu" else f"{device.device_kind}, JAX {jax.__version__}"
    commit, changed = _code(work.started)
    return {
        "command": command.read_text().strip() if command.exists() else "",
        "finished": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": commit,
        "changed": changed,
        "cores": len(os.sched_getaffinity(0)),
        "device": accelerator,
        "seconds": None if work.resumed else round(time.time() - work.started),
        **_said(work),
        "config": work.config,
    }


def _code(started: float) -> tuple[str, list[str]]:
    """The commit of the code, and the files that ran and are others there, or newer than the run.

    The commit is empty where the code is not a checkout of its own.
    """
    git = ["git", "-C", str(ROOT)]
    known = subprocess.run(
        [*git, "rev-parse", "--short", "--show-toplevel", "HEAD"], capture_output=True, text=True
    )
    folder, _, commit = known.stdout.strip().rpartition("\n")
    if known.returncode or Path(folder) != ROOT:
        return "", []
    modules = [getattr(module, "__file__", None) for module in [*sys.modules.values()]]
    ran = {path for path in map(Path, filter(None, modules)) if path.is_relative_to(ROOT)}
    files = sorted(ran | set(ROOT.glob("configs/**/*.py")))
    status = subprocess.run(
        [*git, "status", "--porcelain", "--", *map(str, files)], capture_output=True, text=True
    )
    changed = {line[3:] for line in status.stdout.splitlines()}
    changed |= {str(path.relative_to(ROOT)) for path in files if path.stat().st_mtime > started}
    return commit, sorted(changed)


def _said(work: Workdir) -> dict[str, list]:
    """What the parts of a run say of themselves: failures and probabilities of success."""
    failed, stated = [], []
    for path in sorted(work.path.glob("parts/*.json")):
        part = json.loads(path.read_text())["result"]
        if not (isinstance(part, dict) and "notes" in part):
            continue
        notes, rows = part["notes"], part.get("rows", ())
        failed += [path.stem] if notes.get("failed") else []
        wrong = [bool(r["mean"]) for r in rows if r["metric"].startswith("false_")]
        if "probability" in notes and wrong:
            succeeded = bool(notes["failed"]) == any(wrong)
            probability = round(notes["probability"], DIGITS)
            stated.append(Stated(path.stem, notes["initialization"], probability, succeeded))
    return {"failed": failed, "stated": stated}


def read(folder: Path, name: str) -> Record:
    """Reads a record that was kept.

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
    return Record(name="", rows=[results.from_fields(row) for row in rows], **head)


def mark_stale(folder: Path, name: str, why: str) -> None:
    """Writes into a record that the code computes something else now, and why."""
    path = folder / f"{name}.json"
    head, rows = unpacked(path.read_text())
    before = f"; before: {head['stale']}" if head.get("stale") else ""
    head["stale"] = f"stale since {_code(time.time())[0]}: {why}{before}"
    write_atomically(path, packed(head, rows).encode())


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
            about = results.fields(row)
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
    first = rows[0] if rows else {}
    shared = {k: v for k, v in first.items() if all(k in row and row[k] == v for row in rows)}
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
