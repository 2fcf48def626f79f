r"""Keeps a finished run for the pages: its numbers, its config, and how it was made.

  python -m docs.keep --run=runs/nli --name=lpl/nli --cores=2 --figures=bbc_pairs_test

writes docs/results/NAME.json (read by `common.run.records`), and the figures as
docs/figures/NAME-FIGURE.png; then `python -m docs.render` writes the pages that quote the run.

  python -m docs.keep --name=embed_match/correlate --empty_cache_seconds=170

writes into a record how long its command takes where data have to be fetched and prepared too.

  python -m docs.keep --fingerprint --name=lpl/nli --run=runs/fingerprints

makes the fingerprint of a record: the rows of its command in quick form (docs/fingerprints.py). The
quick form leaves out the flags of values that `config.when_quick` sets; --quick_flags gives others.
With --widen, the rows of its last fingerprint were made by the same code on another processor, and
the tolerances cover them.

  python -m docs.keep --check --run=runs/quick --jobs=2

makes the quick forms of all records again and prints a line for each record: valid, or which rows
differ. It exits with 1 unless all are valid; with --allow_stale, unless all differences are known.
--verified writes the commit into the fingerprints that hold. If a mend has changed numbers,
--accept="why" takes the fresh rows as fingerprints and marks these records as stale.

  python -m docs.keep --all --run=runs/record --cores=1 --jobs=2

checks too, then makes every record that is not valid again by its own command, in a folder below
--run, and keeps its results, its figures and what it quotes; --jobs runs at a time, each on --cores
cores of its own. A killed run resumes: the same command goes on where it was stopped.

With --name, each of the last three takes only records whose names begin so; commas separate more
beginnings. If a mend has changed some methods alone, --methods=A,B runs only these again: the rows
of the record's other methods stay, with the date and the commit that made them. The figures of such
a record are drawn from its rows, by `python -m docs.plots`.
"""

import io
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from absl import flags
from PIL import Image

from common.errors import UserError
from common.progress import progress_bar
from common.run import cli, records
from common.run.records import Record, Stated
from common.run.workdir import COMMAND, write_atomically
from docs import fingerprints, render

ROOT = Path(__file__).parents[1]
RUN = flags.DEFINE_string("run", None, "Folder of the finished run, or of all runs to be made.")
NAME = flags.DEFINE_string("name", "", "PAPER/NAME of the record, or how names begin.")
CORES = flags.DEFINE_integer("cores", None, "Processor cores that the run had, or each will have.")
DEVICE = flags.DEFINE_string(
    "device", "", "The accelerator of the run and its JAX: 'one NVIDIA H100, JAX 0.11.2'."
)
SECONDS = flags.DEFINE_float("seconds", None, "Duration, if the run was not interrupted.")
EMPTY_CACHE_SECONDS = flags.DEFINE_float(
    "empty_cache_seconds", None, "Duration of a record's command from an empty cache."
)
FIGURES = flags.DEFINE_list("figures", [], "Figures to keep, without .png.")
QUOTE = flags.DEFINE_string("quote", "", "First words of parts of table.md to quote verbatim.")
FINGERPRINT = flags.DEFINE_bool("fingerprint", False, "Make the fingerprint of a record.")
QUICK_FLAGS = flags.DEFINE_string("quick_flags", None, "Flags of the quick form after --config.")
WIDEN = flags.DEFINE_bool("widen", False, "Cover the last fingerprint's rows by the tolerances.")
CHECK = flags.DEFINE_bool("check", False, "Compare fresh quick runs with the fingerprints.")
ALLOW_STALE = flags.DEFINE_bool(
    "allow_stale", False, "Let --check pass if known records are stale."
)
VERIFIED = flags.DEFINE_bool("verified", False, "Write the commit into fingerprints that hold.")
ACCEPT = flags.DEFINE_string("accept", "", "Why records are stale, whose fresh rows are taken.")
ALL = flags.DEFINE_bool("all", False, "Make all records that are not valid again and keep them.")
METHODS = flags.DEFINE_list(
    "methods", [], "Methods that were, or are, run again; the rows of the record's others stay."
)
JOBS = flags.DEFINE_integer("jobs", 1, "Number of runs at a time.")
MAX_SHOWN = 3  # differences of a record


