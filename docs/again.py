r"""Makes records again by their own commands, and keeps them.

  python -m docs.again --run=runs/again --jobs=2           # those that do not hold
  python -m docs.again lpl/nli --run=runs/again            # these, whether they hold or not
  python -m docs.again --run=runs/drawn --draw=5           # five at random, to compare

Each run has a folder PAPER/NAME below --run, a log beside it, and one core of its own. A killed run
resumes by the same command. With --draw, nothing is kept: as many records as it says, drawn among
those of which no longer time than an hour is known, are made again in full, and the page
spot_check.md of docs/results says how far their rows are from the recorded ones. A run that takes
longer than an hour is ended, and its line says so.
"""

import math
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from common.errors import UserError
from common.files import write_atomically
from common.progress import progress_bar
from common.run import cli, records
from common.run.records import Record
from common.run.results import fields, markdown
from docs import render
from docs.check import JOBS, differences, identity, one_core_each, rows_of
from docs.keep import keep

DRAW = flags.DEFINE_integer("draw", 0, "Number of records to draw and compare.")
RANDOM_SEED = flags.DEFINE_integer("random_seed", 0, "Of the draw.")
SECONDS = 3600  # of a run that is drawn
SPOT_CHECK = render.RESULTS / "spot_check.md"


def make(record: Record, folder: Path, seconds: float | None = None) -> Path:
    """The folder of a finished run of a record's command.

    Raises:
      CalledProcessError, TimeoutExpired: it has failed, or takes longer than `seconds`.
    """
    run = folder / record.name
    run.parent.mkdir(parents=True, exist_ok=True)
    _, *words = shlex.split(record.command)
    command = [sys.executable, *words, f"--workdir={run}"]
    with run.with_suffix(".log").open("ab") as log:
        streams = {"stdout": log, "stderr": log}
        subprocess.run(command, cwd=render.ROOT, check=True, timeout=seconds, **streams)
    return run


def again(chosen: Sequence[Record], folder: Path, jobs: int) -> None:
    """Makes records again and keeps each when it is finished; the first failure is raised then."""

    def one(record: Record) -> list[Path]:
        return keep(make(record, folder), record.name)

    with one_core_each(jobs) as pool:
        bar = progress_bar(pool.map(one, chosen), total=len(chosen), desc="records", unit="run")
        for path in (path for paths in bar for path in paths):
            print(f"wrote {path.relative_to(render.ROOT)}")


def spot_check(count: int, random_seed: int, folder: Path, jobs: int) -> str:
    """A table of records that were drawn and made again: how far their rows are from the kept ones.

    Args:
      count: number of records.
      random_seed: of the draw.
      folder: of the runs.
      jobs: number of runs at a time.
    """
    short = [x for x in render.all_records() if (x.seconds or 0) <= SECONDS and not x.device]
    drawn = random.Random(random_seed).sample(short, count)

    def line(record: Record) -> list[str]:
        try:
            run = make(record, folder, SECONDS)
        except subprocess.TimeoutExpired:
            return [f"`{record.name}`", record.commit, "-", "-", "-", f"more than {SECONDS:,} s"]
        kept, fresh = records.rounded([fields(row) for row in record.rows]), rows_of(run)
        kept = [row for row in kept if not row["metric"].endswith("seconds")]
        now = {identity(row): row["mean"] for row in fresh}
        both = [(row["mean"], now[identity(row)]) for row in kept if identity(row) in now]
        moved = max((abs(before - after) for before, after in both), default=math.nan)
        head, _ = records.unpacked((run / records.FILE).read_text())
        counts = f"{len(kept)}", f"{len(differences(kept, fresh))}"
        return [f"`{record.name}`", record.commit, *counts, f"{moved:.2g}", f"{head['seconds']} s"]

    with one_core_each(jobs) as pool:
        bar = progress_bar(pool.map(line, drawn), total=count, desc="records", unit="run")
        lines = list(bar)
    header = "Record", "Recorded at", "Rows", "Beyond the tolerance", "Largest difference", "Time"
    return markdown(header, lines)


def main(argv: list[str]) -> None:
    """Makes the chosen records again, or draws some and compares them."""
    folder = Path(cli.given("run", "python -m docs.again"))
    if DRAW.value:
        table = spot_check(DRAW.value, RANDOM_SEED.value, folder, JOBS.value)
        about = f"Drawn by the random seed {RANDOM_SEED.value}, and made again"
        write_atomically(SPOT_CHECK, f"# Spot check\n\n{about} in full.\n\n{table}\n".encode())
        print(f"{table}\n\nwrote {SPOT_CHECK.relative_to(render.ROOT)}")
        return
    known = {record.name: record for record in render.all_records()}
    if unknown := [name for name in argv[1:] if name not in known]:
        raise UserError(f"There is no record {unknown[0]}: give PAPER/NAME, as lpl/nli.")
    fallen = [name for name, x in known.items() if x.stale or render.outdated(x)]
    again([known[name] for name in argv[1:] or fallen], folder, JOBS.value)


if __name__ == "__main__":
    cli.run(main, positional=True)
