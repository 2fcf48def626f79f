"""Times our functions against public implementations of the same tasks; see benchmarks/README.md.

  pip install -r benchmarks/requirements.txt
  python -m benchmarks.run --only=matching,lle
  python -m benchmarks.run --quick --only=matching

Writes BENCHMARK_CHIP.json, .md and .png into --out, and prints the tables.
"""

import datetime
import re
from pathlib import Path

import jax
from absl import flags
from matplotlib.figure import Figure

from benchmarks import harness
from benchmarks.harness import BENCHMARKS, Benchmark, Case
from common.errors import check_choice
from common.run import cli
from common.run.figures import DASHES, save_figure, styles
from common.run.results import markdown
from common.run.workdir import write_atomically, write_json

ONLY = flags.DEFINE_list("only", list(BENCHMARKS), "Benchmarks to run.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Timed calls, unless the case sets their number.")
QUICK = flags.DEFINE_bool("quick", False, "Run one small case of each, to check that it works.")
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")
HOST = (
    "Ours and the peers in JAX and PyTorch are on this device, peers in other libraries on the "
    f"{harness.cores()} cores of its host; fractions are of the rates of the device."
)
HEADER = "Case,Implementation,Seconds,Times ours (min - max),Of matmul,Of bandwidth,MiB,Added,Score"


def cells(row: dict, unit: str) -> tuple[str, ...]:
    """A line of the table."""
    memory = row["memory"]
    scores = [f"{name} {value:.4g}" for name, value in row["scores"].items()]
    if unit:
        scores.append(f"{row['items'] / row['seconds']:,.0f} {unit}")
    ratios = [f"{median:.2f} ({a:.2f} - {b:.2f})" for median, a, b in row["against"].values()]
    return (
        row["case"],
        row["side"],
        f"{row['seconds']:.4g}",
        "; ".join(ratios),
        f"{row['of_matmul']:.0%}",
        f"{row['of_bandwidth']:.1%}",
        f"{memory['peak'] >> 20:,}" if memory else "",
        f"{(memory['peak'] - memory['before']) >> 20:,}" if memory else "",
        ", ".join(scores),
    )


def growth_figure(benchmark: Benchmark, rows: list[dict]) -> Figure:
    """Seconds over n on logarithmic axes, a line for each implementation and family of cases."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    axis = figure.subplots()
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        lines.setdefault((row["side"], row["family"]), []).append((row["n"], row["seconds"]))
    names, families = (list(dict.fromkeys(values)) for values in zip(*lines, strict=True))
    for (name, family), points in lines.items():
        look = styles(names)[name]
        label = ", ".join(filter(None, (name, family)))
        style = {"ls": DASHES[families.index(family) % len(DASHES)]}
        style |= {"color": look.colour, "marker": look.marker}
        points = zip(*sorted(points), strict=True)
        axis.loglog(*points, **style, label=label)
    ticks = sorted({row["n"] for row in rows})
    axis.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axis.minorticks_off()
    axis.set(xlabel=benchmark.axis, ylabel="seconds", title=benchmark.title)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize="small")
    return figure


def run(name: str, benchmark: Benchmark, cases: tuple[Case, ...], out: Path) -> str:
    """Measures a benchmark, writes its files, and returns its table."""
    rows = []
    for case in cases:
        measurements = harness.measure(benchmark, case, ROUNDS.value)
        for row in measurements:
            # The memory of a process says nothing of that of an accelerator.
            wanted = case.memory and jax.default_backend() == "cpu"
            memory = harness.peak_memory(name, case.name, row["side"]) if wanted else None
            rows.append(row | {"memory": memory})
    missing = [key for key, x in benchmark.implementations.items() if not harness.installed(x)]
    about = {
        "subject": benchmark.title,
        "goal": benchmark.goal,
        "chip": harness.chip(),
        "date": datetime.date.today().isoformat(),
        "versions": harness.versions(),
        "note": benchmark.note,
        "not_installed": missing,
    }
    flops, bandwidth = rows[-1]["machine_flops"], rows[-1]["machine_bytes"]
    paragraphs = [
        f"# {benchmark.title}",
        f"{about['chip']}, {about['date']}: {flops / 1e9:.0f} GFLOP/s in a float32 matrix "
        f"product, {bandwidth / 1e9:.1f} GB/s in a triad. Goal, peer / ours: {benchmark.goal}.",
        markdown(HEADER.split(","), (cells(row, benchmark.unit) for row in rows)),
        benchmark.note,
        ", ".join(f"{key} {value}" for key, value in about["versions"].items()) + ".",
    ]
    if jax.default_backend() != "cpu":
        paragraphs.insert(2, HOST)
    if missing:
        paragraphs.append(f"Not installed: {', '.join(missing)}.")
    table = "\n\n".join(paragraphs) + "\n"
    slug = re.sub(r"\W+", "-", about["chip"].lower()).strip("-")
    write_json(out / f"{name}_{slug}.json", about | {"rows": rows})
    write_atomically(out / f"{name}_{slug}.md", table.encode())
    save_figure(growth_figure(benchmark, rows), out / f"{name}_{slug}.png")
    return table


def main(argv: list[str]) -> None:
    """Runs the benchmarks one after the other."""
    del argv
    for name in ONLY.value:
        check_choice("benchmark", name, BENCHMARKS)
    for name in ONLY.value:
        benchmark = harness.load(name)
        cases = (benchmark.quick,) if QUICK.value else benchmark.cases
        print(run(name, benchmark, cases, Path(OUT.value)), flush=True)


if __name__ == "__main__":
    cli.run(main)
