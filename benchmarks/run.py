"""Times our functions against public implementations of the same tasks; see benchmarks/README.md.

  pip install -r benchmarks/requirements.txt
  python -m benchmarks.run --only=matching,lle
  python -m benchmarks.run --quick --only=matching

Writes BENCHMARK_CHIP.json and .md into --out, and prints the tables.
"""

import datetime
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import jax
from absl import flags

from benchmarks import harness
from benchmarks.harness import BENCHMARKS, Case
from common.errors import check_choice
from common.run import cli
from common.run.results import markdown

ONLY = flags.DEFINE_list("only", list(BENCHMARKS), "Benchmarks to run.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Timed calls, unless the case sets their number.")
QUICK = flags.DEFINE_bool("quick", False, "Run one small case of each, to check that it works.")
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")
HOST = (
    "Ours and the peers in JAX and PyTorch are on this device, peers in other libraries on the "
    f"{harness.cores()} cores of its host; fractions are of the rates of the device."
)
HEADER = "Case,Implementation,Seconds,Times ours (min - max),Of matmul,Of bandwidth,MiB,Added,Score"


def cells(row: dict) -> list[str]:
    """A line of the table."""
    ratios = [f"{median:.2f} ({a:.2f} - {b:.2f})" for median, a, b in row["against"].values()]
    times = row["case"], row["side"], f"{row['seconds']:.4g}", "; ".join(ratios)
    shares = f"{row['of_matmul']:.0%}", f"{row['of_bandwidth']:.1%}"
    memory = row["memory"]
    sizes = (memory["peak"], memory["peak"] - memory["before"]) if memory else ()
    peaks = [f"{size >> 20:,}" for size in sizes] or ["", ""]
    scores = [f"{name} {value:.4g}" for name, value in row["scores"].items()]
    return [*times, *shares, *peaks, ", ".join(scores)]


def run(name: str, benchmark: ModuleType, cases: Iterable[Case]) -> str:
    """Measures a benchmark, writes its files, and returns its table."""
    rows = []
    # The memory of a process says nothing of that of an accelerator.
    on_cpu = jax.default_backend() == "cpu"
    for case in cases:
        for row in harness.measure(benchmark, case, ROUNDS.value):
            given = (benchmark.__name__, case, row["side"]) if case.memory and on_cpu else None
            rows.append(row | {"memory": harness.peak_memory(*given) if given else None})
    missing = [key for key, x in benchmark.IMPLEMENTATIONS.items() if not harness.installed(x)]
    about = {"subject": benchmark.TITLE, "goal": benchmark.GOAL, "note": benchmark.NOTE}
    about |= {"chip": harness.chip(), "date": datetime.date.today().isoformat()}
    about |= {"versions": harness.versions(), "not_installed": missing}
    path = Path(OUT.value) / f"{name}_{harness.file_name(about['chip'])}"
    flops, bandwidth = rows[-1]["machine_flops"], rows[-1]["machine_bytes"]
    return harness.write(
        path,
        about | {"rows": rows},
        f"# {benchmark.TITLE}",
        f"{about['chip']}, {about['date']}: {flops / 1e9:.0f} GFLOP/s in a float32 matrix "
        f"product, {bandwidth / 1e9:.1f} GB/s in a triad. Goal, peer / ours: {benchmark.GOAL}.",
        "" if on_cpu else HOST,
        markdown(HEADER.split(","), map(cells, rows)),
        benchmark.NOTE,
        harness.versions_line(),
        f"Not installed: {', '.join(missing)}." if missing else "",
    )


def main(argv: list[str]) -> None:
    """Runs the benchmarks one after the other."""
    del argv
    for name in ONLY.value:
        check_choice("benchmark", name, BENCHMARKS)
    for name in ONLY.value:
        benchmark = import_module(f"benchmarks.{name}")
        cases = (benchmark.QUICK,) if QUICK.value else benchmark.CASES
        print(run(name, benchmark, cases), flush=True)


if __name__ == "__main__":
    cli.run(main)