def main(argv: list[str]) -> None:
    """Does what the flags say with the folder of a run, or of many."""
    del argv
    name = NAME.value
    if EMPTY_CACHE_SECONDS.value:
        keep_empty_cache_seconds(name, EMPTY_CACHE_SECONDS.value)
        return
    if not RUN.value:
        raise UserError("Give --run, the folder of a finished run or of the runs to be made.")
    folder = Path(RUN.value)
    if FINGERPRINT.value:
        make_fingerprint(folder, name, QUICK_FLAGS.value, JOBS.value, WIDEN.value)
    elif CHECK.value or ALL.value:
        differing = check(folder / "quick" if ALL.value else folder, JOBS.value, name)
        passed = report(differing, ALLOW_STALE.value)
        if VERIFIED.value:
            for record in (record for record, phrases in differing.items() if not phrases):
                known = fingerprints.read(record)
                fingerprints.write(record, known._replace(verified=_commit()))
        if ALL.value:
            all_again(folder, CORES.value or 1, JOBS.value, differing, METHODS.value)
        elif ACCEPT.value:
            accept(differing, folder, ACCEPT.value)
        elif not passed:
            sys.exit(1)
    else:
        if not name or not CORES.value:
            raise UserError("Give --name=PAPER/NAME and --cores of the run, or --check, or --all.")
        made = {"commit": _commit(), "cores": CORES.value, "seconds": SECONDS.value}
        made |= {"device": DEVICE.value} if DEVICE.value else {}
        keep(folder, name, made, FIGURES.value, QUOTE.value, METHODS.value)


def keep(
    run: Path,
    name: str,
    made: dict,
    figures: Sequence[str],
    quote: str,
    methods: Sequence[str] = (),
) -> None:
    """Writes the record of a finished run and its figures.

    Args:
      run: its folder.
      name: PAPER/NAME.
      made: commit, cores, seconds and, if it had one, accelerator of the run.
      figures: names of the figures to keep.
      quote: first words of the parts of table.md to quote; empty: none.
      methods: that the run has, if it is to replace their rows in the record alone; see `joined`.

    Raises:
      UserError: the run is not finished, has no such figure, or does not fit into the record;
        nothing is kept then.
    """
    if not (run / "results.json").exists():
        raise UserError(f"There is no {run / 'results.json'}: give the folder of a finished run.")
    for figure in figures:
        if not (run / f"{figure}.png").exists():
            raise UserError(f"There is no {run / figure}.png: give --figures of this run.")
    record = {
        "command": (run / COMMAND).read_text().strip(),
        "finished": _modified(run / "results.json"),
        **made,
        "failed": failed(run),
        "stated": stated(run),
        "quoted": quoted((run / "table.md").read_text(), quote) if quote else "",
        "config": json.loads((run / "config.json").read_text()),
    }
    rows = records.rounded(json.loads((run / "results.json").read_text()))
    if methods:
        parts = {path.stem for path in (run / "parts").glob("*.json")}
        record, rows = joined(name, record, rows, methods, parts)
    text = records.packed(record, rows)
    write_atomically(render.RESULTS / f"{name}.json", text.encode())
    for figure in figures:
        path = ROOT / "docs/figures" / f"{name}-{figure}.png"
        write_atomically(path, compressed(run / f"{figure}.png"))


def joined(
    name: str, head: dict, rows: Sequence[dict], methods: Sequence[str], parts: Collection[str]
) -> tuple[dict, list[dict]]:
    """A record after some of its methods were run again: their rows replace those before.

    Args:
      name: PAPER/NAME of the record.
      head: of the run: what a record says of all rows.
      rows: of the run.
      methods: that were run again; values of the config that have their names may have changed.
      parts: names of the run's parts.

    Returns:
      The head and the rows of the record. Its command is that of all methods; `others` says when
      and by which commit the rows that stay were made.

    Raises:
      UserError: there is no such record, or the run has another value or a row that it has not.
    """
    path = render.RESULTS / f"{name}.json"
    if not path.exists():
        raise UserError(f"There is no record '{name}': leave out --methods to keep a whole run.")
    before, known = records.unpacked(path.read_text())
    free = {"methods", "when_quick", *methods}
    now, then = head["config"], before["config"]
    changed = sorted(x for x in {*now, *then} - free if now.get(x) != then.get(x))
    fresh = {fingerprints.identity(row): row for row in rows}
    strange = sorted(fresh.keys() - {fingerprints.identity(row) for row in known})
    if changed or strange:
        raise UserError(
            f"The run does not fit into {name}, from which config.{changed[0]} differs."
            if changed
            else f"The run does not fit into {name}, which has no row {strange[0]}."
        )
    stay = [x for x in known if fingerprints.identity(x) not in fresh]
    outside = [x for x in before["failed"] if x not in parts]
    stated_before = [x for x in before.get("stated", ()) if x[0] not in parts]
    if stay:
        last = records.read(render.RESULTS, name)
        date, made_by = last.finished[:10], f"{last.commit}, {last.machine()}"
        others = f"rows of other methods: {date}, {made_by}"
        head |= {"others": "; before, ".join(filter(None, [others, last.others]))}
    head |= {
        "command": before["command"],
        "config": now | {"methods": then["methods"]},
        "failed": sorted([*outside, *head["failed"]]),
        "stated": [*stated_before, *head["stated"]],
        "seconds": None,
    }
    return head, [fresh.get(fingerprints.identity(row), row) for row in known]


