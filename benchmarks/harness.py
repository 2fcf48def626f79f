"""What the subjects share: sides that alternate, counted work, the machine's rates, peak memory.

A subject is a module with a `SUBJECT`. Ours is the first of its sides. Peers that are not installed
are left out and named.
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

PEERS = (
    "torch",
    "POT",
    "geomloss",
    "pykeops",
    "faiss-cpu",
    "gensim",
    "scikit-learn",
    "scipy",
    "ott-jax",
)
OURS = ("jax", "jaxlib", "numpy")


class Work(NamedTuple):
    """What a task needs at the least, however it is done.

    Attributes:
      flops: float32 operations of its products and sums; a transcendental function counts as one.
      bytes: read and written once each: inputs and results.
      items: of which a rate is told; 0: none.
    """

    flops: float
    bytes: float
    items: float = 0


class Side(NamedTuple):
    """One way to do the task.

    Attributes:
      prepare: the data of a case -> a call that does the task. What it does before that is not
        timed: moving the data to the device, building what a user builds once.
      most: the largest n that it is run at, since a larger one takes too long or too much memory.
      needs: the module it imports.
      like: sides of ours that it is compared with; none: the first.
      warm: whether a first call goes untimed, in which programs are compiled.
      brief: as `prepare`, of a shorter call with the same peak of memory; None: the same.
    """

    prepare: Callable[[Any], Callable[[], Any]]
    most: float = float("inf")
    needs: str = "jax"
    like: tuple[str, ...] = ()
    warm: bool = True
    brief: Callable[[Any], Callable[[], Any]] | None = None


class Case(NamedTuple):
    """A size of the task.

    Attributes:
      name: in tables.
      n: on the axis of the figure.
      load: makes the data, the same in every process.
      work: the data -> what the task needs.
      family: cases of one family are joined by a line in the figure.
      rounds: pairs of timed calls; 0: as the command line says.
      memory: whether the peak of memory is measured.
    """

    name: str
    n: int
    load: Callable[[], Any]
    work: Callable[[Any], Work]
    family: str = ""
    rounds: int = 0
    memory: bool = False


class Subject(NamedTuple):
    """What is compared.

    Attributes:
      title: of the table.
      goal: of the ratio peer / ours.
      note: how the sides differ, and how the work is counted.
      cases: sizes, the small ones first.
      quick: a size that takes seconds, to see that it works.
      sides: by name, ours first.
      score: (data, what a side returned) -> how good it is.
      axis: label of n.
      unit: of the rate.
    """

    title: str
    goal: str
    note: str
    cases: tuple[Case, ...]
    quick: Case
    sides: dict[str, Side]
    score: Callable[[Any, Any], dict[str, float]] = lambda data, result: {}
    axis: str = "n"
    unit: str = ""


def load(name: str) -> Subject:
    """The subject of a module of this folder."""
    return import_module(f"benchmarks.{name}").SUBJECT


def cores() -> int:
    """That this process may use, and that every side is given."""
    return len(os.sched_getaffinity(0))


def chip() -> str:
    """The device that JAX computes on, by name."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return f"{found[1].strip() if found else platform.processor()}, {cores()} cores"


def versions() -> dict[str, str]:
    """Of ours and of the peers that are installed."""
    found = {"python": platform.python_version()}
    for name in [*OURS, *PEERS]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def installed(side: Side) -> bool:
    """Whether what a side imports is there."""
    try:
        import_module(side.needs)
    except ImportError:
        return False
    return True


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of a call, device work included, and what it returned."""
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    return time.perf_counter() - start, result


def rates() -> dict[str, float]:
    """What the machine does at best, here and now: FLOP/s of a matrix product, bytes/s of a triad.

    The triad a + s b, over and over in the same memory, counts two arrays read and one written.
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


def measure(subject: Subject, case: Case, rounds: int) -> list[dict]:
    """Times all sides in turn, `rounds` times after a warm-up: a row a side."""
    data = case.load()
    sides = {
        name: side
        for name, side in subject.sides.items()
        if case.n <= side.most and installed(side)
    }
    calls = {name: side.prepare(data) for name, side in sides.items()}
    first_calls = {name: seconds(call)[0] for name, call in calls.items() if sides[name].warm}
    before = rates()
    times, results = {name: [] for name in calls}, {}
    for _ in range(case.rounds or rounds):
        for name, call in calls.items():
            taken, results[name] = seconds(call)
            times[name].append(taken)
    after = rates()
    rate = {name: max(before[name], after[name]) for name in before}
    work = case.work(data)
    rows = []
    for name, side in sides.items():
        middle = statistics.median(times[name])
        row = {
            "case": case.name,
            "n": case.n,
            "family": case.family,
            "side": name,
            "seconds": middle,
            "all_seconds": times[name],
            "first_seconds": first_calls.get(name),
            "items": work.items,
            "flops": work.flops,
            "bytes": work.bytes,
            "of_matmul": work.flops / middle / rate["flops"],
            "of_bandwidth": work.bytes / middle / rate["bytes"],
            "machine_flops": rate["flops"],
            "machine_bytes": rate["bytes"],
            "scores": subject.score(data, results[name]),
            "against": {},
        }
        for ours in side.like or list(sides)[:1]:
            if ours != name:
                pairs = zip(times[name], times[ours], strict=True)
                ratios = [theirs / mine for theirs, mine in pairs]
                least, most = min(ratios), max(ratios)
                row["against"][ours] = [statistics.median(ratios), least, most]
        rows.append(row)
    return rows


def peak(name: str, case: str, side: str) -> dict[str, int] | None:
    """Peak memory of one side, run alone in a new process, in bytes; None where it failed.

    `peak` is that of the whole process, `before` its size when data and libraries were in memory,
    just before the first call.
    """
    command = [sys.executable, "-m", "benchmarks.memory", name, case, side]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}, {case}, {side}: {done.stderr[-500:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])
