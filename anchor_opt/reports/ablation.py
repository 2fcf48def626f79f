"""Tables and figure of the ablation.

Label of the rows: `base`, whether the value is that of the config.
"""

import dataclasses
from collections.abc import Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, failures
from common.run.figures import small_multiples
from common.run.results import Row, pivot, select

SWEEP_TITLES = {  # of what is varied, below the panels
    "algorithm1.init_norm": "norm of the random anchors",
    "algorithm1.sphere_from": "step from which norms are 1",
    "algorithm1.tied_steps": "steps with tied anchors",
    "algorithm1.learning_rate": "learning rate",
    "algorithm1.steps": "steps",
    "algorithm1.sinkhorn_epsilon": "epsilon of Sinkhorn",
    "algorithm1.sinkhorn_iterations": "iterations of Sinkhorn",
    "algorithm1.permute": "which space is permuted",
    "algorithm1.plan": "transport plan",
    "algorithm1.ties": "ties of the match",
    "algorithm1.freeze_pairs": "known anchors are kept",
    "num_pairs": "known pairs",
    "num_words": "words",
    "num_anchors": "anchors",
    "wrong_pair_fraction": "fraction of wrong pairs",
    "centre": "vectors are centred",
}


def tables(rows: Sequence[Row], failed: Sequence[str]) -> dict[str, str]:
    """Title -> Markdown: one line for each value of each name.

    The values of a method have one table, with a column for each pair; the other values have one
    table for each pair, with a column for each method. If there are rows of each random run, each
    pair has one table instead, with a column for each run.
    """
    if any(row.random_seed is not None for row in rows):
        return _each_run(rows) | failures(failed)
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


def _each_run(rows: Sequence[Row]) -> dict[str, str]:
    # The base is the same below every name and stands once.
    base = [dataclasses.replace(row, sweep_over=None) for row in select(rows, base=True)]
    varied = [
        dataclasses.replace(row, labels=row.labels | {"at": _at(row)})
        for row in select(rows, base=False)
    ]
    lines = {"sweep_over": "Varied", "at": "Value", "method": "Method", "anchors": "Anchors"}
    titles = {row.random_seed: f"seed {row.random_seed}" for row in rows} | {None: "mean ± std"}
    tables = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = select(base + varied, dataset=dataset)
        table = pivot(own, lines=lines, columns="random_seed", titles=titles)
        caption = (
            f"{own[0].num_items:,} items, {own[0].num_pairs} known pairs; the anchors of the "
            "target are sought. A dash: no value is varied. Discrete: the items nearest to the "
            "anchors; matched: those that the best one-to-one match of all items gives them."
        )
        tables[f"MRR from {own[0].source} to {own[0].target}"] = f"{table}\n\n{caption}"
    return tables


def _swept(rows: Sequence[Row]) -> list[Row]:
    """MRR from source to target, of continuous anchors, averaged over the random runs."""
    relative = select(rows, metric="mrr", representation="relative", random_seed=None)
    across = [row for row in relative if row.dataset == f"{row.source} -> {row.target}"]
    return select(across, anchors="continuous")


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
        panel = SWEEP_TITLES.get(row.sweep_over, row.sweep_over)
        line = panels.setdefault(panel, {}).setdefault(row.dataset, [])
        line.append((row.sweep_value, row.mean, row.std))
        if row.get("base"):
            base[panel] = row.sweep_value
    title = f"{METHOD_TITLES[method]}: one value varied at a time; vertical line: the value in use"
    return small_multiples(panels, base, "MRR (K = 10)", title)