def keep_empty_cache_seconds(name: str, seconds: float) -> None:
    """Writes into a record how long its command takes from an empty cache.

    Args:
      name: PAPER/NAME.
      seconds: the duration.

    Raises:
      UserError: there is no such record.
    """
    path = render.RESULTS / f"{name}.json"
    if not path.exists():
        raise UserError(f"There is no record '{name}': give --name=PAPER/NAME of a kept run.")
    head, rows = records.unpacked(path.read_text())
    head["empty_cache_seconds"] = seconds
    write_atomically(path, records.packed(head, rows).encode())


def make_fingerprint(
    folder: Path, name: str, quick_flags: str | None, jobs: int, widen: bool = False
) -> None:
    """Makes quick runs of a record in all variants of rounding, and keeps its fingerprint.

    Args:
      folder: of the quick runs.
      name: PAPER/NAME of the record.
      quick_flags: flags after --config in the place of the record's; None: those of the record
        that set no value of `config.when_quick`.
      jobs: number of runs at a time.
      widen: whether the tolerances cover the rows of the last fingerprint, too.
    """
    record = records.read(render.RESULTS, name)
    command = fingerprints.quick_command(record)
    if quick_flags is not None:
        command = shlex.join([*shlex.split(record.command)[:4], *shlex.split(quick_flags)])
        command += " --config.quick"
    known = fingerprints.read(name) if widen else None
    if widen and (known is None or known.command != command):
        raise UserError(f"{name} has no fingerprint of this quick form: leave out --widen.")
    measured = [known.rows] if known else []
    made = fingerprints.make(record, command, _commit(), folder, jobs, measured)
    fingerprints.write(name, made)


def check(folder: Path, jobs: int, prefix: str = "") -> dict[str, list[str]]:
    """What differs today from each record: its config, and the rows of its quick form.

    Args:
      folder: of the quick runs; those that it has are not made again.
      jobs: number of runs at a time.
      prefix: how the names of the records begin; several are separated by commas.

    Returns:
      Name of the record -> phrases; none if the record holds.
    """
    names = [name for name in render.names() if name.startswith(tuple(prefix.split(",")))]
    chosen = [records.read(render.RESULTS, name) for name in names]
    kept = {record.name: fingerprints.read(record.name) for record in chosen}
    commands = [known.command for known in kept.values() if known]
    commands += [] if prefix else unrecorded()
    fingerprints.run_all(commands, folder, "quick", jobs)
    differing = {}
    for record in chosen:
        known = kept[record.name]
        changed = [] if known and known.stale else render.outdated(record)  # stale is known
        phrases = [f"config.{value} has changed" for value in changed]
        if known:
            fresh = fingerprints.rows_of(fingerprints.workdir_of(folder, known.command))
            phrases += fingerprints.differences(known.rows, fresh)
        else:
            phrases.append("it has no fingerprint: make one with --fingerprint")
        differing[record.name] = phrases
    return differing


def unrecorded() -> list[str]:
    """Commands of quick runs of the configs that no record has, which have to end without error."""
    paths = [p for p in sorted(ROOT.glob("configs/*/*.py")) if "def get_config" in p.read_text()]
    known = [records.read(render.RESULTS, name).command for name in render.names()]
    files = [str(path.relative_to(ROOT)) for path in paths]
    return [
        f"python -m {Path(file).parent.name}.main --config={file} --config.quick"
        for file in files
        if not any(f"--config={file}" in shlex.split(command) for command in known)
    ]


def report(differing: Mapping[str, Sequence[str]], allow_stale: bool) -> bool:
    """Prints a line for each record, valid or not, and returns whether the check has passed."""
    passed = True
    for name, phrases in differing.items():
        known = fingerprints.read(name)
        stale = known.stale if known else ""
        passed &= not phrases and (allow_stale or not stale)
        more = f"; and {len(phrases) - MAX_SHOWN} more" if len(phrases) > MAX_SHOWN else ""
        print(f"{name}: " + ("; ".join(phrases[:MAX_SHOWN]) + more or stale or "valid"))
    return passed


def accept(differing: Mapping[str, Sequence[str]], folder: Path, why: str) -> None:
    """Takes the fresh rows of records that differ as fingerprints, and marks them as stale."""
    for name in (name for name, phrases in differing.items() if phrases):
        known = fingerprints.read(name)
        fresh = fingerprints.rows_of(fingerprints.workdir_of(folder, known.command))
        bounds = {fingerprints.identity(row): row["tolerance"] for row in known.rows}
        widest = max(bounds.values())
        rows = [x | {"tolerance": bounds.get(fingerprints.identity(x), widest)} for x in fresh]
        before = f"; before: {known.stale.partition(': ')[2]}" if known.stale else ""
        stale = f"stale since {_commit()}: {why}{before}"
        fingerprints.write(name, known._replace(rows=rows, verified=_commit(), stale=stale))


