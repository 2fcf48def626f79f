"""Gains of methods over another one, paired by random run."""

import dataclasses
from collections.abc import Sequence

from common.run.results import Row


def over(baseline: str, rows: Sequence[Row]) -> list[Row]:
    """Each value of the other methods minus that of the baseline in the same random run.

    Rows of random runs belong together if they agree in data set, number of pairs, random seed,
    metric and labels. Those without such a partner are left out.
    """

    def random_run(row: Row) -> tuple:
        labels = sorted(row.labels.items())
        return row.dataset, row.num_pairs, row.random_seed, row.metric, *labels

    reference = {random_run(row): row.mean for row in rows if row.method == baseline}
    return [
        dataclasses.replace(row, mean=row.mean - reference[random_run(row)])
        for row in rows
        if row.method != baseline and random_run(row) in reference
    ]
