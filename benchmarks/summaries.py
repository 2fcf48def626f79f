"""Summaries of all results of this folder, which docs/render.py writes into the pages."""

import json
from pathlib import Path

from common.run.results import markdown

RESULTS = Path(__file__).with_name("results")


def speed() -> str:
    """Each subject at its largest sizes: the ratio of each peer's time to ours."""
    lines = []
    for path in sorted(RESULTS.glob("*.json")):
        benchmark = json.loads(path.read_text())
        if "goal" not in benchmark:
            continue  # vecmap.json: results, not times
        for case in dict.fromkeys({x["family"]: x["case"] for x in benchmark["rows"]}.values()):
            ours, *peers = (row for row in benchmark["rows"] if row["case"] == case)
            place = benchmark["subject"], f"[{case}](results/{path.stem}.md)", benchmark["chip"]
            times = f"{ours['seconds']:.3g} s", f"{ours['of_matmul']:.0%}", benchmark["goal"]
            compared = [(x["side"], x["against"].values()) for x in peers if x["against"]]
            ratios = [f"{x} {' / '.join(f'{y[0]:.2f}' for y in ys)}" for x, ys in compared]
            lines.append([*place, *times, "; ".join(ratios)])
    header = "Subject", "Case", "Machine", "Ours", "Of matmul", "Goal", "Peer / ours"
    return markdown(header, lines)


def programs() -> str:
    """Memory and milliseconds of each compiled program on each kind of device."""
    columns = {}
    for path in sorted(RESULTS.glob("compile_*.json")):
        table = json.loads(path.read_text())
        title = f"[{table['devices']} x {table['device']}](../benchmarks/results/{path.stem}.md)"
        columns[title] = {(row["program"], row["sizes"]): _costs(row) for row in table["rows"]}
    names = {name: None for column in columns.values() for name in column}
    body = [[*name, *(column.get(name, "") for column in columns.values())] for name in names]
    return markdown(("Program", "Sizes", *columns), body)


def _costs(row: dict) -> str:
    if "error" in row:
        return row["error"]
    floor = max(row["seconds_products"], row["seconds_bytes"] or 0.0)
    times = {"floor": floor, "estimate": row["seconds_estimate"], "measured": row["seconds"]}
    stated = [f"{name} {1e3 * x:,.3g} ms" for name, x in times.items() if x is not None]
    return ", ".join([f"{row['temporary'] / 2**20:,.3g} MiB", *stated])
