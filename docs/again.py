r"""Makes records again by their own commands, compares their rows, and keeps them.

  python -m docs.again --run=runs/again --jobs=2           # those that do not hold
  python -m docs.again lpl/nli --run=runs/again            # these, whether they hold or not
  python -m docs.again --run=runs/drawn --draw=5           # five at random, which are not kept

Each run has a folder PAPER/NAME below --run, a log beside it, and one core of its own. A killed run
resumes by the same command. Records are drawn among those of which no longer time than an hour is
known; a run that takes longer is ended. Their table is the page spot_check.md of docs/results.
"""

import random
import shlex
from pathlib import Path

from absl import flags

from common.errors import check_choice
from common.files import write_atomically
from common.run import cli, records
from common.run.records import Record
from common.run.results import markdown
from docs import render
from docs.check import JOBS, MAX_SHOWN, about, differences, run_copies, timeless
from docs.keep import keep

DRAW = flags.DEFINE_integer("draw", 0, "Number of records to draw and compare.")
RANDOM_SEED = flags.DEFINE_integer("random_seed", 0, "Of the draw.")
SECONDS = 3600  # of a run that is drawn
HEADER = "Record", "Recorded at", "Rows", "Beyond the tolerance", "Farthest mean", "Time"
NOTE = (
    "Beyond the tolerance: rows that differ by more than a quick form may (docs/check.py). "
    "Farthest mean: the largest difference, as a share of the deviation over random seeds."
)


def compared(record: Record, folder: Path, drawn: bool) -> list[str]:
    """Compares a run in a folder with a record, and keeps it unless that was drawn; cells."""
    cells = [f"`{record.name}`", record.commit, f"{len(record.rows)}"]
    if drawn and not (folder / records.FILE).exists():
        return [*cells, "-", "-", f"more than {SECONDS:,} s"]
    made = records.of_run(folder)
    found = [phrase for _, phrase in differences(record.rows, made.rows)]
    print("\n".join(found[:MAX_SHOWN]))
    now = {about(row): row for row in timeless(made.rows)}
    pairs = [(row, now.get(about(row), row)) for row in timeless(record.rows) if row.std]
    apart = max((abs(new.mean - row.mean) / row.std for row, new in pairs), default=0.0)
    if not drawn:
        keep(folder, record.name)
    time = f"{made.seconds} s" if made.seconds else "-"
    return [*cells, f"{len(found)}", f"{apart:.2f}", time]


def main(argv: list[str]) -> None:
    """Makes the chosen records again and keeps them, or draws some."""
    folder = Path(cli.given("run", "python -m docs.again"))
    known = {record.name: record for record in render.all_records()}
    for name in argv[1:]:
        check_choice("record", name, known)
    chosen = [known[name] for name in argv[1:]] or render.fallen()
    if drawn := bool(DRAW.value):
        short = [x for x in known.values() if (x.seconds or 0) <= SECONDS and not x.device]
        chosen = random.Random(RANDOM_SEED.value).sample(short, DRAW.value)
    made = {folder / record.name: record for record in chosen}
    commands = {path: shlex.split(record.command)[2:] for path, record in made.items()}
    ended = run_copies(commands, JOBS.value, SECONDS * drawn)
    table = markdown(HEADER, [compared(made[path], path, drawn) for path in ended])
    print(table)
    if drawn:
        text = f"Drawn by the random seed {RANDOM_SEED.value}, and made again in full. {NOTE}"
        page = f"# Spot check\n\n{text}\n\n{table}\n"
        write_atomically(render.RESULTS / "spot_check.md", page.encode())


if __name__ == "__main__":
    cli.run(main, positional=True, by_jax=False)
