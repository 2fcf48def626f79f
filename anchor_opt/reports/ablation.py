"""Tables and figure of the ablation.

Label of the rows: `base`, whether the value is that of the config.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from anchor_opt.reports.searches import METHOD_TITLES, failures
from common.run.figures import small_multiples
from common.run.records import Record
from common.run.results import Row, frame, pivot, points, select

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


def tables(record: Record) -> dict[str, str]:
    """Title -> Markdown: one line for each value of each name.

    The values of a method have one table, with a column for each pair; the other values have one
    table for each pair, with a column for each method. If there are rows of each random run, each
    pair has one table instead, with a column for each run.
    """
    if any(row.random_seed is not None for row in record.rows):
        return _each_run(record.rows) | failures(record.failed)
    swept = frame(map(_valued, record.rows))
    # What is varied is a value of the method, METHOD.NAME, or one of the task.
    of_method = swept[swept["sweep_over"].str.split(".").str[0] == swept["method"]]
    lines, tables = {"sweep_over": "Varied", "at": "Value"}, {}
    for method, shown in of_method.groupby("method", sort=False):
        table = pivot(shown["row"], lines=lines, columns="dataset")
        tables[f"MRR of {method} over its values"] = f"{table}\n\n{_caption(of_method['row'])}"
    of_pairs = swept.drop(of_method.index).groupby(["source", "target"], sort=False)
    for (source, target), shown in of_pairs:
        table = pivot(shown["row"], lines=lines, columns="method")
        tables[f"MRR from {source} to {target}"] = f"{table}\n\n{_caption(shown['row'])}"
    return tables | failures(record.failed)


def _each_run(rows: Sequence[Row]) -> dict[str, str]:
    # The base is the same below every name and stands once.
    none = {"at": "-"}
    base = [
        dataclasses.replace(row, sweep_over=None, labels=row.labels | none)
        for row in select(rows, base=True)
    ]
    all_rows = frame([*base, *map(_valued, select(rows, base=False))])
    lines = {"sweep_over": "Varied", "at": "Value", "method": "Method", "anchors": "Anchors"}
    titles = {row.random_seed: f"seed {row.random_seed}" for row in rows} | {None: "mean ± std"}
    caption = (
        f"{rows[0].num_items:,} items, {rows[0].num_pairs} known pairs; the anchors of the "
        "target are sought. A dash: no value is varied. Discrete: the items nearest to the "
        "anchors; matched: those that the best one-to-one match of all items gives them."
    )
    return {
        f"MRR from {source} to {target}": (
            f"{pivot(shown['row'], lines=lines, columns='random_seed', titles=titles)}\n\n{caption}"
        )
        for (source, target), shown in all_rows.groupby(["source", "target"], sort=False)
    }


def _valued(row: Row) -> Row:
    """The row with its varied value as a table shows it."""
    value = row.sweep_value
    text = value if isinstance(value, str) else f"{value:,}"
    return dataclasses.replace(
        row, labels=row.labels | {"at": f"{text} (base)" if row.get("base") else text}
    )


def _caption(rows: Iterable[Row]) -> str:
    """One line on the task, by the values of the base."""
    row = next(row for row in rows if row.get("base"))
    runs = f"mean ± std over {row.num_runs} random runs" if row.num_runs > 1 else "one random run"
    return (
        f"{row.num_items:,} items and {row.num_pairs} known pairs where these are not varied; the "
        f"anchors of the target are sought, and are continuous; {runs}."
    )


def figures(record: Record) -> dict[str, Figure]:
    """`ablation`: MRR of Algorithm 1, or of the first method, over each value that is varied."""
    rows = frame(select(record.rows, anchors="continuous", random_seed=None))
    method = "algorithm1" if "algorithm1" in set(rows["method"]) else rows["method"].iloc[0]
    panels, base = {}, {}
    for over, shown in rows[rows["method"] == method].groupby("sweep_over", sort=False):
        panel = SWEEP_TITLES.get(over, over)
        panels[panel] = points(shown, "dataset", "sweep_value")
        base[panel] = shown.loc[shown["base"], "sweep_value"].iloc[0]
    title = f"{METHOD_TITLES[method]}: one value varied at a time; vertical line: the value in use"
    return {"ablation": small_multiples(panels, base, "MRR (K = 10)", title)}