def all_again(
    folder: Path,
    cores: int,
    jobs: int,
    differing: Mapping[str, Sequence[str]],
    methods: Sequence[str] = (),
) -> None:
    """Makes every record that does not hold again, and keeps it with a new fingerprint.

    Args:
      folder: of the runs; each has its own folder PAPER/NAME below it.
      cores: processor cores of each run.
      jobs: number of runs at a time.
      differing: of `check`.
      methods: the only ones to run again; empty: all of each record.

    Raises:
      CalledProcessError: a run has failed; the others are kept.
    """
    stale = [
        records.read(render.RESULTS, name)
        for name, phrases in differing.items()
        if phrases or fingerprints.read(name).stale
    ]

    def again(record: Record) -> None:
        _again(record, folder, {"commit": _commit(), "cores": cores}, methods)

    with fingerprints.pool_of(jobs, cores) as pool:
        list(progress_bar(pool.map(again, stale), total=len(stale), desc="records", unit="run"))


def _again(record: Record, folder: Path, made: dict, methods: Sequence[str]) -> None:
    """Makes a record again in a folder of its own, with a log beside it, and keeps it."""
    name, run = record.name, folder / record.name
    _, *words = shlex.split(record.command)
    if methods:
        words = [word for word in words if not word.startswith("--config.methods=")]
        words.append(f"--config.methods={','.join(methods)}")
    command = [sys.executable, *words, f"--workdir={run}"]
    resumed, start = run.exists(), time.monotonic()
    run.parent.mkdir(parents=True, exist_ok=True)
    with run.with_suffix(".log").open("ab") as log:
        subprocess.run(command, cwd=ROOT, check=True, stdout=log, stderr=log)
    seconds = None if resumed else round(time.monotonic() - start)
    prefix = f"{Path(name).name}-"
    images = (ROOT / "docs/figures").glob(f"{name}-*.png")
    figures = [] if methods else [path.stem.removeprefix(prefix) for path in images]
    quote = record.quoted.partition("\n")[0].lstrip("# ")
    keep(run, name, made | {"seconds": seconds}, figures, quote, methods)
    if known := fingerprints.read(name):
        again = records.read(render.RESULTS, name)
        quick = folder / "fingerprints"
        made_again = fingerprints.make(again, known.command, made["commit"], quick, 1)
        fingerprints.write(name, made_again)


def quoted(table: str, beginning: str) -> str:
    """The paragraphs of table.md that begin so, through the end of their table, with headings."""
    heading, parts, taking = "", [], False
    for paragraph in table.split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph
        if paragraph.lstrip("# ").startswith(beginning):
            taking = True
            parts += [heading] if paragraph != heading else []
        if taking:
            parts.append(paragraph.strip())
            taking = not paragraph.startswith("|")
    return "\n\n".join(parts)


def failed(run: Path) -> list[str]:
    """The parts of a run whose notes say that the method failed."""
    return [name for name, part in _parts(run) if part["notes"].get("failed")]


def stated(run: Path) -> list[Stated]:
    """What the parts say about themselves whose notes state a probability of success."""
    found = []
    for name, part in _parts(run):
        notes = part["notes"]
        wrong = [bool(r["mean"]) for r in part["rows"] if r["metric"].startswith("false_")]
        if "probability" in notes and wrong:
            succeeded = bool(notes["failed"]) == any(wrong)
            probability = round(notes["probability"], records.DIGITS)
            found.append(Stated(name, notes["initialization"], probability, succeeded))
    return found


def _parts(run: Path) -> Iterator[tuple[str, dict]]:
    """Name, and rows and notes, of the parts of a run that have both."""
    for path in sorted((run / "parts").glob("*.json")):
        part = json.loads(path.read_text())["result"]
        if isinstance(part, dict) and "notes" in part:
            yield path.stem, {"rows": [], **part}


def compressed(image: Path | IO[bytes]) -> bytes:
    """A figure as PNG of 256 colours: a third of its size without a visible difference."""
    buffer = io.BytesIO()
    Image.open(image).convert("RGB").quantize(256, dither=0).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _modified(path: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(path.stat().st_mtime))


def _commit() -> str:
    """The last commit that changed code, and whether code differs from the checked-out one."""
    try:
        changed = _git("status", "--porcelain", "--", *fingerprints.CODE)
        return _git("log", "-1", "--format=%h", "--", *fingerprints.CODE) + (
            " and changes" if changed else ""
        )
    except (OSError, subprocess.CalledProcessError):  # no git, or an exported tree
        return "no commit"


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    cli.run(main)
