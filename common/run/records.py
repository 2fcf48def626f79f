"""Records: what a run writes of itself when it ends, and what docs/results keeps of it."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jax
from matplotlib.figure import Figure

from common.files import as_json, write_atomically, write_json
from common.run import results, settings
from common.run.figures import png
from common.run.results import Row
from common.run.workdir import COMMAND, Workdir

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).parents[2]
FILE = "record.json"  # in the folder of a run
DIGITS = 6  # decimal places of a kept number


class Stated(NamedTuple):
    """What one part of a run says about its own result, and whether it has succeeded in truth."""

    part: str
    initialization: str
    probability: float
    succeeded: bool


class Record(NamedTuple):
    """A finished run, PAPER/NAME of docs/results.

    Attributes:
      command: without the workdir.
      finished: date and time, UTC.
      commit: of the code; empty without git.
      changed: files of the code that differed from the commit.
      device: the accelerator that computed it, and the release of JAX there; empty: the cores.
      seconds: duration; None if the run was resumed.
      failed: parts of the run whose method reported a failure.
      quoted: Markdown of the run that rows cannot say.
      others: date, commit and machine of rows that were made apart from the others.
      stale: since which commit the code computes something else, and why; empty if it holds.
    """

    rows: list[Row]
    config: dict
    name: str = ""
    command: str = ""
    finished: str = ""
    commit: str = ""
    cores: int = 1
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


@runtime_checkable
class Report(Protocol):
    """The module `<paper>/reports/<experiment>.py`: how the rows of an experiment are shown.

    It may have `figures(record)` too, file name -> figure, of those that rows suffice for, and
    `published(row, config)`, the number that the source prints beside a row.
    """

    def tables(self, record: Record) -> dict[str, str]:
        """Title -> Markdown."""
        ...


def finish(
    work: Workdir,
    rows: Sequence[Row],
    report: Report,
    *,
    figures: Mapping[str, Figure] | None = None,
    quoted: Mapping[str, str] | None = None,
    appendix: Mapping[str, str] | None = None,
) -> str:
    """Prints the tables of a run, writes its results, figures and record, and returns the tables.

    They are printed first, so that no figure that fails hides what has been computed.
    Figures and the values of the config are TensorBoard events too. What a quick run writes says
    that it is one. `figures` (file name without `.png` -> figure) and `quoted` (title -> Markdown,
    which the record keeps) are what rows cannot say; an `appendix` is not printed.
    """
    values = as_json([dataclasses.asdict(row) for row in rows])
    write_json(work.path / "results.json", values)
    head: dict[str, Any] = _head(work) | {"quoted": results.joined(quoted or {})}
    record = Record(list(rows), **head)
    tables = report.tables(record) | dict(quoted or {})
    text = results.marked(work, results.joined(tables | dict(appendix or {})))
    write_atomically(work.path / "table.md", f"{text}\n".encode())
    printed = results.marked(work, results.joined(tables))
    print(printed, flush=True)
    images = {}
    for name, figure in (drawn(report, record) | dict(figures or {})).items():
        if work.quick:
            figure.suptitle(f"QUICK: {figure.get_suptitle()}")
        images[name] = png(figure)
        write_atomically(work.path / f"{name}.png", images[name])
    work.metrics.show(images, settings.flat(work.config))
    write_atomically(work.path / FILE, packed(head, values).encode())
    return printed


def drawn(report: Report, record: Record) -> dict[str, Figure]:
    """File name without `.png` -> figure, of those that rows suffice for."""
    draw = getattr(report, "figures", None)
    return draw(record) if draw else {}


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
    """The commit, empty without a checkout, and files that ran and differ from it, or are newer."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        known = shutil.which("git")
        return subprocess.run(command, capture_output=True, text=True).stdout if known else ""

    folder, _, commit = git("rev-parse", "--short", "--show-toplevel", "HEAD").partition("\n")
    if Path(folder) != ROOT:
        return "", []
    modules = [getattr(module, "__file__", None) for module in [*sys.modules.values()]]
    ran = {path for path in map(Path, filter(None, modules)) if path.is_relative_to(ROOT)}
    files = sorted(ran | set(ROOT.glob("configs/**/*.py")))
    status = git("status", "--porcelain", "--", *map(str, files))
    changed = {line[3:] for line in status.splitlines()}
    changed |= {str(path.relative_to(ROOT)) for path in files if path.stat().st_mtime > started}
    return commit.strip(), sorted(changed)


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


def read_all(folder: Path) -> list[Record]:
    """All records of docs/results."""
    files = (path.relative_to(folder) for path in sorted(folder.glob("*/*.json")))
    return [read(folder, str(file.with_suffix(""))) for file in files]


def read(folder: Path, name: str) -> Record:
    """Reads the record PAPER/NAME of docs/results; FileNotFoundError: there is none."""
    return _of_text((folder / f"{name}.json").read_text())._replace(name=name)


@lru_cache(maxsize=256)  # the pages quote a record several times
def _of_text(text: str) -> Record:
    head, rows = unpacked(text)
    head["stated"] = [Stated(*values) for values in head.get("stated", ())]
    return Record([results.from_fields(row) for row in rows], **head)


def comparable(file: Path) -> list[dict]:
    """The rows of a record but for durations, as fields; none if there is no such file."""
    _, rows = unpacked(file.read_text()) if file.exists() else ({}, [])
    return [row for row in rows if not row["metric"].endswith("seconds")]


def mark_stale(folder: Path, name: str, why: str) -> None:
    """Writes into a record since when the code computes something else, and why; a reason once."""
    path = folder / f"{name}.json"
    head, rows = unpacked(path.read_text())
    known = head.get("stale", "").removeprefix("stale since ")
    reasons = known.split("; since ") if known else []
    if why not in (reason.partition(": ")[2] for reason in reasons):
        reasons.append(f"{_code(time.time())[0]}: {why}")
    head["stale"] = f"stale since {'; since '.join(reasons)}"
    write_atomically(path, packed(head, rows).encode())


def frame(folder: Path) -> "pd.DataFrame":
    """The rows of all records of docs/results: a column for each field and label, and `record`.

    Labels whose name is that of a field have `label_` before it. Empty columns are left out.
    """
    import pandas as pd  # half a second, which a run does not need

    frames = {x.name: results.frame(x.rows).drop(columns="row") for x in read_all(folder)}
    table = pd.concat(frames, names=["record"]).reset_index("record").reset_index(drop=True)
    return table.dropna(axis=1, how="all").convert_dtypes()


def packed(head: dict, rows: Sequence[dict]) -> str:
    """JSON text of rows below a head, rounded; fields and labels that all rows share stand once."""
    text = json.dumps([{k: v for k, v in row.items() if v is not None} for row in rows])
    kept = json.loads(text, parse_float=lambda number: round(float(number), DIGITS))
    shared_labels, labels = _split([row.pop("labels") for row in kept])
    shared, kept = _split(kept)
    lines = [
        json.dumps(row | ({"labels": rest} if rest else {}))
        for row, rest in zip(kept, labels, strict=True)
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


class Headline(NamedTuple):
    """A main result of a paper: one line of RESULTS.md, the first two of the README.

    `row` selects a row of the record by fields and labels. `reference` says in which of them the
    row that it is compared with differs from it; None: there is none.
    """

    measure: str
    record: str
    row: dict
    reference: dict | None = None
