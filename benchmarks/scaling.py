"""Compares one device with several: results, time, memory and communication.

  python -m benchmarks.scaling

The tasks are two searches and a step of two trainings, with the values of their configs: graphs of
50 nodes (ten updates), and GloVe on random counts (a pass).

Simulated CPU devices share the cores of this machine, so the times show the cost of splitting the
work, not a speed-up. Strong scaling: the same task on 1, 2, 4 and 8 devices. Weak scaling: the same
number of rows per device. The bytes of collectives are the sizes of the results of all-gather,
all-reduce and so on in the compiled programs; of a training they are those of one update. Last, two
processes are joined by `jax.distributed` on this machine.
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

from common.run import cli
from common.run.results import markdown
from common.run.workdir import write_atomically, write_json

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
import scipy.sparse
from benchmarks.scaling import collectives
from common import csls, ot, retrieval
from common.linear import unit
from common.ot import streamed
from common.run.settings import settings
from configs.embed_match.trained import embeddings
from configs.wasserstein_embed.graphs import get_config
from embed_match import glove
from wasserstein_embed import metric_embed
# Small blocks, so that there is work for all devices.
streamed.block_rows = retrieval.block_rows = lambda columns: 128
rng = np.random.default_rng(0)
x, y = (rng.normal(size=(int(rows), int(dim))).astype(np.float32) for rows in (n, m))
x, y = (jnp.asarray(unit(z)) for z in (x, y))
key, n = jax.random.key(0), int(n)

clouds = settings(metric_embed.Settings, get_config().tuned.wasserstein, geometry="wasserstein",
    shape=(5, 2), steps=1000)
first, second = (50 * np.arange(n // 50)[:, None] + nodes for nodes in np.triu_indices(50, 1))
edges = jnp.asarray(rng.integers(1, 6, first.size), jnp.float32)
pairs = metric_embed.Data(jnp.asarray(first.ravel()), jnp.asarray(second.ravel()), edges)
embedded = metric_embed.init(clouds, 50, jax.random.split(key, n // 50))

def graphs(state, pairs):
    # Adam divides a gradient by its size: where it cancels, rounding moves a coordinate far.
    return [metric_embed.step(state, 0, pairs, clouds)[1]["distortion"]]

words = settings(glove.Settings, embeddings().glove, epochs_per_step=1)
counts = scipy.sparse.random_array((n, n), density=0.05, rng=rng, format="csr")
counts.data = 10 * counts.data + 0.1
counts, tables = glove.data(counts, words, key), glove.init(words, n, key)

def vectors(state, counts):
    state, metrics = glove.step(state, 0, counts, words)
    return glove.vectors(state), metrics["loss"]

tasks = {
    "match": (lambda x, y: ot.match(x, y, 1e-2, iterations=2)[1:4], x, y),
    "csls_top_k": (lambda x, y: csls.top_k(x, y, 10)[::-1], x, y),
    "graphs": (graphs, embedded, pairs),
    "glove": (vectors, tables, counts),
}
results, measured = {}, {}
for name, (task, *given) in tasks.items():
    task = jax.jit(task)
    program = task.lower(*given).compile()
    jax.block_until_ready(task(*given))
    start = time.perf_counter()
    outputs = jax.block_until_ready(task(*given))
    measured[name] = {
        "seconds": time.perf_counter() - start,
        "temporary": program.memory_analysis().temp_size_in_bytes,
        "collectives": collectives(program.as_text()),
        "devices": jax.device_count(),
    }
    results |= {f"{name}-{i}": value for i, value in enumerate(outputs)}
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
    sizes: dict[str, int] = {}
    for shapes, kind, _ in COLLECTIVE.findall(program):
        for name, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes):
            size = TYPES[name] * int(np.prod([int(d) for d in dims.split(",") if d]))
            sizes[kind] = sizes.get(kind, 0) + size
    return sizes


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


def difference(one: Path, other: Path, task: str) -> dict[str, float]:
    """The fraction of indices and the largest number in which two results of a task differ."""
    a, b = np.load(one), np.load(other)
    names = [name for name in a if name.startswith(f"{task}-")]
    integers = [np.mean(a[k] != b[k]) for k in names if a[k].dtype.kind == "i"]
    numbers = [np.abs(a[k] - b[k]).max() for k in names if a[k].dtype.kind == "f"]
    return {
        "differs_indices": float(max(integers, default=0)),
        "differs_numbers": float(max(numbers)),
    }


def rows_of(kind: str, devices: int, measured: dict, one: Path, other: Path) -> list[dict]:
    """A row for each task."""
    return [
        {"kind": kind, "devices": devices, "task": task, **values, **difference(one, other, task)}
        for task, values in measured.items()
    ]


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
                rows += rows_of(kind, devices, measured, one, path)
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        paths = [folder / f"host-{host}.npz" for host in "01"]
        hosts = [
            start(ROWS.value, 1, path, port, host) for path, host in zip(paths, "01", strict=True)
        ]
        measured = [finish(host) for host in hosts]
        for path in paths:
            rows += rows_of("two hosts", 2, measured[0], folder / "strong-1.npz", path)
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
