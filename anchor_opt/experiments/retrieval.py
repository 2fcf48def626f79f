"""Retrieval across two word spaces (Tables 1, 4, 5): every method, both directions."""

from pathlib import Path

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
    measured = two_spaces.retrieve(pair, grid, report.WORDS, work, fields)
    rows = results.averaged(measured.rows)
    groups = report.word_groups(config.figure_words, data.names, data.source)
    figures = report.figures(two_spaces.drawn(pair, grid), groups, work)
    across = report.tables(rows, num_anchors=grid.num_anchors, failed=measured.failed)
    everything = results.joined(across | report.tables_within(rows))
    records.finish(work, rows, f"{everything}\n\n{report.NOTES}", figures)
    return results.marked(work, f"{results.joined(across)}\n\n{report.NOTES}")
