"""Programs on 1, 2, 4 and 8 simulated devices: seconds, memory and communication.

  python -m benchmarks.scaling

Each number of devices is a process of benchmarks/compile.py. Simulated CPU devices share the cores
of this machine, so the times show the cost of splitting the work, not a speed-up. That the results
do not depend on the number of devices and of processes is tested (tests/test_devices.py,
tests/common/test_distributed.py).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from absl import flags

from benchmarks import compiled, harness
from common.run import cli
from common.run.results import markdown

DEVICES = (1, 2, 4, 8)
PROGRAMS = flags.DEFINE_list(
    "programs", ["algorithm1_20000", "bootstrap_20000", "graphs", "glove"], "Programs to run."
)
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")


def measured(devices: int) -> list[dict]:
    """The rows of the programs on so many simulated devices, as `compiled.measure` makes them."""
    xla = f"--xla_force_host_platform_device_count={devices}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.compile", "--topology=here", f"--out={folder}"]
        subprocess.run(
            [*command, f"--programs={','.join(PROGRAMS.value)}"],
            env=os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla},
            check=True,
        )
        (path,) = Path(folder).glob("*.json")
        return [{"devices": devices, **row} for row in json.loads(path.read_text())["rows"]]


def main(argv: list[str]) -> None:
    """Runs the programs on each number of devices and prints the table."""
    del argv
    rows = [row for devices in DEVICES for row in measured(devices)]
    lines = [(str(row["devices"]), *compiled.cells(row)) for row in rows]
    table = markdown(("Devices", *compiled.HEADER.split(",")), lines)
    print(harness.write(Path(OUT.value) / "scaling", rows, "# Devices", table))


if __name__ == "__main__":
    cli.run(main)
