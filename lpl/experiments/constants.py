"""Constants of the loss that the paper does not state, varied one at a time on validation data."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from ml_collections import ConfigDict

from common.errors import check_choice
from common.run import records
from common.run.results import Row
from common.run.settings import apply_quick, varied, with_value
from common.run.workdir import Workdir
from lpl.experiments import nli, word_alignment
from lpl.reports import constants as report

EXPERIMENTS = {"word_alignment": word_alignment.measure_all, "nli": nli.measure_all}
METRICS = ("p_at_1", "accuracy")  # by which a value is chosen


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures each experiment with each value of config.vary; a table of each constant."""
    lines = list(varied(config))
    rows = [row for name, values in lines for row in _rows(name, values, config, work, cache)]
    return records.finish(work, rows, report)


def _rows(name: str, values: list, config: ConfigDict, work: Workdir, cache: Path) -> Iterator[Row]:
    """Rows of an experiment with each value of one constant, whose name begins with its own."""
    experiment = name.partition(".")[0]
    check_choice("experiment", experiment, EXPERIMENTS)
    for value in values:
        point = with_value(config, name, value)[experiment]
        point.quick = config.quick
        folder = Workdir(work.path / f"{name}={value}", apply_quick(point).to_dict())
        for row in EXPERIMENTS[experiment](point, folder, cache).rows:
            if row.metric in METRICS:
                yield dataclasses.replace(row, sweep_over=name, sweep_value=str(value))
