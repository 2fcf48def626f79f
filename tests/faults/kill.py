"""Kills quick runs of experiments by SIGKILL at random moments, and starts them again.

  python -m tests.faults.kill anchor_opt embed_match lpl wasserstein_embed --folder=runs/kills

For each config of a package, an undisturbed quick run gives the expected results. Then the same run
in another workdir is killed, started again, killed, and so on until it ends by itself, when its
results.json must be that of the undisturbed run, except for durations; this is repeated until the
kills are enough. All runs share packages, data sets and compiled programs. What a run computes
into the cache itself (encodings, encoders, embeddings) each workdir computes for itself.

A moment is drawn uniformly from the time after the process has taken the workdir, up to 60% of what
the undisturbed run took, which also compiled its programs. Each kill is a line of kills.jsonl in
the folder, with what had been done before; the script continues from there when it is started
again. README.md has a record.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from common.data.packages import CACHE_VARIABLE
from tests import (
    conftest,  # sets the compiler's flags  # noqa: F401
    own_cache,
)

ROOT = Path(__file__).parents[2]
SHARED = ("packages", "programs", "tfds")  # folders of the cache
DURATIONS = ("ot_seconds", "ot_entropic_seconds")  # metrics that no two runs have in common
PHASES = ("before any checkpoint", "in a training", "between parts", "after all parts")
FRACTION = 0.6  # of the undisturbed run's time: without compilation


def start(config: Path, workdir: Path) -> subprocess.Popen:
    """Starts a quick run, whose messages go to a file beside the workdir."""
    cache = own_cache.linked(workdir.with_name(f"{workdir.name}-cache"), SHARED)
    command = [sys.executable, "-m", f"{config.parent.name}.main", f"--config={config}"]
    with workdir.with_name(f"{workdir.name}.log").open("ab") as log:
        return subprocess.Popen(
            [*command, f"--workdir={workdir}", "--config.quick"],
            cwd=ROOT,
            env=os.environ | {CACHE_VARIABLE: str(cache)},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def finish(process: subprocess.Popen, workdir: Path) -> list[dict]:
    """Waits for the end of a run, and returns the rows that have to come out the same."""
    if process.wait():
        log = workdir.with_name(f"{workdir.name}.log").read_text(errors="replace")
        raise RuntimeError(f"{workdir}: exit code {process.returncode}\n{log[-4000:]}")
    rows = json.loads((workdir / "results.json").read_text())
    return [row for row in rows if row["metric"] not in DURATIONS]


def taken(workdir: Path, since: float) -> bool:
    """Whether the process that was started at that time has taken the workdir."""
    config = workdir / "config.json"
    return config.exists() and config.stat().st_mtime >= since


def phase(workdir: Path, whole: Path) -> str:
    """One of `PHASES`, by what a killed run has left and what the undisturbed one has."""
    parts, all_parts = (len(list(path.rglob("parts/**/*.json"))) for path in (workdir, whole))
    if parts >= all_parts:
        return "after all parts"
    if any(workdir.glob("checkpoints/**/_CHECKPOINT_METADATA")):
        return "in a training"
    return "between parts" if parts else "before any checkpoint"


def disturb(config: Path, folder: Path, kills: int) -> None:
    """Kills runs of one config until `kills` lines of kills.jsonl are kills.

    Raises:
      RuntimeError: a run has failed, or has ended with other results.
    """
    name = f"{config.parent.name}-{config.stem}"
    whole, seconds_file = folder / name, folder / f"{name}.seconds"
    began = time.time()
    rows = finish(start(config, whole), whole)
    if not seconds_file.exists():  # a finished run, started again, ends at once
        taken_at = (whole / "config.json").stat().st_mtime
        seconds_file.write_text(str(time.time() - taken_at))
    seconds = float(seconds_file.read_text())
    while True:
        told = [line for line in lines(folder) if line["config"] == str(config)]
        number = sum(line["phase"] == "end" for line in told)
        last = len(told) - number >= kills
        if last and (not told or told[-1]["phase"] == "end"):
            return
        workdir = folder / f"{name}-{number}"
        delay = random.Random(f"{config} {len(told)}").uniform(0, FRACTION * seconds)
        began = time.time()
        process = start(config, workdir)
        try:
            while not last and process.poll() is None and not taken(workdir, began):
                time.sleep(0.01)
            process.wait(None if last else delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            event = {"phase": phase(workdir, whole), "seconds": round(delay, 2)}
        else:
            if finish(process, workdir) != rows:
                raise RuntimeError(f"{workdir} and {whole} differ in results.json.")
            event = {"phase": "end"}
        with (folder / "kills.jsonl").open("a") as file:
            file.write(json.dumps({"config": str(config), **event}) + "\n")


def lines(folder: Path) -> list[dict]:
    """All kills and ends so far."""
    path = folder / "kills.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(folder: Path) -> str:
    """How often each config was killed in which phase, and ended."""
    told = pd.DataFrame(lines(folder))
    return pd.crosstab(told["config"], told["phase"], margins=True, margins_name="all").to_string()


def main() -> None:
    """Kills runs of the packages that are named, and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="+", help="whose configs are run")
    parser.add_argument("--folder", type=Path, required=True, help="of all runs")
    parser.add_argument("--kills", type=int, default=20, help="for each package")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for package in options.packages:
        paths = sorted((ROOT / "configs" / package).glob("*.py"))
        configs = [path for path in paths if "def get_config" in path.read_text()]
        for i, path in enumerate(configs):
            share = (options.kills + len(configs) - 1 - i) // len(configs)
            disturb(path.relative_to(ROOT), folder, share)
    print(table(folder))


if __name__ == "__main__":
    main()
