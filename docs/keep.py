r"""Keeps a finished run for the pages: its numbers, its config, and how it was made.

  python -m docs.keep --run=runs/nli --name=lpl/nli --cores=2 --seconds=155 \
    --figures=bbc_pairs_test --command="--config=configs/lpl/nli.py"

Writes docs/results/NAME.json (read by `common.records`), and the figures as
docs/figures/NAME-FIGURE.png. Then `python -m docs.render` writes the pages that quote the run.

  python -m docs.keep --all --run=runs/record --cores=1 --jobs=2

makes every kept run again by its own command, in a folder below --run, and keeps its results, its
figures and what it quotes; --jobs runs at a time, each on --cores cores of its own, and with --name
only those whose names begin so. Runs whose record is already of the last commit that changed code
are left out, and a killed run resumes: the same command goes on where it was stopped.
"""

import io
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from absl import flags
from PIL import Image
from tqdm import tqdm

from common import cli, records
from common.errors import UserError
from common.records import Record
from common.workdir import write_atomically
from docs import render
from isthmus import PAPERS

ROOT = Path(__file__).parents[1]
ALL = flags.DEFINE_bool("all", False, "Make all kept runs again and keep them.")
RUN = flags.DEFINE_string("run", None, "Folder of the finished run; with --all, of all runs.")
NAME = flags.DEFINE_string("name", None, "PAPER/NAME of the record; with --all, how names begin.")
COMMAND = flags.DEFINE_string("command", None, "The run's flags without --workdir.")
CORES = flags.DEFINE_integer("cores", None, "Processor cores that the run had, or each will have.")
JOBS = flags.DEFINE_integer("jobs", 1, "Number of runs at a time with --all.")
COMMIT = flags.DEFINE_string("commit", None, "Commit that made the run, if it is another one.")
SECONDS = flags.DEFINE_float("seconds", None, "Duration, if the run was not interrupted.")
FIGURES = flags.DEFINE_list("figures", [], "Figures to keep, without .png.")
QUOTE = flags.DEFINE_string("quote", "", "First words of parts of table.md to quote verbatim.")
DIGITS = 6  # decimal places of a kept number
# What a run executes; a commit that changes nothing here changes no result.
CODE = ("common", "configs", *PAPERS)


def main(argv: list[str]) -> None:
    """Reads the folder of a run and writes its record."""
    del argv
    if ALL.value:
        all_again(Path(RUN.value), CORES.value, JOBS.value, NAME.value or "")
        return
    for flag in (NAME, COMMAND):
        if flag.value is None:
            raise UserError(f"--{flag.name} is missing: give it, or --all for every kept run.")
    command = f"python -m {NAME.value.split('/')[0]}.main {COMMAND.value}"
    made = {"commit": COMMIT.value or _commit(), "cores": CORES.value, "seconds": SECONDS.value}
    keep(Path(RUN.value), NAME.value, command, made, FIGURES.value, QUOTE.value)


def keep(
    run: Path, name: str, command: str, made: dict, figures: Sequence[str], quote: str
) -> None:
    """Writes the record of a finished run and its figures.

    Args:
      run: its folder.
      name: PAPER/NAME.
      command: its command without --workdir.
      made: commit, cores and seconds of the run.
      figures: names of the figures to keep.
      quote: first words of the parts of table.md to quote; empty: none.

    Raises:
      UserError: the run is not finished, or has no such figure; nothing is kept then.
    """
    if not (run / "results.json").exists():
        raise UserError(f"There is no {run / 'results.json'}: give the folder of a finished run.")
    for figure in figures:
        if not (run / f"{figure}.png").exists():
            raise UserError(f"There is no {run / figure}.png: give --figures of this run.")
    record = {
        "command": command,
        "finished": _modified(run / "results.json"),
        **made,
        "failed": failed(run),
        "quoted": quoted((run / "table.md").read_text(), quote) if quote else "",
        "config": json.loads((run / "config.json").read_text()),
    }
    rows = json.loads((run / "results.json").read_text())
    write_atomically(ROOT / "docs/results" / f"{name}.json", packed(record, rows).encode())
    for figure in figures:
        path = ROOT / "docs/figures" / f"{name}-{figure}.png"
        write_atomically(path, compressed(run / f"{figure}.png"))


