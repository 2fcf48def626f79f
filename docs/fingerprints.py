"""Fingerprints of records: the rows of a record's command in quick form, by which it stays valid.

A record holds as long as the code computes the same. Its fingerprint, docs/fingerprints/NAME.json,
has the rows that its quick form gave by the commit that made the record, and beside each row the
tolerance: the largest deviation of this method and metric that was measured when rounding alone
differs (`VARIANTS`), three times. Chance enters through rounding only, because every random number
is drawn from a key; rows in closed form move by 1e-6, rows of searches that may fail by much more.
Processors differ in rounding too, since products are summed in blocks that fit their caches, and
steps of a training make such a difference grow: quick forms of trainings have few steps. Quick runs
train each model themselves (`SHARED`), so that a check sees today's trainings and a tolerance the
rounding of each variant's.
"""

import hashlib
import itertools
import json
import os
import re
import shlex
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.data.packages import CACHE_VARIABLE
from common.errors import UserError
from common.progress import progress_bar
from common.run import records
from common.run.records import Record
from common.run.results import PUBLISHED
from common.run.workdir import write_atomically
from docs import forked
from isthmus import PAPERS
from tests import own_cache, xla_flags

ROOT = Path(__file__).parents[1]
# What a run executes; a commit that changes nothing here changes no result.
CODE = ("common", "configs", *PAPERS)
RESULTS = "results.json"


class Variant(NamedTuple):
    """Quick runs that differ from others in rounding alone: their environment and cores."""

    environment: dict[str, str]
    cores: int | None  # of each run; None: all


# The first one makes the rows. It has one core and one thread, for XLA divides its sums by the
# number of cores. The second compiles programs as a user's run does.
AVX2 = {"XLA_FLAGS": f"{xla_flags.FLAGS} --xla_cpu_max_isa=AVX2", "OPENBLAS_CORETYPE": "Haswell"}
SSE = {"XLA_FLAGS": f"{xla_flags.FLAGS} --xla_cpu_max_isa=SSE4_2", "OPENBLAS_CORETYPE": "Nehalem"}
VARIANTS = {
    "quick": Variant({"XLA_FLAGS": xla_flags.FLAGS, "OPENBLAS_NUM_THREADS": "1"}, 1),
    "optimised": Variant({"XLA_FLAGS": ""}, None),
    "avx2": Variant({**AVX2, "OPENBLAS_NUM_THREADS": "1"}, 1),
    "sse": Variant({**SSE, "OPENBLAS_NUM_THREADS": "1"}, 1),
}
# Folders of the cache that quick runs share with a user's: what was fetched, read from it, or
# encoded by pretrained encoders. Trained embeddings and encoders are each folder's of runs own.
SHARED = ("corpora", "encodings", "packages", "programs", "tfds")
MARGIN = 3.0  # tolerance / largest measured deviation
MIN_TOLERANCE = 1e-4
# Metrics that are fractions of a row's items, or differences of such: they move by whole items.
OF_ITEMS = re.compile(r"accuracy|p_at_\d+|top_\d+|^ot(_entropic)?$|^gain$")
# Fields of a row that do not say what was measured: the values, and what stands beside them.
BESIDE = ("mean", "std", "tolerance", "quick", *PUBLISHED)


class Fingerprint(NamedTuple):
    """The fingerprint of a record.

    Attributes:
      command: the record's command in quick form, without the workdir.
      commit: commit that made the rows.
      verified: last commit that was found to give the same rows.
      stale: why the record is known not to hold, with the commit; empty if it holds.
      rows: rows of the quick form, fields of `common.run.results.Row`, each with its `tolerance`.
    """

    command: str
    commit: str
    verified: str
    stale: str
    rows: list[dict]


def path(name: str) -> Path:
    """The file of a record's fingerprint."""
    return ROOT / "docs/fingerprints" / f"{name}.json"


