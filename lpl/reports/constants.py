"""Tables of the constants that were varied on validation data.

Labels of the rows: those of the experiment whose constant is varied.
"""

import dataclasses
from collections.abc import Sequence

from common.run.results import Row, pivot, select


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table: one for each constant, a line for each value, a column for each data set."""
    by_title = {}
    for name in dict.fromkeys(row.sweep_over for row in rows):
        own = select(rows, sweep_over=name)
        experiment, _, constant = str(name).partition(".")
        measure = {"p_at_1": "P@1", "accuracy": "accuracy"}[own[0].metric]
        title = (
            f"{constant} of {experiment}: {measure}, mean ± std of {own[0].num_runs} random runs"
        )
        shown = [dataclasses.replace(row, dataset=_column(row)) for row in own]
        by_title[title] = pivot(shown, lines={"sweep_value": constant}, columns="dataset")
    return by_title


def _column(row: Row) -> str:
    """The data set, and how many pairs are known and by what a word is retrieved."""
    parts = row.dataset, f"{row.num_pairs:,} pairs", row.get("retrieval")
    return ", ".join(filter(None, parts))
