"""The work of `python -m anchor_opt.align`: reads and checks all, then aligns source by source."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import logging
from absl.flags import FlagValues
from tqdm import tqdm

from anchor_opt import align_files, align_report, api
from anchor_opt.align_files import Seeds
from common.data.words import Space
from common.errors import UserError
from common.workdir import Workdir, write_arrays, write_atomically

NAMES_OF_OUTPUTS = ("target", "search", "tensorboard", "parts")


class Source(NamedTuple):
    """One space that moves."""

    name: str
    space: Space
    seeds: Seeds | None


class Task(NamedTuple):
    """All inputs, checked.

    Attributes:
      sources: the spaces that move.
      target_name: of the space that stays.
      target: that space.
      settings: values and the contents of files by their fingerprints; decide about resuming.
    """

    sources: list[Source]
    target_name: str
    target: Space
    settings: dict


def read(flags: FlagValues) -> Task:
    """Reads all files, and checks what can be checked before any output.

    Raises:
      UserError: a file that can't be read, spaces of one name, pairs or vectors that don't fit.
    """
    paths = [*map(Path, flags.source), Path(flags.target)]
    names = [align_files.name(path) for path in paths]
    for i, name in enumerate(names):
        if name in names[:i] or (name in NAMES_OF_OUTPUTS and i < len(names) - 1) or not name:
            raise UserError(
                f"'{name}' of {paths[i]} is no name to keep the results apart by (it is the file's "
                "up to the first dot): rename the file."
            )
    lists = [*map(Path, flags.source_words), *([None] * len(flags.source))][: len(flags.source)]
    lists.append(Path(flags.target_words) if flags.target_words else None)
    seeds_paths = [Path(path) for path in flags.seeds]
    *spaces, target = [
        align_files.read_space(path, words, flags.max_rows)
        for path, words in zip(paths, lists, strict=True)
    ]
    for path, space in zip(paths, (*spaces, target), strict=True):
        if len(space.words) == flags.max_rows:
            most = f"the first {flags.max_rows} rows of {path} were read"
            logging.warning("At most %s: give --max_rows to read more.", most)
    sources = []
    for i, (name, space) in enumerate(zip(names[:-1], spaces, strict=True)):
        path = seeds_paths[i if len(seeds_paths) > 1 else 0] if seeds_paths else None
        seeds = align_files.read_seeds(path, space, target) if path else None
        rows = seeds.rows if seeds else None
        api.prepare(space.vectors, target.vectors, rows, (name, names[-1]), flags.method)
        sources.append(Source(name, space, seeds))
    settings = {name: flags[name].value for name in ("method", "max_rows", "rows", "anchors")}
    settings |= {name: flags[name].value for name in ("ordered", "folds", "random_seed")}
    read_files = [path for path in (*paths, *seeds_paths, *lists) if path]
    settings["files"] = [f"{path.name} {align_files.fingerprint(path)}" for path in read_files]
    return Task(sources, names[-1], target, settings)


def align(task: Task, work: Workdir) -> str:
    """Aligns every source with the target and writes all results; the report, last, is returned."""
    pages = []
    for source in tqdm(task.sources, desc="aligning", unit="space"):
        began = time.perf_counter()
        found, ranks, records = _search(source, task, work)
        _write(source, task, found, work.path / source.name)
        for sentence in align_report.warnings(source, found, ranks):
            logging.warning("%s", sentence)
        seconds = time.perf_counter() - began
        pages.append(align_report.page(source, task, found, ranks, records, work.path, seconds))
    normalised = np.asarray(found.aligner.normalise_fixed(task.target.vectors))
    for suffix in ("npz", "vec"):
        align_files.write_space(work.path / f"target.{suffix}", task.target.words, normalised)
    report = align_report.join(task, pages)
    write_atomically(work.path / "report.md", report.encode())
    return report


def _search(source: Source, task: Task, work: Workdir):
    """The alignment, the ranks of held-out seeds (None: fewer than two) and the search's log."""
    search = Workdir(work.path / "search" / source.name, task.settings, "--out")
    spaces = source.space.vectors, task.target.vectors
    rows = source.seeds.rows if source.seeds else None
    settings = task.settings
    found = api.discover(
        *spaces,
        rows,
        names=(source.name, task.target_name),
        method=settings["method"],
        rows=settings["rows"],
        ordered=settings["ordered"],
        random_seed=settings["random_seed"],
        workdir=search,
    )
    if rows is None or len(rows) < 2 or not settings["folds"]:
        return found, None, search.records()

    def check():
        return api.held_out(
            *spaces,
            rows,
            folds=settings["folds"],
            rows=min(settings["rows"], api.CHECK_ROWS) if settings["ordered"] else settings["rows"],
            ordered=settings["ordered"],
            random_seed=settings["random_seed"],
        ).tolist()

    ranks = np.array(work.part(f"{source.name}-held-out", check))
    return found, ranks, search.records()


def _write(source: Source, task: Task, found: api.Alignment, folder: Path) -> None:
    words, target_words = source.space.words, task.target.words
    found.aligner.save(folder / "map.npz")
    align_files.write_table(
        folder / "anchors.tsv",
        ("source", "target", "confidence"),
        (
            (words[s], target_words[t], f"{confidence:.4f}")
            for (s, t), confidence in zip(found.anchors, found.confidence, strict=True)
        ),
    )
    table = [np.asarray(column) for column in found.dictionary]
    to_target, _, score, mutual, confidence = table
    order = np.lexsort((-score, ~mutual))  # mutual pairs first, then by score
    align_files.write_table(
        folder / "dictionary.tsv",
        ("source", "target", "csls", "mutual", "confidence"),
        (
            (
                words[row],
                target_words[to_target[row]],
                f"{score[row]:.4f}",
                int(mutual[row]),
                f"{confidence[row]:.4f}",
            )
            for row in order
        ),
    )
    moved = np.asarray(found.aligner.apply(source.space.vectors))
    for suffix in ("npz", "vec"):
        align_files.write_space(folder / f"aligned.{suffix}", words, moved)
    relative = found.relative(source.space.vectors, task.target.vectors, task.settings["anchors"])
    write_arrays(
        folder / "relative.npz",
        {
            "source": relative[0],
            "target": relative[1],
            "anchors": found.anchors[: task.settings["anchors"]],
        },
    )