def read(name: str) -> Fingerprint | None:
    """The fingerprint of a record; None if it has none."""
    if not path(name).exists():
        return None
    head, rows = records.unpacked(path(name).read_text())
    return Fingerprint(**head, rows=rows)


def write(name: str, fingerprint: Fingerprint) -> None:
    """Writes a fingerprint."""
    head = fingerprint._asdict()
    rows = head.pop("rows")
    write_atomically(path(name), records.packed(head, rows).encode())


def quick_command(record: Record) -> str:
    """A record's command in quick form, without the flags of values that `when_quick` sets."""
    small = {f"--config.{name}" for name in record.config.get("when_quick", {})}
    words = [word for word in shlex.split(record.command) if word.partition("=")[0] not in small]
    return shlex.join([*words, "--config.quick"])


def run_all(commands: Iterable[str], folder: Path, variant: str, jobs: int) -> None:
    """Makes those quick runs that the folder does not have yet, each with a log beside it.

    Args:
      commands: without the workdir; equal ones are run once.
      folder: of all runs.
      variant: key of `VARIANTS`.
      jobs: number of runs at a time.

    Raises:
      UserError: the folder has runs of other code, or a run has failed; the others have ended then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamp, code = folder / "code.txt", digest()
    if stamp.exists() and stamp.read_text() != code:
        raise UserError(
            f"{folder} has quick runs of other code: choose another --run or delete it."
        )
    write_atomically(stamp, code.encode())
    cache = own_cache.linked(folder / "cache", SHARED)
    environment = os.environ | VARIANTS[variant].environment | {CACHE_VARIABLE: str(cache)}
    here = threading.local()

    def run(command: str) -> Path | None:
        if not hasattr(here, "server"):
            here.server = servers.enter_context(forked.Server(environment))
        workdir, (_, *words) = workdir_of(folder, command), shlex.split(command)
        log = workdir.with_name(f"{workdir.name}.log")
        return log if here.server.run([*words, f"--workdir={workdir}"], log) else None

    left = [x for x in dict.fromkeys(commands) if not (workdir_of(folder, x) / RESULTS).exists()]
    with ExitStack() as servers, pool_of(jobs, VARIANTS[variant].cores) as pool:
        shown = {"desc": f"{variant} runs", "unit": "run", "disable": not left}
        bar = progress_bar(pool.map(run, left), total=len(left), **shown)
        failed = [log for log in bar if log]
    if failed:
        last = failed[0].read_text(errors="replace").strip().splitlines()[-1:]
        runs = "1 quick run" if len(failed) == 1 else f"{len(failed)} quick runs"
        raise UserError(f"{runs} failed; {failed[0]} ends with: {''.join(last)}")


def pool_of(jobs: int, cores: int | None) -> ThreadPoolExecutor:
    """Threads whose processes have `cores` cores of their own, where the system can limit them."""
    if cores is None or not hasattr(os, "sched_setaffinity"):
        return ThreadPoolExecutor(jobs)
    known = sorted(os.sched_getaffinity(0))
    parts = itertools.cycle(known[i : i + cores] for i in range(0, len(known), cores))
    shared = threading.Lock()

    def limit() -> None:
        with shared:
            part = next(parts)
        os.sched_setaffinity(0, part)  # of this thread; processes that it starts inherit it

    return ThreadPoolExecutor(jobs, initializer=limit)


def workdir_of(folder: Path, command: str) -> Path:
    """The folder of a quick run: its config's name and a hash of its flags."""
    config = next(word for word in shlex.split(command) if word.startswith("--config="))
    code = hashlib.sha256(command.encode()).hexdigest()[:6]
    return folder / f"{Path(config).parent.name}-{Path(config).stem}-{code}"


