r"""Compares a quick run of every config with its fingerprint: whether its records still hold.

  python -m docs.check --run=runs/quick --jobs=2             all configs
  python -m docs.check lpl/nli --run=runs/quick              some
  python -m docs.check --run=runs/quick --accept="ties count half"

The fingerprint of a config, docs/fingerprints/PAPER/CONFIG.json, has the rows of its quick form.
Lines say which rows of a config differ, and why a record does not hold; exit code 1: not all of it
is known. With --accept, a reason, the fresh rows become fingerprints, and records with rows of the
methods that differ are stale until they are made again (`python -m docs.again`).
"""

import importlib
import itertools
import multiprocessing
import os
import pkgutil
import re
import runpy
import signal
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import connection
from pathlib import Path

from absl import flags

from common.data.packages import CACHE_VARIABLE
from common.errors import UserError, check_choice
from common.progress import progress_bar
from common.run import cli, records, results
from common.run.records import Record
from common.run.results import Row
from docs import render
from tests import own_cache, xla_flags

ROOT = render.ROOT
QUICK = "--config.quick"
RUN = flags.DEFINE_string("run", None, "Folder of the runs that are made.")
JOBS = flags.DEFINE_integer("jobs", 1, "Number of runs at a time.")
ACCEPT = flags.DEFINE_string("accept", "", "Why numbers have changed; takes the fresh rows.")
# Folders of the cache that quick runs share with a user's: what was fetched, read from it, or
# encoded by pretrained encoders. They train their own models, so that a check sees the training.
SHARED = ("corpora", "encodings", "packages", "programs", "tfds")
ROUNDED = 0.5 * 10**-records.DIGITS  # of the values that are compared
MAX_SHOWN = 3  # differences of a config

# The tolerance of a row is the largest that applies. Every random number is drawn from a key, so
# that chance enters by rounding alone, which differs between processors and compilers.
CLOSED_FORM = 1e-4  # sums in another order; relative to values above 1
ITEMS = 3  # of a fraction of so many items, or a difference of two: single items flip
OF_ITEMS = re.compile(r"accuracy|(p_at|top|recall|within)_\d+|^f1$|^ot(_entropic)?$|gain$")
TESTED = {"word_alignment": 1_500, "halves": 300}  # where `num_items` are those of the training
# Steps of a training make a difference of rounding grow. The deviation is that over its random
# seeds, over all rows of the metric.
TRAINED, DEVIATIONS = ("nli",), 0.5
# Experiment, beginning of `about`, tolerance: searches that do not succeed in the quick form, and
# maps from fewer pairs than dimensions, in part of which rounding decides. Three times the largest
# difference between instruction sets (SSE, AVX2, AVX-512) and between processors.
UNSTEADY = (
    ("halves", "mini_vec2vec", 0.03),
    ("overlap", "mini_vec2vec", 0.1),
    ("halves", "disjoint agreement", 0.26),
    ("new_model", "chosen|mapped queries|old model uncertainty", 0.015),
    ("ablation", r"algorithm1\w* mrr .*(permute, .*value target|centre, .*False)", 0.03),
    ("retrieval", "procrustes", 0.1),
    ("retrieval", "iterated_procrustes", 0.3),
    ("vision", "algorithm1|bootstrap", 0.06),
    ("images|sweep|words", r"\w+ (test_|spearman)", 0.001),  # trainings with one random seed
    ("vision", "bootstrap (gain|relative_p_at_1)", 0.3),
)
# Fields that say nothing beside the method and metric of a row, and its values.
BESIDE = ("method", "metric", "experiment", "labels", "quick", "mean", "std")


def about(row: Row) -> str:
    """What a row measures, which no other row does: method, metric, and its fields and labels."""
    said = [*results.fields(row).items(), *row.labels.items()]
    named = sorted(f"{name} {x}" for name, x in said if name not in BESIDE and x is not None)
    return f"{row.method} {row.metric} ({', '.join(named)})"


def tolerance(row: Row, rows: Sequence[Row]) -> float:
    """How far a row of the quick form may be from the fingerprint, whose `rows` are given."""
    bounds = [CLOSED_FORM * max(1.0, abs(row.mean))]
    items = TESTED.get(row.experiment, row.num_items)
    if OF_ITEMS.search(row.metric) and items:
        bounds.append(ITEMS / items)
    if row.experiment in TRAINED:
        squares = [other.std**2 for other in rows if other.metric == row.metric]
        bounds.append(DEVIATIONS * statistics.fmean(squares) ** 0.5)
    bounds += [
        bound
        for experiments, begin, bound in UNSTEADY
        if re.fullmatch(experiments, row.experiment) and re.match(begin, about(row))
    ]
    return max(bounds)


def timeless(rows: Sequence[Row]) -> list[Row]:
    """The rows but for durations, which no fingerprint has."""
    return [row for row in rows if not row.metric.endswith("seconds")]


def differences(kept: Sequence[Row], fresh: Sequence[Row]) -> list[tuple[str, str]]:
    """What differs between the rows of a fingerprint and fresh ones: a method and a phrase each.

    Rows that are missing, new, or farther apart than `tolerance` are differences.
    """
    before, now = ({about(row): row for row in timeless(rows)} for rows in (kept, fresh))
    found = dict.fromkeys(before.keys() - now.keys(), "missing")
    found |= dict.fromkeys(now.keys() - before.keys(), "new")
    for name in before.keys() & now.keys():
        old, new, bound = before[name], now[name], tolerance(before[name], kept)
        apart = abs(old.mean - new.mean), abs(old.std - new.std)
        if not all(x <= bound + ROUNDED for x in apart):  # NaN differs from everything
            moved = f"mean {old.mean:g} -> {new.mean:g}, std {old.std:g} -> {new.std:g}"
            found[name] = f"{moved} (tolerance {bound:.2g})"
    return sorted(((before | now)[name].method, f"{name}: {x}") for name, x in found.items())


