"""Devices that are described, programs compiled for them or timed, and the table of both."""

import os
import re
import statistics
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks import harness, hlo
from benchmarks.programs import Program
from common import parallel
from common.errors import UserError
from common.run.results import markdown

HERE = "here"
SECONDS = 1.0  # for which a program is timed, at least once
MAX_CALLS = 20  # timed calls of a program
LONG_CALL = 5.0  # seconds of a first call from which it is not repeated
HEADER = (
    "Program,Sizes,Arguments MiB,Temporary MiB,GFLOP,GB,ms products,ms bytes,ms estimate,Bound,"
    "Collectives MiB (number),Compiled s,Measured ms"
)
FULL_PASSES, HIGH_PASSES = 6, 3  # of bfloat16, in float32 products of these precisions on a TPU


class Chip(NamedTuple):
    """Rates of a device by its data sheet, and of its float32 products as `common` sets them."""

    memory: int  # bytes
    flops: float  # float32 operations a second; TPUs take FULL_PASSES of bfloat16
    bandwidth: float  # bytes a second of the main memory
    clock: float = 0.0  # cycles a second, in which the compiler of a TPU estimates; 0: it does not
    accelerator_type: str = ""  # name for libtpu


CHIPS = {
    "v5e": Chip(16 << 30, 197e12 / FULL_PASSES, 819e9, 1.5e9, "v5litepod-8"),
    # A core, of which a chip has two.
    "v4": Chip(16 << 30, 275e12 / FULL_PASSES / 2, 614e9, 1.05e9, "v4-8"),
    "v6e": Chip(32 << 30, 918e12 / FULL_PASSES, 1_640e9, 1.75e9, "v6e-8"),
    "cuda": Chip(84_942_979_072, 66.9e12, 3_352e9),
}
H100 = Path(__file__).with_name("h100.txtpb")


def describe(topology: str) -> tuple[Sequence[Any], Chip]:
    """The described devices of a topology, between which programs are split then, and their rates.

    UserError: the topology is unknown, or its compiler is not installed.
    """
    kind, _, size = topology.partition(":")
    gpus = re.fullmatch(r"(\d+)xh100", size)
    if kind not in CHIPS or not size or (kind == "cuda" and not gpus):
        raise UserError(
            f"There is no topology '{topology}': give v5e:2x4, v4:2x2x1, v6e:2x4 or the like, "
            "cuda:8xh100, or here."
        )
    module = "jax_plugins.xla_cuda13" if kind == "cuda" else "libtpu"
    if find_spec(module.split(".")[0]) is None or find_spec(module) is None:
        raise UserError(
            f"The compiler for {topology} is not installed: run pip install -e '.[compile]', best "
            "in an environment of its own."
        )
    chip = CHIPS[kind]
    jax.config.update("jax_platforms", "cpu")  # the programs are compiled, not run
    jax.devices()  # finds the plugins
    if kind == "cuda":
        options = {"target_config": H100.read_text(), "topology": f"1x1x{gpus[1]}"}
        description = topologies.get_topology_desc(platform="cuda", **options)
    else:
        os.environ |= {
            "TPU_SKIP_MDS_QUERY": "1",
            "TPU_WORKER_HOSTNAMES": "localhost",
            "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # processes that compile share no chip
            "TPU_ACCELERATOR_TYPE": chip.accelerator_type,
        }
        description = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    parallel.devices = lambda: description.devices
    parallel.device_bytes = lambda: chip.memory
    return description.devices, chip


def shapes(program: Program, devices: Sequence[Any]) -> Any:
    """The shapes of arguments, with a copy on each device, or a part if they are split."""
    spec = PartitionSpec("devices") if program.split else PartitionSpec()
    sharding = NamedSharding(Mesh(np.array(devices), ("devices",)), spec)
    return jax.tree.map(lambda x: x.update(sharding=sharding), jax.eval_shape(program.arguments))


def measure(name: str, program: Program, arguments: Any, chip: Chip, timed: bool) -> dict:
    """Compiles a program; its row of the table.

    If it is timed it is run for SECONDS, or once if a call takes LONG_CALL; otherwise the shapes of
    its arguments suffice.
    """
    traced = hlo.traced(program.function, *arguments)
    lowered = traced.lower()
    compile_seconds, compiled = harness.seconds(lowered.compile)
    memory, cost = compiled.memory_analysis(), hlo.cost(compiled.as_text(), program.trips)
    at_full_rate = hlo.product_flops(traced.jaxpr, program.trips, high=HIGH_PASSES / FULL_PASSES)
    calls, call = [], partial(compiled, *arguments)
    if timed:
        first = harness.seconds(call)[0]
        calls = [first] if first >= LONG_CALL else []
        while not calls or (sum(calls) < SECONDS and len(calls) < MAX_CALLS):
            calls.append(harness.seconds(call)[0])
    return {
        "program": name,
        "sizes": program.sizes,
        "arguments": memory.argument_size_in_bytes,
        "temporary": memory.temp_size_in_bytes,
        "flops": hlo.product_flops(traced.jaxpr, program.trips),
        "bytes": cost.bytes,
        "seconds_products": at_full_rate / chip.flops,
        "seconds_bytes": cost.bytes / chip.bandwidth,
        "seconds_estimate": cost.cycles / chip.clock if chip.clock else None,
        "collectives": cost.collectives,
        "collective_counts": cost.counts,
        "compile_seconds": compile_seconds,
        "seconds": statistics.median(calls) if calls else None,
    }


def bound(row: dict) -> str:
    """Which of the floors is the highest; the latency of many small steps if all are far below."""
    floors = {"products": row["seconds_products"], "bytes": row["seconds_bytes"]}
    name = max(floors, key=floors.get)
    whole = row["seconds"] or row["seconds_estimate"] or 0.0
    return "latency" if floors[name] < whole / 10 else name


def cells(row: dict) -> list[str]:
    """A line of the table."""
    names = [row["program"], row["sizes"]]
    if "error" in row:
        return [*names, row["error"], *[""] * (len(HEADER.split(",")) - 3)]

    def numbers(unit: float, *fields: str) -> list[str]:
        return ["" if row[field] is None else f"{row[field] / unit:,.3g}" for field in fields]

    collectives = [
        f"{kind} {size / 2**20:,.3g} ({row['collective_counts'][kind]:,.0f})"
        for kind, size in row["collectives"].items()
    ]
    return [
        *names,
        *numbers(2**20, "arguments", "temporary"),
        *numbers(1e9, "flops", "bytes"),
        *numbers(1e-3, "seconds_products", "seconds_bytes", "seconds_estimate"),
        bound(row),
        ", ".join(collectives) or "none",
        f"{row['compile_seconds']:.1f}",
        *numbers(1e-3, "seconds"),
    ]


def write(about: dict, rows: list[dict], name: str, out: Path) -> str:
    """Writes the results, and returns their table."""
    timed = about["topology"] == HERE
    kind = "measured in this process" if timed else "by the data sheet; nothing was run"
    return harness.write(
        out / f"compile_{name}",
        about | {"rows": rows},
        f"# Programs on {about['devices']} x {about['device']}",
        f"{about['date']}. Rates of a device, {kind}: {about['flops'] / 1e12:.3g} TFLOP/s in a "
        f"float32 product, {about['bandwidth'] / 1e9:,.0f} GB/s. All numbers are those of one "
        "device; docs/accelerators.md explains the columns.",
        markdown(HEADER.split(","), map(cells, rows)),
        harness.versions_line(),
    )
