"""`isthmus align`, once its flags are parsed (`__main__`)."""

import hashlib
import itertools
import os
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags, logging
from matplotlib.figure import Figure

from common.csls import Dictionary
from common.data.readers import pair_files
from common.data.readers.vector_files import Form
from common.errors import UserError, writing
from common.files import write_arrays
from common.linear import unit
from common.progress import progress_bar
from common.run import cli
from common.run import figures as figure_files
from common.run.workdir import Workdir
from isthmus import pages, picture
from isthmus.align import discovery, files, joined, report
from isthmus.align.files import Space

FLAGS = flags.FLAGS
OPTIONS = ["max_rows", "rows", "anchors", "ordered", "disjoint", "folds", "random_seed"]
OPTIONS += Form._fields
RESERVED_NAMES = ("", "target", "learning", "tensorboard", "parts", "common")  # in the results
FORMS = (lambda name: name.split(".")[0], lambda name: Path(name.removesuffix(".gz")).stem, str)


def run() -> None:
    """Aligns all sources, prints the report, and writes it and the figures."""
    out = Path(cli.given("out", "isthmus align"))
    found = [path.name for path in out.iterdir()] if out.is_dir() else []
    others = [name for name in found if not name.startswith((".lock", "config.json"))]
    if out.is_file() or (others and "config.json" not in found):
        raise UserError(f"{out} exists and holds no alignment: choose another --out.")
    sources, target = _read()
    fingerprints = [_fingerprint(space) for space in (*sources, target)]
    config = {name: FLAGS[name].value for name in OPTIONS} | {"spaces": fingerprints}
    work = Workdir(out, config, "--out")  # refuses other spaces and options
    if (out / "report.md").is_file():
        print((out / "report.md").read_text())
    else:
        bar = progress_bar(sources, desc="aligning", unit="space")
        aligned = [_align_source(source, target, work, config) for source in bar]
        alignments, sections, drawings = map(list, zip(*aligned, strict=True))
        if len(sources) > 1:
            sections.append(_join(sources, target, alignments, work.path / "common"))
        text = report.document(target, sections)
        print(text, flush=True)  # before anything is drawn
        for source, draw in zip(sources, drawings, strict=True):
            figure_files.save_figure(draw(), work.path / source.name / "figure.png")
        views = [
            picture.View(found.aligner, source, target, found.anchors, found.confidence)
            for source, found in zip(sources, alignments, strict=True)
        ]
        title = f"Alignment onto {target.name}"
        pages.write(work.path, text, title, picture.part(views))
    for folder in ("learning", "parts"):  # only needed to resume
        shutil.rmtree(out / folder, ignore_errors=True)


def _read() -> tuple[list[Space], Space]:
    """The sources and the target, before anything is written; each file is read once."""
    if not FLAGS.source or not FLAGS.target:
        raise UserError("Give --source and --target, files of vectors.")
    count = len(FLAGS.source)
    if len(FLAGS.pairs) not in (0, 1, count):
        raise UserError(f"There are {len(FLAGS.pairs)} --pairs for {count} --source: give as many.")
    paths = [Path(path) for path in (*FLAGS.source, FLAGS.target)]
    spaces: list[Space] = []
    for path, name in zip(paths, name_spaces(paths[:-1], paths[-1]), strict=True):
        space = files.read_space(path, name, FLAGS.max_rows, cli.form())
        if len(space.words) == FLAGS.max_rows:
            logging.warning("Only the first %d rows of %s are read.", FLAGS.max_rows, path)
        spaces.append(space)
    *sources, target = spaces
    pairs = [(pair_files.read(Path(path)), FLAGS.pair_rows, Path(path)) for path in FLAGS.pairs]
    for i, known in enumerate(pairs * count if len(pairs) == 1 else pairs):
        sources[i] = files.with_pairs(sources[i], target, *known)
    for source in sources:
        names = source.name, target.name
        discovery.normalise(source.vectors, target.vectors, source.pairs, names)
    return sources, target


def name_spaces(sources: Sequence[Path], target: Path) -> list[str]:
    """A name for each source and for the target, made of what differs in their paths.

    It is the shortest in which all names differ and no source has a reserved one: the file's name
    up to its first dot, without its suffix, or whole, alone or after one or more folders' names.
    """
    paths = [Path(os.path.abspath(path)) for path in (*sources, target)]
    for path in paths:
        if paths.count(path) > 1:
            raise UserError(f"{path} is given twice as a space: give different files.")
    for count, form in itertools.product(range(max(len(path.parts) for path in paths)), FORMS):
        folders = ([*path.parts[1:-1]][-count:] if count else [] for path in paths)
        names = ["-".join((*f, form(path.name))) for f, path in zip(folders, paths, strict=True)]
        usable = (name.split(".")[0] not in RESERVED_NAMES for name in names[:-1])
        if len({*names}) == len(names) and names[-1] and all(usable):
            return names
    raise UserError(f"There are no different names for {', '.join(map(str, paths))}: rename one.")


