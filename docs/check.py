r"""Compares a quick run of every config with its fingerprint: whether its records still hold.

  python -m docs.check --run=runs/quick --jobs=2

A record holds as long as the code computes the same. The fingerprint of a config,
docs/fingerprints/PAPER/CONFIG.json, has the rows of its quick form (`--config.quick`). The check
makes these runs, prints a line for each config (which rows differ) and each record (which values of
its config have changed, or since when it is stale), and ends with exit code 1 if a row differs.
Arguments choose configs: `python -m docs.check lpl/nli --run=runs/quick`.

  python -m docs.check --run=runs/quick --accept="ties count half"

takes the rows that differ as fingerprints, and marks the records that have rows of these methods as
stale, until they are made again (`python -m docs.again`).

A row may differ by its `tolerance`. Every random number is drawn from a key, so that chance enters
by rounding alone, which differs between processors and compilers.
"""

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from absl import flags

from common.data.packages import CACHE_VARIABLE
from common.errors import UserError
from common.files import write_atomically
from common.progress import progress_bar
from common.run import cli, records
from common.run.results import PUBLISHED
from docs import render
from tests import own_cache, xla_flags

ROOT = render.ROOT
RUN = flags.DEFINE_string("run", None, "Folder of the runs that are made.")
JOBS = flags.DEFINE_integer("jobs", 1, "Number of runs at a time.")
ACCEPT = flags.DEFINE_string("accept", "", "Why numbers have changed; takes the fresh rows.")
ENVIRONMENT = {"XLA_FLAGS": xla_flags.FLAGS, "OPENBLAS_NUM_THREADS": "1"}
# Folders of the cache that quick runs share with a user's: what was fetched, read from it, or
# encoded by pretrained encoders. They train their own models, so that a check sees the training.
SHARED = ("corpora", "encodings", "packages", "programs", "tfds")
MAX_SHOWN = 3  # differences of a config

# The tolerance of a row is the largest that applies.
CLOSED_FORM = 1e-4  # sums in another order
ITEMS = 3  # of a fraction of so many items, or a difference of two: single items flip
OF_ITEMS = re.compile(r"accuracy|p_at_\d+|top_\d+|recall_\d+|within_\d+|^ot(_entropic)?$|gain$")
# Steps of a training make a difference of rounding grow. The deviation is that over its random
# seeds, over all rows of the metric.
TRAINED, DEVIATIONS = ("nli",), 0.5
# Experiment, beginning of `_title`, tolerance: searches that do not succeed in the quick form, and
# maps from fewer pairs than dimensions, in part of which rounding decides. Three times the largest
# difference between instruction sets (SSE, AVX2, AVX-512) and between processors.
UNSTEADY = (
    ("classes|halves", "mini_vec2vec", 0.03),
    ("overlap", "mini_vec2vec", 0.1),
    ("halves", "disjoint agreement", 0.05),
    ("new_model", "chosen|mapped queries|old model uncertainty", 0.015),
    ("ablation", "algorithm1 mrr .*permute target", 0.03),
    ("retrieval", "procrustes", 0.1),
    ("retrieval", "iterated_procrustes", 0.3),
    ("vision", "algorithm1|bootstrap", 0.06),
    ("images|sweep_.*", r"\w+ test_", 0.001),  # a training with one random seed
    ("vision", "bootstrap (gain|relative_p_at_1)", 0.3),
)
# Fields of a row that do not say what was measured: the values, and what stands beside them.
BESIDE = ("mean", "std", "quick", *PUBLISHED)


def configs() -> list[str]:
    """PAPER/CONFIG of all configs."""
    files = sorted(ROOT.glob("configs/*/*.py"))
    chosen = [path for path in files if "def get_config" in path.read_text()]
    return [f"{path.parent.name}/{path.stem}" for path in chosen]


def write(config: str, rows: Sequence[dict]) -> None:
    """Writes a fingerprint."""
    path = ROOT / "docs/fingerprints" / f"{config}.json"
    write_atomically(path, records.packed({}, rows).encode())
    print(f"wrote {path.relative_to(ROOT)}")


def run_all(chosen: Sequence[str], folder: Path, jobs: int) -> None:
    """Makes quick runs in a new folder, each with a log beside it.

    Raises:
      UserError: the folder exists, or a run has failed; the others have ended then.
    """
    if folder.exists():
        raise UserError(f"{folder} exists, maybe with runs of other code: choose another --run.")
    cache = own_cache.linked(folder / "cache", SHARED)
    environment = {**ENVIRONMENT, **os.environ, CACHE_VARIABLE: str(cache)}

    def run(config: str) -> Path | None:
        words = f"{config.split('/')[0]}.main", f"--config=configs/{config}.py"
        command = [sys.executable, "-m", *words, "--config.quick", f"--workdir={folder / config}"]
        log = (folder / config).with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=file, stderr=file)
        return log if done.returncode else None

    with one_core_each(jobs) as pool:
        bar = progress_bar(pool.map(run, chosen), total=len(chosen), desc="quick runs", unit="run")
        failed = [log for log in bar if log]
    if failed:
        last = failed[0].read_text(errors="replace").strip().splitlines()[-1:]
        raise UserError(f"{len(failed)} quick runs failed; {failed[0]} ends with: {''.join(last)}")


def one_core_each(jobs: int) -> ThreadPoolExecutor:
    """Threads whose processes have one core, since XLA divides its sums by the number of cores."""
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))
    # Sets the affinity of the thread, which the processes that it starts inherit.
    return ThreadPoolExecutor(jobs, initializer=lambda: os.sched_setaffinity(0, {next(cores)}))