def all_again(folder: Path, cores: int, jobs: int = 1, prefix: str = "") -> None:
    """Makes every kept run that is of another commit again, and keeps it.

    Args:
      folder: of the runs; each has its own folder PAPER/NAME below it.
      cores: processor cores of each run.
      jobs: number of runs at a time.
      prefix: how the names of the runs begin.

    Raises:
      CalledProcessError: a run has failed; the others are kept.
    """
    commit, results = _commit(), ROOT / "docs/results"
    chosen = [
        records.read(results, name) for name in render.names(results) if name.startswith(prefix)
    ]
    stale = [record for record in chosen if record.commit != commit]
    known = sorted(os.sched_getaffinity(0))
    parts = iter([known[job * cores : (job + 1) * cores] or known for job in range(jobs)])

    def limit() -> None:
        """Gives a thread its cores; the processes that it starts inherit them."""
        os.sched_setaffinity(0, next(parts))

    def again(record: Record) -> None:
        _again(record, folder / record.name, {"commit": commit, "cores": cores})

    with ThreadPoolExecutor(jobs, initializer=limit) as pool:
        list(tqdm(pool.map(again, stale), total=len(stale), desc="kept runs", unit="run"))


def _again(record: Record, run: Path, made: dict) -> None:
    """Makes a kept run again in the folder `run`, with a log beside it, and keeps it."""
    name = record.name
    _, *words = shlex.split(record.command)
    command = [sys.executable, *words, f"--workdir={run}"]
    resumed, start = run.exists(), time.monotonic()
    run.parent.mkdir(parents=True, exist_ok=True)
    with run.with_suffix(".log").open("ab") as log:
        subprocess.run(command, cwd=ROOT, check=True, stdout=log, stderr=log)
    seconds = None if resumed else round(time.monotonic() - start)
    prefix = f"{Path(name).name}-"
    images = (ROOT / "docs/figures").glob(f"{name}-*.png")
    figures = [path.stem.removeprefix(prefix) for path in images]
    quote = record.quoted.partition("\n")[0].lstrip("# ")
    keep(run, name, record.command, made | {"seconds": seconds}, figures, quote)


def packed(record: dict, rows: list[dict]) -> str:
    """JSON text of a record: fields that all rows share stand once, then one line for each row."""
    fields = [
        {k: _rounded(v) for k, v in row.items() if k != "labels" and v is not None} for row in rows
    ]
    labels = [{k: _rounded(v) for k, v in row["labels"].items()} for row in rows]
    shared, fields = _split(fields)
    shared["labels"], labels = _split(labels)
    lines = [
        json.dumps(row | ({"labels": own} if own else {}))
        for row, own in zip(fields, labels, strict=True)
    ]
    head = json.dumps(record | {"shared": shared}, indent=1).removesuffix("\n}")
    return head + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _split(rows: list[dict]) -> tuple[dict, list[dict]]:
    """What all rows have in common, and the rest of each row."""
    shared = {k: v for k, v in rows[0].items() if all(k in row and row[k] == v for row in rows)}
    return shared, [{k: v for k, v in row.items() if k not in shared} for row in rows]


def quoted(table: str, beginning: str) -> str:
    """The paragraphs of table.md that begin so, through the end of their table, with headings."""
    heading, found, taking = "", [], False
    for paragraph in table.split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph
        if paragraph.lstrip("# ").startswith(beginning):
            taking = True
            found += [heading] if paragraph != heading else []
        if taking:
            found.append(paragraph.strip())
            taking = not paragraph.startswith("|")
    return "\n\n".join(found)


def failed(run: Path) -> list[str]:
    """The parts of a run whose notes say that the method failed."""
    notes = {}
    for path in sorted((run / "parts").glob("*.json")):
        part = json.loads(path.read_text())["result"]
        notes[path.stem] = part.get("notes", {}) if isinstance(part, dict) else {}
    return [name for name, note in notes.items() if note.get("failed")]


def compressed(path: Path) -> bytes:
    """A figure as PNG of 256 colours: a third of its size without a visible difference."""
    buffer = io.BytesIO()
    Image.open(path).convert("RGB").quantize(256, dither=0).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _rounded(value):
    return round(value, DIGITS) if isinstance(value, float) else value


def _modified(path: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(path.stat().st_mtime))


def _commit() -> str:
    """The last commit that changed code, and whether code differs from the checked-out one."""
    try:
        changed = _git("status", "--porcelain", "--", *CODE)
        return _git("log", "-1", "--format=%h", "--", *CODE) + (" and changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):  # no git, or an exported tree
        return "no commit"


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    flags.mark_flags_as_required(["run", "cores"])
    cli.run(main)
