"""A quick run from an empty and from a full cache of compiled programs: seconds and programs.

  python -m benchmarks.start

Each run is a process of its own. The data are taken from the cache directory, where a first run,
which is not counted, puts them.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from absl import app, flags

from benchmarks import harness
from common.files import write_json
from common.run.results import markdown

CONFIG = "configs/anchor_opt/retrieval.py"
OUT = flags.DEFINE_string("out", "benchmarks/results/start.json", "File of the results.")
COMPILED = "Finished XLA compilation"  # in the log of jax, once for each program


def measure(programs: str, *arguments: str) -> dict:
    """Seconds of a process, and the number of programs that it compiles or reads from `programs`.

    Raises:
      CalledProcessError: the command fails; absl's --help exits with 1.
    """
    seconds, done = harness.seconds(
        lambda: subprocess.run(
            [sys.executable, "-m", "anchor_opt.main", *arguments],
            env=os.environ | {"JAX_COMPILATION_CACHE_DIR": programs, "JAX_LOG_COMPILES": "1"},
            capture_output=True,
            text=True,
        )
    )
    if "--help" not in arguments:
        done.check_returncode()
    return {"seconds": seconds, "programs": done.stderr.count(COMPILED)}


def main(argv: list[str]) -> None:
    """Runs the commands, prints the table and writes the file."""
    del argv
    with tempfile.TemporaryDirectory() as folder:
        programs = f"{folder}/programs"
        run = f"--config={CONFIG}", "--config.quick"
        measure(f"{folder}/others", *run, f"--workdir={folder}/data")
        results = {
            "empty cache of programs": measure(programs, *run, f"--workdir={folder}/empty"),
            "full cache of programs": measure(programs, *run, f"--workdir={folder}/full"),
            "--help": measure(programs, "--help"),
        }
    rows = [(name, f"{x['seconds']:.1f}", str(x["programs"])) for name, x in results.items()]
    print(markdown((f"{CONFIG}, quick", "Seconds", "Programs"), rows))
    machine = {"chip": harness.chip(), "cores": harness.cores()}
    write_json(Path(OUT.value), {"config": CONFIG, "machine": machine, "runs": results})


if __name__ == "__main__":
    app.run(main)