def rows_of(run: Path) -> list[dict]:
    """The rows of a finished run but for durations."""
    _, rows = records.unpacked((run / records.FILE).read_text())
    return [row for row in rows if not row["metric"].endswith("seconds")]


def tolerance(row: Mapping, rows: Sequence[Mapping]) -> float:
    """How far a row of the quick form may be from the fingerprint, whose `rows` are given."""
    bounds, items = [CLOSED_FORM], row.get("num_items")
    if OF_ITEMS.search(row["metric"]) and items:
        bounds.append(ITEMS / items)
    if row["experiment"] in TRAINED:
        squares = [other["std"] ** 2 for other in rows if other["metric"] == row["metric"]]
        bounds.append(DEVIATIONS * statistics.fmean(squares) ** 0.5)
    bounds += [
        bound
        for experiments, measured, bound in UNSTEADY
        if re.fullmatch(experiments, row["experiment"]) and re.match(measured, _title(row))
    ]
    return max(bounds)


def differences(kept: Sequence[dict], fresh: Sequence[dict]) -> list[tuple[str, str]]:
    """What differs between the rows of a fingerprint and fresh ones: a method and a phrase each.

    Rows that are missing, new, or farther apart than `tolerance` are differences; so is another
    number of rows with the same fields.
    """
    before, now = ({identity(row): row for row in rows} for rows in (kept, fresh))
    found = [
        (before[key]["method"], f"missing: {_title(before[key])}")
        for key in before.keys() - now.keys()
    ]
    found += [
        (now[key]["method"], f"new: {_title(now[key])}") for key in now.keys() - before.keys()
    ]
    if not found and len(kept) != len(fresh):
        found += [(row["method"], f"{len(fresh)} rows instead of {len(kept)}") for row in kept[:1]]
    for key in before.keys() & now.keys():
        old, new = before[key], now[key]
        values = np.array([[r.get("mean"), r.get("std")] for r in (old, new)], float)  # None is NaN
        bound = tolerance(old, kept)
        if not np.abs(values[0] - values[1]).max() <= bound:  # NaN is a difference
            moved = ", ".join(f"{name} {old[name]:g} -> {new[name]:g}" for name in ("mean", "std"))
            found.append((old["method"], f"{_title(old)}: {moved} (tolerance {bound:.2g})"))
    return sorted(found)


def identity(row: Mapping) -> str:
    """What a row is about: its fields but for `BESIDE` and those that are None."""
    said = {k: v for k, v in row.items() if k not in BESIDE and v is not None}
    return json.dumps(said, sort_keys=True)


def _title(row: Mapping) -> str:
    between = [f"{row[name]}" for name in ("source", "target") if row.get(name)]
    labels = [f"{name} {value}" for name, value in sorted(row["labels"].items())]
    sweep = [f"{row['sweep_over']} {row.get('sweep_value')}"] if row.get("sweep_over") else []
    about = [row["dataset"], " -> ".join(between), row.get("anchors") or "", *sweep, *labels]
    return f"{row['method']} {row['metric']} ({', '.join(filter(None, about))})"


def check(folder: Path, jobs: int, chosen: Sequence[str] = ()) -> dict[str, list[tuple[str, str]]]:
    """PAPER/CONFIG -> its `differences`, by fresh quick runs of some configs, or of all."""
    if unknown := [name for name in chosen if name not in configs()]:
        raise UserError(f"There is no config {unknown[0]}: give PAPER/CONFIG, as lpl/nli.")
    chosen = chosen or configs()
    run_all(chosen, folder, jobs)
    return {name: differences(render.fingerprint(name), rows_of(folder / name)) for name in chosen}


def report(found: Mapping[str, Sequence[tuple[str, str]]]) -> bool:
    """Prints what differs in each config, and each record that does not hold; whether all is known.

    What is known is that a record is stale.
    """
    for name, pairs in found.items():
        more = f"; and {len(pairs) - MAX_SHOWN} more" if len(pairs) > MAX_SHOWN else ""
        print(f"{name}: " + ("; ".join(x for _, x in pairs[:MAX_SHOWN]) + more or "valid"))
    passed = not any(found.values())
    for record in (x for x in render.all_records() if render.config_of(x) in found):
        changed = [] if record.stale else render.outdated(record)
        passed &= not changed
        for state in filter(None, [record.stale, *(f"config.{x} has changed" for x in changed)]):
            print(f"{record.name}: {state}")
    return passed


def accept(found: Mapping[str, Sequence[tuple[str, str]]], folder: Path, why: str) -> None:
    """Takes the fresh rows of configs that differ, and marks the records they concern as stale.

    These are records of the config that have rows of a method whose rows differ, and records whose
    config values have changed.
    """
    for record in (x for x in render.all_records() if render.config_of(x) in found):
        config = render.config_of(record)
        methods = {method for method, _ in found[config]}
        differs = render.fingerprint(config) and methods & {row.method for row in record.rows}
        if differs or (not record.stale and render.outdated(record)):
            records.mark_stale(render.RESULTS, record.name, why)
            print(f"{record.name} is stale")
    for name in (name for name, pairs in found.items() if pairs):
        write(name, rows_of(folder / name))


def main(argv: list[str]) -> None:
    """Checks, and accepts what differs if a reason is given."""
    folder = Path(cli.given("run", "python -m docs.check"))
    found = check(folder, JOBS.value, argv[1:])
    passed = report(found)
    if ACCEPT.value:
        accept(found, folder, ACCEPT.value)
    elif not passed:
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main, positional=True)
