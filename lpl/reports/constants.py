"""Tables of the constants that were varied on validation data.

Labels of the rows: those of the experiment whose constant is varied.
"""

from common.run.records import Record
from common.run.results import TITLES, frame, pivot

LINES = {"dataset": "Data", "num_pairs": "Pairs", "retrieval": "Retrieval"}


def tables(record: Record) -> dict[str, str]:
    """Title -> table: one for each constant, a column for each of its values."""
    by_title = {}
    for name, part in frame(record.rows).groupby("sweep_over", sort=False):
        first, (experiment, _, constant) = part.row.iloc[0], str(name).partition(".")
        runs = f"mean ± std of {first.num_runs} random runs"
        title = f"{constant} of {experiment}: {TITLES[first.metric]} on validation data, {runs}"
        lines = {field: LINES[field] for field in LINES if first.get(field)}
        by_title[title] = pivot(part, lines=lines, columns="sweep_value")
    return by_title
