"""Parts that the benchmarks share: timing in alternation, counted work, machine rates, files.

A benchmark is a module of this folder with

  TITLE            of the table
  GOAL             for the ratio of a peer's time to ours
  NOTE             differences between the implementations, and how the work is counted
  load             makes the data of a case, the same in every process
  work             takes the data and returns a `Work`
  score            takes the data and a result and returns measures of quality by name
  CASES            in ascending order of size
  QUICK            a case that takes seconds, to check that everything runs
  IMPLEMENTATIONS  by name, ours first

Implementations whose packages are not installed are left out and listed in the report.
"""

import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module, metadata
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from common.files import write_atomically, write_json

# Modules of this folder, in the order in which they are run.
BENCHMARKS = ("matching", "neighbours", "divergence", "cbow", "encode", "lle")
BENCHMARKS += ("assignment", "unpaired", "few_pairs", "migrate")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


class Work(NamedTuple):
    """The work that a task requires, however it is implemented."""

    flops: float  # float32 products and sums; a transcendental function counts as one
    bytes: float  # inputs and results, each read or written once


class Implementation(NamedTuple):
    """One way to do the task.

    `prepare` takes the data of a case and returns the call that is timed, or None if it can't do
    this case. Moving data to the device and building what a user builds once are not timed.
    """

    prepare: Callable[[Any], Callable[[], Any] | None]
    max_n: float = float("inf")  # at which it is run; more takes too long or too much memory
    requires: tuple[str, ...] = ()  # the modules that it imports
    compared_with: tuple[str, ...] = ()  # implementations of ours; empty: the first one
    warm_up: bool = True  # whether a first call, in which programs are compiled, is not timed


class Case(NamedTuple):
    """A size of the task."""

    name: str
    n: int
    values: tuple  # arguments of `load`
    family: str = ""  # of cases that differ in size alone
    rounds: int = 0  # timed calls; 0: as given on the command line
    memory: bool = False  # whether peak memory is measured


def cores() -> int:
    """Number of cores that this process may use; every implementation gets as many threads."""
    return len(os.sched_getaffinity(0))


def torch_device() -> str:
    """Where the peers in PyTorch compute: on the GPU that JAX uses, otherwise on the CPU."""
    return "cuda" if jax.default_backend() == "gpu" else "cpu"


def chip() -> str:
    """Name of the device that JAX computes on; of several CPU devices also their number."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    match = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    number = "1 core" if cores() == 1 else f"{cores()} cores"
    name = f"{match[1].strip() if match else platform.processor()}, {number}"
    return name if jax.device_count() == 1 else f"{name}, {jax.device_count()} devices"


def versions() -> dict[str, str]:
    """Versions of Python, of JAX and of the peers that are installed."""
    peers = re.findall(r"^[\w.-]+", REQUIREMENTS.read_text(), flags=re.M)
    releases = {"python": platform.python_version()}
    for name in ("jax", "jaxlib", "numpy", "scipy", "ott-jax", *peers):
        try:
            releases[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return releases


def installed(implementation: Implementation) -> bool:
    """Whether the modules that an implementation imports are installed."""
    try:
        for name in implementation.requires:
            import_module(name)
    except ImportError:
        return False
    return True


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of a call, including work on the device, and its result."""
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    return time.perf_counter() - start, result


def rates() -> dict[str, float]:
    """Rates that this machine reaches now: FLOP/s of a matrix product, bytes/s of a triad.

    The triad a + s b, repeated in the same memory, counts two arrays read and one written.
    """
    on_cpu = jax.default_backend() == "cpu"
    size, length, times = (2048, 1 << 25, 4) if on_cpu else (8192, 1 << 28, 64)
    square, line = jnp.ones((size, size)), jnp.ones(length)
    product = jax.jit(lambda a: a @ a)
    triad = jax.jit(lambda a, b: lax.fori_loop(0, times, lambda _, a: a + 1.5 * b, a))
    best = [
        min(seconds(call)[0] for _ in range(5))
        for call in (lambda: product(square), lambda: triad(line, line))
    ]
    return {"flops": 2 * size**3 / best[0], "bytes": 12 * length * times / best[1]}


def measure(benchmark: ModuleType, case: Case, rounds: int) -> list[dict]:
    """Times all implementations in alternation, `rounds` times after a warm-up call.

    Returns:
      A row for each implementation, whose `against` has the median, minimum and maximum of the
      ratios of its time to that of ours in the same round.
    """
    data = benchmark.load(*case.values)
    implementations = {
        name: implementation
        for name, implementation in benchmark.IMPLEMENTATIONS.items()
        if case.n <= implementation.max_n and installed(implementation)
    }
    prepared = {name: x.prepare(data) for name, x in implementations.items()}
    calls = {name: call for name, call in prepared.items() if call is not None}
    for name, call in calls.items():
        if implementations[name].warm_up:
            seconds(call)
    before = rates()
    times, results = {name: [] for name in calls}, {}
    for _ in range(case.rounds or rounds):
        for name, call in calls.items():
            duration, results[name] = seconds(call)
            times[name].append(duration)
    rate = {name: max(before[name], value) for name, value in rates().items()}
    work = benchmark.work(data)
    rows = []
    for name in calls:
        median = statistics.median(times[name])
        row = {
            "case": case.name,
            "n": case.n,
            "family": case.family,
            "side": name,
            "seconds": median,
            "all_seconds": times[name],
            **work._asdict(),
            "of_matmul": work.flops / median / rate["flops"],
            "of_bandwidth": work.bytes / median / rate["bytes"],
            "machine_flops": rate["flops"],
            "machine_bytes": rate["bytes"],
            "scores": benchmark.score(data, results[name]),
            "against": {},
        }
        for ours in implementations[name].compared_with or list(calls)[:1]:
            if ours != name:
                ratios = [a / b for a, b in zip(times[name], times[ours], strict=True)]
                row["against"][ours] = [statistics.median(ratios), min(ratios), max(ratios)]
        rows.append(row)
    return rows


def peak_memory(benchmark: str, case: Case, implementation: str) -> dict[str, int] | None:
    """Peak memory of one implementation, run in a new process, in bytes; None if that was killed.

    `peak` is that of the whole process, `before` its size just before the first call, with data
    and libraries in memory.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_peak_memory, benchmark, case, implementation).result()
        except BrokenProcessPool as error:
            print(f"{benchmark}, {case.name}, {implementation}: {error}", file=sys.stderr)
            return None


def _peak_memory(benchmark, case, implementation):
    module = import_module(benchmark)
    call = module.IMPLEMENTATIONS[implementation].prepare(module.load(*case.values))
    before = _process_status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak, which loading has raised
    seconds(call)
    return {"peak": _process_status("VmHWM"), "before": before}


def _process_status(field):
    """A field of the status of this process, in bytes; `getrusage` includes its parent's peak."""
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) << 10


def file_name(text: str) -> str:
    """The name of a device or topology as a part of file names."""
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def commit() -> str:
    """The commit of the code, and whether files differ from it."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.check_output(command, text=True).strip()


def versions_line() -> str:
    """`versions` as the last paragraph of a table."""
    return ", ".join(f"{name} {version}" for name, version in versions().items()) + "."


def write(path: Path, results: Any, *paragraphs: str) -> str:
    """Writes the results to PATH.json and the paragraphs to PATH.md, and returns the latter."""
    text = "\n\n".join(filter(None, paragraphs)) + "\n"
    write_json(path.with_suffix(".json"), results)
    write_atomically(path.with_suffix(".md"), text.encode())
    return text
