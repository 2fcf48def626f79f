"""Records: what a run writes of itself when it ends, and what docs/results keeps of it."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jax
from matplotlib.figure import Figure

from common.errors import UserError
from common.files import write_atomically, write_json
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

    rows: Sequence[Row]
    name: str = ""
    command: str = ""
    finished: str = ""
    commit: str = ""
    changed: Sequence[str] = ()
    cores: int = 0
    device: str = ""
    seconds: float | None = None
    failed: Sequence[str] = ()
    stated: Sequence[Stated] = ()
    quoted: str = ""
    others: str = ""
    stale: str = ""
    config: Mapping[str, Any] = MappingProxyType({})

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
    write_json(work.path / "results.json", [dataclasses.asdict(row) for row in rows])
    record = _record(work, rows)._replace(quoted=results.joined(quoted or {}))
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
    write(work.path / FILE, record)
    return printed


def drawn(report: Report, record: Record) -> dict[str, Figure]:
    """File name without `.png` -> figure, of those that rows suffice for."""
    draw = getattr(report, "figures", None)
    return draw(record) if draw else {}


def _record(work: Workdir, rows: Sequence[Row]) -> Record:
    """The record of a run that ends now."""
    command, device = work.path / COMMAND, jax.devices()[0]
    accelerator = "" if device.platform == "cpu" else f"{device.device_kind}, JAX {jax.__version__}"
    commit, changed = _code(work.started)
    failed, stated = _said(work)
    return Record(
        rows,
        command=command.read_text().strip() if command.exists() else "",
        finished=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        commit=commit,
        changed=changed,
        cores=len(os.sched_getaffinity(0)),
        device=accelerator,
        seconds=None if work.resumed else round(time.time() - work.started),
        failed=failed,
        stated=stated,
        config=work.config,
    )


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


def _said(work: Workdir) -> tuple[list[str], list[Stated]]:
    """What the parts of a run say of themselves: failures and probabilities of success."""
    failed, stated = [], []
    for path in sorted(work.path.glob("parts/*.json")):
        match json.loads(path.read_text())["result"]:
            case {"rows": rows, "notes": notes}:
                failed += [path.stem] if notes.get("failed") else []
                wrong = [bool(row["mean"]) for row in rows if row["metric"].startswith("false_")]
                if "probability" in notes and wrong:
                    succeeded = bool(notes["failed"]) == any(wrong)
                    probability = round(notes["probability"], DIGITS)
                    stated += [Stated(path.stem, notes["initialization"], probability, succeeded)]
    return failed, stated


def of_run(folder: Path) -> Record:
    """The record that a run has written of itself; UserError: it has not finished."""
    if not (folder / FILE).exists():
        raise UserError(f"There is no {folder / FILE}: give the folder of a finished run.")
    return read(folder, Path(FILE).stem)


def read_all(folder: Path) -> list[Record]:
    """All records of docs/results."""
    return [read(folder, f"{x.parent.name}/{x.stem}") for x in sorted(folder.glob("*/*.json"))]


def read(folder: Path, name: str) -> Record:
    """Reads the record PAPER/NAME of docs/results; FileNotFoundError: there is none."""
    head = json.loads((folder / f"{name}.json").read_text())
    shared, rows = head.pop("shared"), head.pop("rows")
    for row in rows:
        row["labels"] = shared["labels"] | row.get("labels", {})
    head["stated"] = tuple(Stated(*values) for values in head.get("stated", ()))
    return Record([results.from_fields(shared | row) for row in rows], name, **head)


def write(path: Path, record: Record) -> None:
    """Writes a record, with rounded numbers; fields and labels that all rows share stand once."""
    text = json.dumps([results.fields(row) for row in record.rows])
    number = {"parse_float": lambda x: round(float(x), DIGITS), "parse_constant": lambda x: None}
    rows = json.loads(text, **number)
    shared_labels, labels = _split([row.pop("labels") for row in rows])
    shared, rows = _split(rows)
    lines = [
        json.dumps(row | {"labels": rest} if rest else row)
        for row, rest in zip(rows, labels, strict=True)
    ]
    known = [(k, v) for k, v in record._asdict().items() if k not in ("rows", "name")]
    head = {k: v for k, v in known if v != Record._field_defaults[k]}
    top = json.dumps(head | {"shared": shared | {"labels": shared_labels}}, indent=1)
    text = top.removesuffix("\n}") + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
    write_atomically(path, text.encode())


def _split(rows: Sequence[dict]) -> tuple[dict, list[dict]]:
    """What all rows have in common, and the rest of each row."""
    first = rows[0] if rows else {}
    shared = {k: v for k, v in first.items() if all(k in row and row[k] == v for row in rows)}
    return shared, [{k: v for k, v in row.items() if k not in shared} for row in rows]


def mark_stale(folder: Path, record: Record, why: str) -> None:
    """Writes into a record since when the code computes something else, and why; a reason once."""
    if f": {why};" not in f"{record.stale};":
        before = f"{record.stale};" if record.stale else "stale"
        stale = f"{before} since {_code(time.time())[0]}: {why}"
        write(folder / f"{record.name}.json", record._replace(stale=stale))


def frame(folder: Path) -> "pd.DataFrame":
    """The rows of all records of docs/results: a column for each field and label, and `record`.

    Labels whose name is that of a field have `label_` before it. Empty columns are left out.
    """
    import pandas as pd  # half a second, which a run does not need

    frames = {x.name: results.frame(x.rows).drop(columns="row") for x in read_all(folder)}
    table = pd.concat(frames, names=["record"]).reset_index("record").reset_index(drop=True)
    return table.dropna(axis=1, how="all").convert_dtypes()


class Headline(NamedTuple):
    """A main result of a paper: one line of RESULTS.md, the first two of the README.

    `row` selects a row of the record by fields and labels. `reference` says in which of them the
    row that it is compared with differs from it; None: there is none.
    """

    measure: str
    record: str
    row: dict
    reference: dict | None = None
