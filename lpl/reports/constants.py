"""Tables of the constants that were varied on validation data.

Labels of the rows: those of the experiment whose constant is varied.
"""

from collections.abc import Sequence

from common.run.results import TITLES, Row, pivot, select

LINES = {"dataset": "Data", "num_pairs": "Pairs", "retrieval": "Retrieval"}


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> table: one for each constant, a column for each of its values."""
    by_title = {}
    for name in dict.fromkeys(row.sweep_over for row in rows):
        own = select(rows, sweep_over=name)
        experiment, _, constant = str(name).partition(".")
        runs = f"mean ± std of {own[0].num_runs} random runs"
        title = f"{constant} of {experiment}: {TITLES[own[0].metric]} on validation data, {runs}"
        lines = {field: LINES[field] for field in LINES if own[0].get(field)}
        by_title[title] = pivot(own, lines=lines, columns="sweep_value")
    return by_title