def _fingerprint(space: Space) -> str:
    """The name of a space and a hash of what was read of it.

    It is not taken of the file, which may be a pipe that can be read once alone.
    """
    digest = hashlib.sha256("\0".join(space.words).encode())
    digest.update(np.ascontiguousarray(space.vectors).data)
    pairs = None if space.pairs is None else space.pairs.tolist()
    digest.update(repr((pairs, space.num_unknown)).encode())
    return f"{space.name} {digest.hexdigest()[:16]}"


def _align_source(
    source: Space, target: Space, work: Workdir, config: dict
) -> tuple[discovery.Alignment, str, Callable[[], Figure]]:
    """Writes the results of one source; returns them, their section, and what draws its figure."""
    began = time.perf_counter()
    pairs, names = source.pairs, (source.name, target.name)
    given = ("rows", "ordered", "disjoint", "random_seed")
    options: dict[str, Any] = {name: FLAGS[name].value for name in given}
    find = partial(discovery.discover, source.vectors, target.vectors, pairs, progress=True)
    learning = Workdir(work.path / "learning" / source.name, config, "--out")
    result = find(names=names, workdir=learning, keep_failed=True, **options)
    held_out = None
    if FLAGS.folds and pairs is not None and len(np.unique(pairs[:, 0])) >= 2:
        if FLAGS.ordered or FLAGS.disjoint:
            options["rows"] = min(FLAGS.rows, discovery.HELD_OUT_ROWS)

        def check():
            check = partial(discovery.held_out, *find.args, folds=FLAGS.folds, progress=True)
            return [array.tolist() for array in check(**options)]

        stored = work.part(f"{source.name}-held-out", check)
        held_out = discovery.HeldOut(*map(np.array, stored))
    _write_alignment(work.path / source.name, result, source, target)
    for sentence in report.warnings(source, result, held_out):
        logging.warning("%s", sentence)
    section = report.section(source, target, result, held_out, time.perf_counter() - began)
    records = learning.metrics.records()
    draw = partial(report.figure, source, target, result, held_out, records)
    return result, section, draw


def _write_alignment(
    folder: Path, alignment: discovery.Alignment, source: Space, target: Space
) -> None:
    """Writes the files of a source, see pages/alignment.md, and of the target beside its folder."""
    alignment.aligner.save(folder / "map.npz")
    words, target_words = (np.array(space.words, object) for space in (source, target))
    rows, partners = alignment.anchors.T
    anchors = {"source": words[rows], "target": target_words[partners]}
    files.write_table(folder / "anchors.tsv", anchors | {"confidence": alignment.confidence})
    table = Dictionary(*map(np.asarray, alignment.dictionary))
    order = np.lexsort((-table.score, ~table.mutual))  # mutual pairs first, then by score
    translations = {
        "source": words,
        "target": target_words[table.to_target],
        "csls": table.score,
        "mutual": table.mutual.astype(int),
        "confidence": table.confidence,
    }
    ordered = {name: column[order] for name, column in translations.items()}
    files.write_table(folder / "dictionary.tsv", ordered)
    mapped = unit(alignment.aligner.apply(source.vectors))
    onto = alignment.aligner.normalise_target(target.vectors)
    written = (folder / "aligned", source, mapped), (folder.parent / "target", target, onto)
    for path, space, vectors in written:
        files.write_blocks(path.with_suffix(".npz"), files.in_blocks(space.words, vectors))
        if all(map(files.fits_text, space.words)):
            files.write_blocks(path.with_suffix(".vec"), files.in_blocks(space.words, vectors))
    relative = alignment.relative(source.vectors, target.vectors, FLAGS.anchors)
    arrays = dict(zip(("source", "target"), relative, strict=True))
    with writing(folder / "relative.npz", "--out"):
        anchors = {"anchors": alignment.anchors[: FLAGS.anchors]}
        write_arrays(folder / "relative.npz", arrays | anchors)


def _join(
    sources: Sequence[Space], target: Space, results: Sequence[discovery.Alignment], folder: Path
) -> str:
    """Writes the maps of all spaces into common coordinates, and returns the section on them."""
    succeeded = {s.name: r for s, r in zip(sources, results, strict=True) if not r.failed}
    matches = {}
    if len(succeeded) > 1:
        vectors = {s.name: s.vectors for s in sources if s.name in succeeded}
        aligners, (_, pairs) = joined.join(vectors, target.vectors, succeeded, FLAGS.rows)
        matches = {link: len(rows) for link, rows in pairs.items()}
        for name, aligner in aligners.items():
            aligner.save(folder / f"{name}.npz")
    left_out = [s.name for s in sources if s.name not in succeeded]
    return report.common_section(target, left_out, matches)
