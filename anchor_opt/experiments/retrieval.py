"""Retrieval across two word spaces (Tables 1, 4, 5): every method, both directions."""

from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.reports import retrieval as report
from anchor_opt.two_spaces import Pair
from common.run import records, results
from common.run.workdir import Workdir
from common.spaces import paired_spaces


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all methods on a pair of spaces, and prints the tables across the two spaces."""
    files = ("source", "target", "source_words", "target_words")
    options = {name: config[name] for name in (*files, "drop_first", "min_letters", "max_rows")}
    data = paired_spaces.load(**options, num_words=config.num_words, cache=cache)
    names = config.source, config.target
    pair, grid = Pair.of(names, data), runner.grid(config)
    proxy = any(name in paired_spaces.SPACES for name in names)
    fields = {"experiment": config.experiment, "proxy": proxy}
    measured = two_spaces.retrieve(pair, grid, work, fields).rows
    groups = report.word_groups(config.figure_words, data.names, np.asarray(pair.source))
    anchors = two_spaces.first_anchors(pair, grid, work)
    figures = report.relative_spaces(measured, pair.spaces(), anchors, groups)
    return records.finish(work, results.averaged(measured), report, figures=figures)
