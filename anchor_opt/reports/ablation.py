"""Tables and figure of the ablation.

Label of the rows: `base`, whether the value is that of the config.
"""

import dataclasses
from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import failures
from common.run.figures import small_multiples
from common.run.results import Row, pivot, select


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: one line for each value of each name.

    The values of a method have one table, with a column for each pair; the other values have one
    table for each pair, with a column for each method.
    """
    shown = [dataclasses.replace(row, labels=row.labels | {"at": _at(row)}) for row in _swept(rows)]
    of_method = [row for row in shown if row.sweep_over.startswith(f"{row.method}.")]
    lines, tables = {"sweep_over": "Varied", "at": "Value"}, {}
    for method in dict.fromkeys(row.method for row in of_method):
        table = pivot(select(of_method, method=method), lines=lines, columns="dataset")
        tables[f"MRR of {method} over its values"] = f"{table}\n\n{_caption(of_method)}"
    of_task = [row for row in shown if row not in of_method]
    for dataset in dict.fromkeys(row.dataset for row in of_task):
        own = select(of_task, dataset=dataset)
        table = pivot(own, lines=lines, columns="method")
        tables[f"MRR from {own[0].source} to {own[0].target}"] = f"{table}\n\n{_caption(own)}"
    return tables | failures(failed)


def _swept(rows: Sequence[Row]) -> list[Row]:
    """MRR from source to target, of continuous anchors."""
    relative = select(rows, metric="mrr", representation="relative")
    across = [row for row in relative if row.dataset == f"{row.source} -> {row.target}"]
    return [row for row in across if row.anchors != "discrete"]


def _at(row: Row) -> str:
    value = row.sweep_value
    text = value if isinstance(value, str) else f"{value:,}"
    return f"{text} (base)" if row.get("base") else text


def _caption(rows: Sequence[Row]) -> str:
    """One line on the task, by the values of the base."""
    row = next((row for row in rows if row.get("base")), rows[0])
    runs = f"mean ± std over {row.num_runs} random runs" if row.num_runs > 1 else "one random run"
    return (
        f"{row.num_items:,} items and {row.num_pairs} known pairs where these are not varied; the "
        f"anchors of the target are sought, and are continuous; {runs}."
    )


def figure(rows: Sequence[Row]) -> Figure:
    """MRR of Algorithm 1, or of the first method, over each value varied, a line for each pair."""
    shown = _swept(rows)
    methods = list(dict.fromkeys(row.method for row in shown))
    method = "algorithm1" if "algorithm1" in methods else methods[0]
    panels, base = {}, {}
    for row in select(shown, method=method):
        line = panels.setdefault(row.sweep_over, {}).setdefault(row.dataset, [])
        line.append((row.sweep_value, row.mean, row.std))
        if row.get("base"):
            base[row.sweep_over] = row.sweep_value
    return small_multiples(panels, base, "MRR (K = 10)", f"{method}, one value varied at a time")