def run_copies(
    commands: Mapping[Path, Sequence[str]], jobs: int, seconds: int = 0
) -> Iterator[Path]:
    """Runs a module and its flags for each folder, and yields the folder when the run has ended.

    They run in copies of this process, which has imported what they need. Each has one core,
    since XLA divides its sums by their number, and a log beside its folder; after these `seconds`,
    if any, it is ended. JAX does not run here, because copies would lack its threads. UserError, at
    the end: a run has failed.
    """
    for paper in {words[0].split(".")[0] for words in commands.values()}:
        for module in pkgutil.iter_modules([str(ROOT / paper / "experiments")]):
            importlib.import_module(f"{paper}.experiments.{module.name}")
    fork, cores = multiprocessing.get_context("fork"), sorted(os.sched_getaffinity(0))
    waiting, free = list(commands.items()), [*itertools.islice(itertools.cycle(cores), jobs)]
    running, failed = {}, []
    for _ in progress_bar(commands, desc="runs", unit="run"):
        while waiting and free:
            folder, words = waiting.pop(0)
            core = free.pop()
            process = fork.Process(target=_become, args=(words, folder, core, seconds))
            process.start()
            running[process.sentinel] = process, folder, core
        process, folder, core = running.pop(connection.wait(running)[0])
        process.join()
        free.append(core)
        if process.exitcode in (0, -signal.SIGALRM):
            yield folder
        else:
            failed.append(folder)
    if failed:
        log = failed[0].with_suffix(".log")
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise UserError(f"A run has failed; {log} ends with: {''.join(last)}")


def _become(words: Sequence[str], folder: Path, core: int, seconds: int) -> None:
    """Turns a copy of this process into a run."""
    os.sched_setaffinity(0, {core})
    signal.alarm(seconds)
    folder.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout = sys.stderr = folder.with_suffix(".log").open("a", buffering=1)
    for number in (1, 2):
        os.dup2(sys.stderr.fileno(), number)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.argv = [*words, f"--workdir={folder}"]
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def check(folder: Path, jobs: int, chosen: Sequence[str] = ()) -> dict[str, list[tuple[str, str]]]:
    """PAPER/CONFIG -> its `differences`, by fresh quick runs of some configs, or of all."""
    files = [x for x in sorted(ROOT.glob("configs/*/*.py")) if "def get_config" in x.read_text()]
    configs = [f"{file.parent.name}/{file.stem}" for file in files]
    for name in chosen:
        check_choice("config", name, configs)
    if folder.exists():
        raise UserError(f"{folder} exists, maybe with runs of other code: choose another --run.")
    cache = own_cache.linked(folder / "cache", SHARED)
    os.environ.setdefault("XLA_FLAGS", xla_flags.FLAGS)
    os.environ[CACHE_VARIABLE] = str(cache)
    chosen = chosen or configs
    commands = {
        folder / name: [f"{Path(name).parent}.main", f"--config=configs/{name}.py", QUICK]
        for name in chosen
    }
    for _ in run_copies(commands, jobs):
        pass
    made = {name: records.of_run(folder / name).rows for name in chosen}
    return {name: differences(render.fingerprint(name), rows) for name, rows in made.items()}


def report(found: Mapping[str, Sequence[tuple[str, str]]]) -> bool:
    """Prints what differs, and each record that does not hold; whether all of it is known."""
    for name, pairs in found.items():
        count = f"{len(pairs)} rows differ: " if pairs else "valid"
        print(f"{name}: {count}{'; '.join(phrase for _, phrase in pairs[:MAX_SHOWN])}")
    fallen = [record for record in render.fallen() if render.config_of(record) in found]
    for record in fallen:
        print(f"{record.name}: {render.state(record)}")
    return not any(found.values()) and all(record.stale for record in fallen)


def accept(found: Mapping[str, Sequence[tuple[str, str]]], folder: Path, why: str) -> None:
    """Takes the fresh rows of configs that differ, and marks the records they concern as stale.

    These are records of the config that have rows of a method whose rows differ, and records whose
    config values have changed.
    """
    for record in (x for x in render.all_records() if render.config_of(x) in found):
        config = render.config_of(record)
        methods = {method for method, _ in found[config]} & {row.method for row in record.rows}
        new = not render.fingerprint(config)  # whose first rows change nothing
        if (methods and not new) or (not record.stale and render.state(record)):
            records.mark_stale(render.RESULTS, record, why)
            print(f"{record.name} is stale")
    for name in (name for name, pairs in found.items() if pairs):
        fresh = Record(timeless(records.of_run(folder / name).rows))
        records.write(render.FINGERPRINTS / f"{name}.json", fresh)
        print(f"wrote docs/fingerprints/{name}.json")


def main(argv: list[str]) -> None:
    """Checks, and accepts what differs if a reason is given."""
    folder = Path(cli.given("run", "python -m docs.check"))
    found = check(folder, JOBS.value, argv[1:])
    passed = report(found)
    if ACCEPT.value:
        accept(found, folder, ACCEPT.value)
    sys.exit(not (passed or ACCEPT.value))


if __name__ == "__main__":
    cli.run(main, positional=True, by_jax=False)
