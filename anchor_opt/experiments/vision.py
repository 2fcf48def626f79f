"""Retrieval across pairs of encoders of the same images (Table 7)."""

from pathlib import Path

import numpy as np
from jaxtyping import Int
from ml_collections import ConfigDict

from anchor_opt import runner, two_spaces
from anchor_opt.reports import retrieval as report
from anchor_opt.two_spaces import Pair
from common.data.readers import vector_files
from common.data.sets import images
from common.errors import UserError
from common.run import records, results
from common.run.workdir import Workdir
from common.spaces import image_features, paired_spaces, space_pairs
from common.spaces.paired_spaces import PairedSpaces


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all methods on each pair of encoders, and prints the tables across them."""
    grid, rows, figures = runner.grid(config), [], {}
    for text in config.pairs:
        names = space_pairs.names(text)
        encoded, labels = load(names, config.dataset, config.test_split, cache)
        pair, prefix = Pair.of(names, encoded), f"{space_pairs.file_name(*names)}-"
        proxy = not paired_spaces.SPACES.keys().isdisjoint(names)
        fields = {"experiment": config.experiment, "proxy": proxy}
        measured = two_spaces.retrieve(pair, grid, work, fields, prefix).rows
        groups = {} if labels is None else report.class_groups(labels, np.asarray(pair.source))
        anchors = two_spaces.first_anchors(pair, grid, work, prefix)
        drawn = report.relative_spaces(measured, pair.spaces(), anchors, groups)
        figures |= {f"{prefix}{name}": figure for name, figure in drawn.items()}
        rows += results.averaged(measured)
    return records.finish(work, rows, report, figures=figures)


def load(
    names: tuple[str, str], dataset: str, split: str, cache: Path
) -> tuple[PairedSpaces, Int[np.ndarray, " n"] | None]:
    """The same images by two encoders, and their classes; None if both are files of features.

    A name is that of a pretrained encoder, or the path of a file of features. UserError: an unknown
    encoder or image set, files that can't be read, or spaces of different numbers of images.
    """
    files, labels, spaces = [bool(Path(name).suffix) for name in names], None, []
    if not all(files):
        test = images.load(dataset, split, cache)
        split, labels = test.split, test.labels
    for name, is_file in zip(names, files, strict=True):
        if is_file:
            spaces.append(vector_files.read(Path(name), distinct=False, progress=True).vectors)
        else:
            spaces.append(image_features.encode(name, test.images, cache))
    if len(spaces[0]) != len(spaces[1]):
        raise UserError(
            f"{names[0]} has {len(spaces[0])} rows and {names[1]} {len(spaces[1])}: row i of both "
            "has to be the same image."
        )
    of = "row" if all(files) else split
    return PairedSpaces([f"{of} {i}" for i in range(len(spaces[0]))], *spaces), labels
