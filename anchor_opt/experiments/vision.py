"""Retrieval across pairs of encoders of the same images (Table 7)."""

from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.models import encoded_images
from anchor_opt.reports import retrieval as report
from anchor_opt.two_spaces import Pair
from common.run import records, results
from common.run.settings import settings
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all methods on each pair of encoders, and prints the tables across them."""
    values = settings(encoded_images.Settings, config, encoders=config.encoders.to_dict())
    grid, proxies = runner.grid(config), {*config.encoders, *paired_spaces.SPACES}
    rows, figures, notes = [], {}, {}
    for text in config.pairs:
        names = space_pairs.names(text)
        images = encoded_images.load(names, values, work, cache)
        pair, prefix = Pair.of(names, images.pair), f"{space_pairs.file_name(*names)}-"
        fields = {"experiment": config.experiment, "proxy": not proxies.isdisjoint(names)}
        measured = two_spaces.retrieve(pair, grid, work, fields, prefix).rows
        groups = {}
        if images.labels is not None:
            groups = report.class_groups(images.labels, np.asarray(pair.source))
        anchors = two_spaces.first_anchors(pair, grid, work, prefix)
        drawn = report.relative_spaces(measured, pair.spaces(), anchors, groups)
        figures |= {f"{prefix}{name}": figure for name, figure in drawn.items()}
        rows += results.averaged(measured)
        notes |= dict.fromkeys(images.notes)
    quoted = {"Encoders": " ".join(notes)} if notes else {}
    return records.finish(work, rows, report, figures=figures, quoted=quoted)
