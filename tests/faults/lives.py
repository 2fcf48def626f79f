"""Runs that are killed with SIGKILL at random moments, and started again; see kill.py."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.data.wheels import CACHE_VARIABLE, cache_dir

ROOT = Path(__file__).parents[2]
TRAINED = ("embeddings", "encoders", "encodings")  # folders of the cache that runs train into
SECONDS = ("ot_seconds", "ot_entropic_seconds")  # metrics of time: never twice the same
PHASES = ("data", "part", "training", "between parts", "report")


def start(module: str, arguments: Sequence[str], workdir: Path, cache: Path) -> subprocess.Popen:
    """Starts a run in a process group of its own, its messages in a file beside the workdir."""
    with workdir.with_name(f"{workdir.name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, f"--workdir={workdir}", *arguments],
            cwd=ROOT,
            env=os.environ | {CACHE_VARIABLE: str(cache)},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def rows(workdir: Path) -> list[dict]:
    """The rows of results.json that have to come out the same."""
    found = json.loads((workdir / "results.json").read_text())
    return [row for row in found if row["metric"] not in SECONDS]


def parts(workdir: Path) -> set[str]:
    """The finished parts of a run."""
    return {str(path.relative_to(workdir)) for path in workdir.glob("parts/**/*.json")}


def in_hand(workdir: Path, since: float) -> bool:
    """Whether the process that was started then has taken the workdir, after its imports."""
    config = workdir / "config.json"
    return config.exists() and config.stat().st_mtime >= since


def phase(workdir: Path, all_parts: set[str]) -> str:
    """Where a run was, one of `PHASES`, by what it has left."""
    if parts(workdir) == all_parts:
        return "report"
    if any(workdir.glob("checkpoints/**/*.orbax-checkpoint-tmp*")):
        return "training"  # while a checkpoint was written, say
    if any(workdir.glob("checkpoints/**/_CHECKPOINT_METADATA")):
        return "training"
    if any(workdir.glob("checkpoints/*")):
        return "part"
    return "between parts" if parts(workdir) else "data"


def attempt(folder: Path, module: str, arguments: Sequence[str], seed: int, disturb: bool) -> dict:
    """Starts the run of the present life, and kills it at a random moment unless it is over.

    Args:
      folder: of all runs; the undisturbed one is made if need be.
      module: that is run, with --workdir.
      arguments: of it.
      seed: of the moments.
      disturb: False: lets it end.

    Returns:
      The life and the phase; for a kill the seconds after the start as well. A run that has ended,
      phase 'end', has given the expected rows.

    Raises:
      RuntimeError: it ended badly, or with other rows.
    """
    told = lines(folder)
    life = sum(line["phase"] == "end" for line in told)
    whole, (at_hand, seconds) = _whole(folder, module, arguments)
    # Half of the time: what comes after is reached by going on.
    delay = np.random.default_rng([seed, len(told)]).uniform(0, (seconds - at_hand) / 2)
    workdir, began = folder / f"life-{life}", time.time()
    process = start(module, arguments, workdir, _cache(folder / f"cache-{life}"))
    try:
        while disturb and process.poll() is None and not in_hand(workdir, began):
            time.sleep(0.01)
        process.wait(delay if disturb else None)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        found = phase(workdir, parts(whole))
        return {"life": life, "seconds": round(delay, 2), "phase": found}
    _check(process, workdir)
    if rows(workdir) != rows(whole):
        raise RuntimeError(f"{workdir} and {whole} differ in results.json.")
    return {"life": life, "phase": "end"}


def lines(folder: Path, name: str = "kills.jsonl") -> list[dict]:
    """What has been tried so far."""
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tell(folder: Path, found: dict, name: str = "kills.jsonl") -> None:
    """Adds what has been tried."""
    with (folder / name).open("a") as file:
        file.write(json.dumps(found) + "\n")


def _whole(folder: Path, module: str, arguments: Sequence[str]) -> tuple[Path, tuple[float, float]]:
    """The undisturbed run, and its seconds until it had the workdir and until its end."""
    workdir, facts = folder / "whole", folder / "whole.json"
    if not facts.exists():
        for name in ("first", "whole"):  # the first compiles, the second is timed
            began = time.time()
            process = start(module, arguments, folder / name, _cache(folder / f"cache-{name}"))
            process.wait()
            _check(process, folder / name)
        if rows(folder / "first") != rows(workdir):
            raise RuntimeError(f"{folder / 'first'} and {workdir} differ in results.json.")
        at_hand = (workdir / "config.json").stat().st_mtime - began
        facts.write_text(json.dumps([at_hand, time.time() - began]))
    return workdir, tuple(json.loads(facts.read_text()))


def _cache(folder: Path) -> Path:
    """A cache that shares the data of the user's, and none of what runs train."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in cache_dir().iterdir():
        if path.name not in TRAINED and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path.absolute())
    return folder


def _check(process: subprocess.Popen, workdir: Path) -> None:
    if process.returncode:
        log = workdir.with_name(f"{workdir.name}.log").read_text(errors="replace")
        raise RuntimeError(f"{workdir}: exit code {process.returncode}\n{log[-4000:]}")
