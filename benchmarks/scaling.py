"""Compares one device with several: results, time, memory and communication.

  python -m benchmarks.scaling

Simulated CPU devices share the cores of this machine, so the times show the cost of splitting the
work, not a speed-up. Strong scaling: the same task on 1, 2, 4 and 8 devices. Weak scaling: the same
number of rows per device. The bytes of collectives are the sizes of the results of all-gather,
all-reduce and so on in the compiled programs. Last, two processes are joined by `jax.distributed`
on this machine.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from absl import flags

from common import cli
from common.report import markdown
from common.workdir import write_atomically, write_json

DEVICES = (1, 2, 4, 8)
# A device needs a block of 128 rows: with fewer, two parts of a program use different devices.
ROWS = flags.DEFINE_integer(
    "rows", 4_000, "Rows of the task, at least 1,024; weak scaling: an eighth per device."
)
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")
DIM = 300

CHILD = """
import json, re, sys, time
import jax, jax.numpy as jnp, numpy as np
n, m, dim, path, *hosts = sys.argv[1:]
if hosts:
    jax.distributed.initialize("localhost:" + hosts[0], 2, int(hosts[1]))
from benchmarks.scaling import collectives
from common import ot, retrieval
from common.linear import unit
from common.ot import streamed
# Small blocks, so that there is work for all devices.
streamed.block_rows = retrieval.block_rows = lambda columns: 128
rng = np.random.default_rng(0)
x, y = (rng.normal(size=(int(rows), int(dim))).astype(np.float32) for rows in (n, m))
x, y = (jnp.asarray(unit(z)) for z in (x, y))
tasks = {
    "match": jax.jit(lambda x, y: ot.match(x, y, 1e-2, iterations=2)[1:4]),
    "csls_top_k": jax.jit(lambda x, y: retrieval.csls_top_k(x, y, 10)[::-1]),
}
results, measured = {}, {}
for name, task in tasks.items():
    program = task.lower(x, y).compile()
    jax.block_until_ready(task(x, y))
    start = time.perf_counter()
    found = jax.block_until_ready(task(x, y))
    measured[name] = {
        "seconds": time.perf_counter() - start,
        "temporary": program.memory_analysis().temp_size_in_bytes,
        "collectives": collectives(program.as_text()),
        "devices": jax.device_count(),
    }
    results |= {f"{name}-{i}": value for i, value in enumerate(found)}
np.savez(path, **results)
print(json.dumps(measured))
"""

TYPES = {"f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8, "bf16": 2, "pred": 1}
COLLECTIVE = re.compile(
    r"= (.*?) (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(-start)?\("
)


def collectives(program: str) -> dict[str, int]:
    """Bytes of the results of each kind of collective in the text of a compiled program.

    A collective in the body of a loop counts once.
    """
    found: dict[str, int] = {}
    for shapes, kind, _ in COLLECTIVE.findall(program):
        for name, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes):
            size = TYPES[name] * int(np.prod([int(d) for d in dims.split(",") if d]))
            found[kind] = found.get(kind, 0) + size
    return found


def start(rows: int, devices: int, path: Path, *hosts: str) -> subprocess.Popen:
    """Starts a process with simulated devices, or one of two hosts (port and index)."""
    xla = f"--xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla}
    command = [sys.executable, "-c", CHILD, str(rows), str(ROWS.value), str(DIM), str(path), *hosts]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> dict:
    """The measurements that a process printed.

    Raises:
      RuntimeError: the process failed; it has printed the reason.
    """
    output = process.communicate()[0]
    if process.returncode:
        raise RuntimeError("A process of the scaling benchmark has failed.")
    return json.loads(output.splitlines()[-1])


def difference(one: Path, other: Path) -> dict[str, float]:
    """The fraction of indices and the largest number in which two results differ."""
    a, b = np.load(one), np.load(other)
    integers = [np.mean(a[k] != b[k]) for k in a if a[k].dtype.kind == "i"]
    numbers = [np.abs(a[k] - b[k]).max() for k in a if a[k].dtype.kind == "f"]
    return {"indices": float(max(integers)), "numbers": float(max(numbers))}


def rows_of(kind: str, devices: int, measured: dict, differs: dict[str, float]) -> list[dict]:
    """A row for each task."""
    shared = {"kind": kind, "devices": devices} | {f"differs_{k}": v for k, v in differs.items()}
    return [shared | {"task": task} | values for task, values in measured.items()]


def main(argv: list[str]) -> None:
    """Runs all configurations and prints the table."""
    del argv
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("strong", "weak"):
            for devices in DEVICES:
                n = ROWS.value if kind == "strong" else ROWS.value * devices // DEVICES[-1]
                path, one = folder / f"{kind}-{devices}.npz", folder / f"{kind}-one-{devices}.npz"
                measured = finish(start(n, devices, path))
                if kind == "strong":
                    one = folder / "strong-1.npz"
                else:
                    finish(start(n, 1, one))
                rows += rows_of(kind, devices, measured, difference(one, path))
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        paths = [folder / f"host-{host}.npz" for host in "01"]
        hosts = [
            start(ROWS.value, 1, path, port, host) for path, host in zip(paths, "01", strict=True)
        ]
        measured = [finish(host) for host in hosts]
        for path in paths:
            rows += rows_of("two hosts", 2, measured[0], difference(folder / "strong-1.npz", path))
    header = (
        "Scaling",
        "Devices",
        "Task",
        "Seconds",
        "Temporary MiB",
        "Collectives, KiB",
        "Differs",
    )
    lines = [
        (
            row["kind"],
            str(row["devices"]),
            row["task"],
            f"{row['seconds']:.3f}",
            f"{row['temporary'] / 2**20:.1f}",
            ", ".join(f"{k} {v / 1024:.0f}" for k, v in row["collectives"].items()) or "none",
            f"{row['differs_indices']:.1e} of indices, {row['differs_numbers']:.1e}",
        )
        for row in rows
    ]
    table = "# Devices\n\n" + markdown(header, lines) + "\n"
    write_json(Path(OUT.value) / "scaling.json", rows)
    write_atomically(Path(OUT.value) / "scaling.md", table.encode())
    print(table)


if __name__ == "__main__":
    cli.run(main)
