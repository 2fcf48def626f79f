"""A quick run from an empty and from a full cache of compiled programs: seconds and programs.

  python -m benchmarks.start --out=benchmarks/results/start.json

Each run is a process of its own. The data are taken from the cache directory, where the first run
puts them; it is not counted.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from absl import app, flags

from benchmarks import harness
from common.errors import UserError
from common.run.results import markdown
from common.run.workdir import write_json

CONFIG = flags.DEFINE_string("run_config", "configs/anchor_opt/retrieval.py", "Config of the run.")
PROGRAM = flags.DEFINE_string("program", "anchor_opt.main", "Module that runs it.")
OUT = flags.DEFINE_string("out", "benchmarks/results/start.json", "File of the results.")
COMPILED = "Finished XLA compilation"  # in the log of jax, once for each program


def measure(arguments: list[str], programs: Path) -> dict:
    """Seconds of a process, and the number of programs that it compiles or reads from `programs`.

    Raises:
      UserError: the command fails.
    """
    environment = {"JAX_COMPILATION_CACHE_DIR": str(programs), "JAX_LOG_COMPILES": "1"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM.value, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1 if "--help" in arguments else 0):  # absl's --help exits with 1
        raise UserError(f"{' '.join(arguments)} has failed: {done.stderr[-500:]}")
    return {"seconds": seconds, "programs": done.stderr.count(COMPILED)}


def main(argv: list[str]) -> None:
    """Runs the commands, prints the table and writes the file."""
    del argv
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder) / "programs"
        for name in ("data", "empty cache of programs", "full cache of programs"):
            into = programs if name != "data" else Path(folder) / "other"
            workdir = f"--workdir={folder}/{name.split()[0]}"
            run = [f"--config={CONFIG.value}", "--config.quick", workdir]
            results[name] = measure(run, into)
        del results["data"]
        results["--help"] = measure(["--help"], programs)
    rows = [(name, f"{x['seconds']:.1f}", str(x["programs"])) for name, x in results.items()]
    print(markdown((f"{CONFIG.value}, quick", "Seconds", "Programs"), rows))
    machine = {"chip": harness.chip(), "cores": harness.cores()}
    write_json(Path(OUT.value), {"config": CONFIG.value, "machine": machine, "runs": results})


if __name__ == "__main__":
    app.run(main)
