"""Parts that the benchmarks share: timing in alternation, counted work, machine rates, peak memory.

A benchmark is a module of this folder with a constant `BENCHMARK`. Its first implementation is
ours. Implementations whose packages are not installed are left out and listed in the report.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

BENCHMARKS = (  # modules of this folder, in the order in which they are run
    "matching",
    "bootstrap",
    "neighbours",
    "approximate",
    "divergence",
    "cbow",
    "encode",
    "lle",
    "assignment",
    "unpaired",
    "few_pairs",
    "migrate",
)
PACKAGES = (
    "jax",
    "jaxlib",
    "numpy",
    "torch",
    "POT",
    "geomloss",
    "pykeops",
    "faiss-cpu",
    "gensim",
    "scikit-learn",
    "scipy",
    "ott-jax",
    "graspologic",
    "sentence-transformers",
    "transformers",
    "isotrieve",
    "rebasis",
    "embedflow",
)


class Work(NamedTuple):
    """The work that a task requires, however it is implemented.

    Attributes:
      flops: float32 operations of its products and sums; a transcendental function counts as one.
      bytes: inputs and results, each read or written once.
      items: number of items for which a rate is reported; 0: none.
    """

    flops: float
    bytes: float
    items: float = 0


class Implementation(NamedTuple):
    """One way to do the task.

    Attributes:
      prepare: takes the data of a case and returns the call that is timed. Moving data to the
        device and building what a user builds once are not timed.
      max_n: the largest n at which it is run; larger ones take too long or too much memory.
      requires: the modules that it imports.
      compared_with: our implementations that it is compared with; empty: the first one.
      warm_up: whether a first call, in which programs are compiled, is not timed.
      short: like `prepare`, for a shorter call with the same peak memory; None: `prepare`.
    """

    prepare: Callable[[Any], Callable[[], Any]]
    max_n: float = float("inf")
    requires: tuple[str, ...] = ()
    compared_with: tuple[str, ...] = ()
    warm_up: bool = True
    short: Callable[[Any], Callable[[], Any]] | None = None


class Case(NamedTuple):
    """A size of the task.

    Attributes:
      name: in tables.
      n: position on the axis of the figure.
      load: makes the data, the same in every process.
      work: takes the data and returns the required work.
      family: cases of one family are joined by a line in the figure.
      rounds: number of timed calls; 0: as given on the command line.
      memory: whether peak memory is measured.
    """

    name: str
    n: int
    load: Callable[[], Any]
    work: Callable[[Any], Work]
    family: str = ""
    rounds: int = 0
    memory: bool = False


class Benchmark(NamedTuple):
    """A comparison of implementations of one task.

    Attributes:
      title: of the table.
      goal: for the ratio of a peer's time to ours.
      note: differences between the implementations, and how the work is counted.
      cases: in ascending order of size.
      quick: a case that takes seconds, to check that everything runs.
      implementations: by name, ours first.
      score: takes the data and a result and returns measures of quality.
      axis: label of n.
      unit: of the rate.
    """

    title: str
    goal: str
    note: str
    cases: tuple[Case, ...]
    quick: Case
    implementations: dict[str, Implementation]
    score: Callable[[Any, Any], dict[str, float]] = lambda data, result: {}
    axis: str = "n"
    unit: str = ""


def load(name: str) -> Benchmark:
    """The benchmark of a module of this folder."""
    return import_module(f"benchmarks.{name}").BENCHMARK


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
    try:
        match = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        match = None
    number = "1 core" if cores() == 1 else f"{cores()} cores"
    name = f"{match[1].strip() if match else platform.processor()}, {number}"
    return name if jax.device_count() == 1 else f"{name}, {jax.device_count()} devices"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that are installed."""
    releases = {"python": platform.python_version()}
    for name in PACKAGES:
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


def measure(benchmark: Benchmark, case: Case, rounds: int) -> list[dict]:
    """Times all implementations in alternation, `rounds` times after a warm-up call.

    Returns:
      A row for each implementation, whose `against` has the median, minimum and maximum of the
      ratios of its time to that of ours in the same round.
    """
    data = case.load()
    implementations = {
        name: implementation
        for name, implementation in benchmark.implementations.items()
        if case.n <= implementation.max_n and installed(implementation)
    }
    calls = {name: x.prepare(data) for name, x in implementations.items()}
    first_calls = {
        name: seconds(call)[0] for name, call in calls.items() if implementations[name].warm_up
    }
    before = rates()
    times, results = {name: [] for name in calls}, {}
    for _ in range(case.rounds or rounds):
        for name, call in calls.items():
            duration, results[name] = seconds(call)
            times[name].append(duration)
    after = rates()
    rate = {name: max(before[name], after[name]) for name in before}
    work = case.work(data)
    rows = []
    for name, implementation in implementations.items():
        median = statistics.median(times[name])
        row = {
            "case": case.name,
            "n": case.n,
            "family": case.family,
            "side": name,
            "seconds": median,
            "all_seconds": times[name],
            "first_seconds": first_calls.get(name),
            "items": work.items,
            "flops": work.flops,
            "bytes": work.bytes,
            "of_matmul": work.flops / median / rate["flops"],
            "of_bandwidth": work.bytes / median / rate["bytes"],
            "machine_flops": rate["flops"],
            "machine_bytes": rate["bytes"],
            "scores": benchmark.score(data, results[name]),
            "against": {},
        }
        for ours in implementation.compared_with or list(implementations)[:1]:
            if ours != name:
                ratios = [a / b for a, b in zip(times[name], times[ours], strict=True)]
                row["against"][ours] = [statistics.median(ratios), min(ratios), max(ratios)]
        rows.append(row)
    return rows


def peak_memory(benchmark: str, case: str, implementation: str) -> dict[str, int] | None:
    """Peak memory of one implementation, run in a new process, in bytes; None if that failed.

    `peak` is that of the whole process, `before` its size just before the first call, with data
    and libraries in memory.
    """
    command = [sys.executable, "-m", "benchmarks.memory", benchmark, case, implementation]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{benchmark}, {case}, {implementation}: {done.stderr[-500:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])
