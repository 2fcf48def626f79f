"""Runs that kill themselves at a file operation, such as one of two parts (see test_kill.py).

  python -m tests.faults.killed_run FOLDER

makes a run for each line of its input, a point or nothing, in a fork of this process, which has
imported JAX and not begun to use it, and prints how the run has ended. The points are file
operations, which the interpreter announces to audit hooks before it performs them (PEP 578), so
that where a kill falls depends neither on the machine's speed nor on its cores.
"""

import os
import re
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

from common.files import write_json
from common.run import train
from common.run.workdir import Workdir

# Point -> audit event, and pattern of the path that the operation is about to change.
POINTS = {
    "start": ("os.rename", r"config\.json$"),
    "first checkpoint": ("os.rename", r"checkpoints/walk-0/6$"),
    "checkpoint": ("os.rename", r"checkpoints/walk-0/24$"),
    "part file": ("os.rename", r"parts/walk-0\.json$"),
    "between parts": ("os.mkdir", r"checkpoints/walk-1$"),
    "results": ("os.rename", r"results\.json$"),
}


def kill_at(wanted: str, pattern: str) -> None:
    """Ends this process by SIGKILL at an operation of `POINTS`, with half of its file on disk."""

    def hook(event: str, arguments: tuple) -> None:
        if event != wanted:
            return
        path = str(arguments[1] if event == "os.rename" else arguments[0])
        if re.search(pattern, path):
            if event == "os.rename" and os.path.isfile(arguments[0]):
                os.truncate(arguments[0], os.path.getsize(arguments[0]) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def step(state, index, key, settings):
    """A random walk: a step that is lost or taken twice changes its end."""
    noise = jax.random.normal(jax.random.fold_in(key, index), state.shape)
    return state + noise, {"mean": noise.mean()}


def main(folder: str | Path, point: str | None = None) -> None:
    """Two random walks; their sums are the results."""
    if point:
        kill_at(*POINTS[point])
    work = Workdir(folder, {})
    train.SAVE_SECONDS = 0  # a checkpoint after each chunk

    def walk(random_seed: int) -> float:
        options = {"num_steps": 36, "chunk": 6, "work": work, "part": f"walk-{random_seed}"}
        return float(train.run(step, jnp.zeros(9), jax.random.key(random_seed), 0, **options).sum())

    sums = []
    for random_seed in range(2):
        name = f"walk-{random_seed}"
        sums.append(work.part(name, lambda s=random_seed: walk(s)))
        train.forget_checkpoints(work, name)
    write_json(work.path / "results.json", sums)


def forks(folder: str) -> None:
    """Prints the exit code of a run for each line of the input."""
    for line in sys.stdin:
        if not (child := os.fork()):
            main(folder, line.strip())
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    forks(sys.argv[1])