def make(
    record: Record,
    command: str,
    commit: str,
    folder: Path,
    jobs: int,
    measured: Sequence[Sequence[dict]] = (),
) -> Fingerprint:
    """The fingerprint of a record, from quick runs in all `VARIANTS`.

    Args:
      record: that it belongs to.
      command: the quick form.
      commit: of the code that runs.
      folder: of the runs, in a folder for each variant.
      jobs: number of runs at a time.
      measured: the same rows by other processors, for the tolerances.
    """
    for variant in VARIANTS:
        run_all([command], folder / variant, variant, jobs)
    rows, *others = (rows_of(workdir_of(folder / v, command)) for v in VARIANTS)
    return Fingerprint(command, commit, commit, "", with_tolerances(rows, [*others, *measured]))


def rows_of(run: Path) -> list[dict]:
    """The rows of a finished run as they are kept, but for durations."""
    rows = records.rounded(json.loads((run / RESULTS).read_text()))
    return [row for row in rows if not row["metric"].endswith("seconds")]


def with_tolerances(rows: Sequence[dict], others: Iterable[Sequence[dict]]) -> list[dict]:
    """Rows with the tolerance of their method and metric.

    The tolerance of a fraction of items (`OF_ITEMS`) is at least that of one item's deviation.

    Args:
      rows: of the first variant.
      others: rows of the other variants, the same ones.
    """
    largest: dict[tuple, float] = defaultdict(float)
    for other in others:
        again = {identity(row): row for row in other}
        for row in rows:
            group = row["method"], row["metric"]
            items = row.get("num_items") if OF_ITEMS.search(row["metric"]) else None
            moved = max(_deviation(row, again[identity(row)]), 1 / items if items else 0)
            largest[group] = max(largest[group], moved)
    bounds = {group: max(MIN_TOLERANCE, MARGIN * value) for group, value in largest.items()}
    return [row | {"tolerance": bounds[row["method"], row["metric"]]} for row in rows]


def differences(kept: Sequence[dict], fresh: Sequence[dict]) -> list[str]:
    """What differs between the rows of a fingerprint and fresh ones, a phrase for each row.

    Rows that are missing, new, or have another value than the tolerance admits are differences; so
    is another number of rows with the same fields.
    """
    before, now = ({identity(row): row for row in rows} for rows in (kept, fresh))
    phrases = [f"missing: {_title(before[key])}" for key in before.keys() - now.keys()]
    phrases += [f"new: {_title(now[key])}" for key in now.keys() - before.keys()]
    if not phrases and len(kept) != len(fresh):
        phrases.append(f"{len(fresh)} rows instead of {len(kept)}")
    for key in before.keys() & now.keys():
        old, new = before[key], now[key]
        if not _deviation(old, new) <= old["tolerance"]:  # NaN is a difference
            moved = ", ".join(f"{name} {old[name]:g} -> {new[name]:g}" for name in ("mean", "std"))
            phrases.append(f"{_title(old)}: {moved} (tolerance {old['tolerance']:.2g})")
    return sorted(phrases)


def identity(row: Mapping) -> str:
    """What a row is about: its fields but for `BESIDE` and those that are None."""
    said = {k: v for k, v in row.items() if k not in BESIDE and v is not None}
    return json.dumps(said, sort_keys=True)


def _deviation(row: Mapping, other: Mapping) -> float:
    values = np.array([[r.get("mean"), r.get("std")] for r in (row, other)], float)  # None is NaN
    return float(np.abs(values[0] - values[1]).max())


def _title(row: Mapping) -> str:
    between = [f"{row[name]}" for name in ("source", "target") if row.get(name)]
    labels = [f"{name} {value}" for name, value in sorted(row["labels"].items())]
    sweep = [f"{row['sweep_over']} {row['sweep_value']}"] if row.get("sweep_over") else []
    about = [row["dataset"], " -> ".join(between), row.get("anchors") or "", *sweep, *labels]
    return f"{row['method']} {row['metric']} ({', '.join(filter(None, about))})"


def digest() -> str:
    """Hash of the code that a run executes."""
    content = hashlib.sha256()
    for file in sorted(file for folder in CODE for file in (ROOT / folder).rglob("*.py")):
        content.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return content.hexdigest()
