"""Our functions against public peers on the same data in the same run; see benchmarks/README.md.

  pip install -r benchmarks/requirements.txt
  python -m benchmarks.run --only=matching,lle
  python -m benchmarks.run --quick --only=matching

Writes SUBJECT_CHIP.json, .md and .png to --out, and prints the tables.
"""

import datetime
import re
from pathlib import Path

from absl import flags
from matplotlib.figure import Figure

from benchmarks import harness
from benchmarks.harness import Case, Subject
from common import cli
from common.report import COLOURS, markdown, save_figure
from common.workdir import write_atomically, write_json

SUBJECTS = ("matching", "bootstrap", "neighbours", "divergence", "cbow", "lle", "assignment")
ONLY = flags.DEFINE_list("only", list(SUBJECTS), "Subjects.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Pairs of timed calls, where the case says no other.")
QUICK = flags.DEFINE_bool("quick", False, "A small size of each, to see that it works.")
OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder of the results.")
HEADER = "Case,Side,Seconds,Times ours (least - most),Of matmul,Of bandwidth,MiB,added,Quality"


def cells(row: dict, unit: str) -> tuple[str, ...]:
    """A line of the table."""
    memory = row["memory"]
    quality = [f"{name} {value:.4g}" for name, value in row["scores"].items()]
    if unit:
        quality.append(f"{row['items'] / row['seconds']:,.0f} {unit}")
    ratios = [f"{middle:.2f} ({a:.2f} - {b:.2f})" for middle, a, b in row["against"].values()]
    return (
        row["case"],
        row["side"],
        f"{row['seconds']:.4g}",
        "; ".join(ratios),
        f"{row['of_matmul']:.0%}",
        f"{row['of_bandwidth']:.1%}",
        f"{memory['peak'] >> 20:,}" if memory else "",
        f"{(memory['peak'] - memory['before']) >> 20:,}" if memory else "",
        ", ".join(quality),
    )


def growth(subject: Subject, rows: list[dict]) -> Figure:
    """Seconds over n, both by factors, a line a side and family."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    axis = figure.subplots()
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        lines.setdefault((row["side"], row["family"]), []).append((row["n"], row["seconds"]))
    sides, families = (list(dict.fromkeys(names)) for names in zip(*lines, strict=True))
    for (side, family), points in lines.items():
        style = ("-", "--", ":", "-.")[families.index(family) % 4]
        label = ", ".join(filter(None, (side, family)))
        colour = COLOURS[sides.index(side) % len(COLOURS)]
        axis.loglog(
            *zip(*sorted(points), strict=True), style, marker="o", color=colour, label=label
        )
    ticks = sorted({row["n"] for row in rows})
    axis.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axis.minorticks_off()
    axis.set(xlabel=subject.axis, ylabel="seconds", title=subject.title)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize="small")
    return figure


def run(name: str, subject: Subject, cases: tuple[Case, ...], out: Path) -> str:
    """Measures a subject, writes its files, and returns its table."""
    rows = []
    for case in cases:
        found = harness.measure(subject, case, ROUNDS.value)
        for row in found:
            row["memory"] = harness.peak(name, case.name, row["side"]) if case.memory else None
        rows += found
    absent = [key for key, side in subject.sides.items() if not harness.installed(side)]
    about = {
        "subject": subject.title,
        "goal": subject.goal,
        "chip": harness.chip(),
        "date": datetime.date.today().isoformat(),
        "versions": harness.versions(),
        "note": subject.note,
        "not_installed": absent,
    }
    rate = rows[-1]["machine_flops"], rows[-1]["machine_bytes"]
    lines = [
        f"# {subject.title}",
        f"{about['chip']}, {about['date']}: {rate[0] / 1e9:.0f} GFLOP/s in a float32 matrix "
        f"product, {rate[1] / 1e9:.1f} GB/s in a triad. Goal, peer / ours: {subject.goal}.",
        markdown(HEADER.split(","), (cells(row, subject.unit) for row in rows)),
        subject.note,
        ", ".join(f"{key} {value}" for key, value in about["versions"].items()) + ".",
    ]
    if absent:
        lines.append(f"Not installed: {', '.join(absent)}.")
    table = "\n\n".join(lines) + "\n"
    slug = re.sub(r"\W+", "-", about["chip"].lower()).strip("-")
    write_json(out / f"{name}_{slug}.json", about | {"rows": rows})
    write_atomically(out / f"{name}_{slug}.md", table.encode())
    save_figure(growth(subject, rows), out / f"{name}_{slug}.png")
    return table


def main(argv: list[str]) -> None:
    """Runs the subjects that were asked for, one after the other."""
    del argv
    for name in ONLY.value:
        cli.choose(dict.fromkeys(SUBJECTS), name, "subject")
    for name in ONLY.value:
        subject = harness.load(name)
        cases = (subject.quick,) if QUICK.value else subject.cases
        print(run(name, subject, cases, Path(OUT.value)), flush=True)


if __name__ == "__main__":
    cli.run(main)
