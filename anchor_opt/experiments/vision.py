"""Retrieval across pairs of encoders of the same images (Table 7)."""

from pathlib import Path

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
    encoders = {
        name: settings(encoded_images.Encoder, values) for name, values in config.encoders.items()
    }
    values = settings(encoded_images.Settings, config, encoders=encoders)
    grid, proxies = runner.grid(config), {*encoders, *paired_spaces.SPACES}
    rows, failed, figures, notes = [], [], {}, {}
    for text in config.pairs:
        names = space_pairs.names(text)
        images = encoded_images.load(names, values, work, cache)
        pair, prefix = Pair.of(names, images.pair), f"{space_pairs.file_name(*names)}-"
        fields = {"experiment": config.experiment, "proxy": not proxies.isdisjoint(names)}
        measured = two_spaces.retrieve(pair, grid, report.IMAGES, work, fields, prefix)
        of_pair = results.averaged(measured.rows)
        groups = {}
        if images.labels is not None:
            groups = report.class_groups(images.labels, images.pair.source)
        drawn = report.figures(two_spaces.drawn(pair, grid, prefix), groups, work)
        figures |= {f"{prefix}{name}": figure for name, figure in drawn.items()}
        rows += of_pair
        failed += measured.failed
        notes |= dict.fromkeys(images.notes)
    across = report.tables(rows, num_anchors=grid.num_anchors, failed=failed)
    end = " ".join([report.NOTES, *notes])
    everything = results.joined(across | report.tables_within(rows))
    records.finish(work, rows, f"{everything}\n\n{end}", figures)
    return results.marked(work, f"{results.joined(across)}\n\n{end}")
