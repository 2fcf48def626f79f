r"""Aligns files of vectors: from a few known pairs, or none, to all corresponding rows.

  isthmus align --source=a.vec --target=b.npz --pairs=pairs.txt --out=DIR

Files: word2vec .txt / .bin, fastText .vec, GloVe .txt, .npz (`vectors`, and `words` if there are
any), .npy, .safetensors, .parquet, .arrow, .feather, or a folder of shards of these three. The
most frequent rows come first; give --noordered if there is no such order. A line of the pairs is a
word of the source and one of the target, or row numbers (counted from 0) with --pair_rows or for
spaces without words; a .csv of pairs has the first line `source,target` or `source_row,target_row`.
Of several translations of a word the first is fitted to, and each is right. Without --pairs the
geometries alone are used.
--source (with its --pairs) may be repeated: every source is mapped onto the target, and all spaces
are mapped into common coordinates (common/NAME.npz), in which any two of them are compared.

DIR gets report.html, with figures, and report.md, which describe the other files. report.md is
written last; until then the same command resumes a run that was killed.
`isthmus apply` maps new vectors by the map.npz of a source.
"""

import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import flags, logging

from common.data.readers import pair_files
from common.data.readers.vector_files import Form
from common.errors import UserError
from common.files import write_atomically
from common.progress import progress_bar
from common.run import cli
from common.run.figures import save_figure
from common.run.workdir import Workdir
from isthmus import align
from isthmus.align import files, joined, output, report
from isthmus.align.space import Space, name_spaces

flags.DEFINE_multi_string("source", [], "File of vectors that are mapped; may be repeated.")
flags.DEFINE_string("target", None, "File of vectors that they are mapped onto.")
flags.DEFINE_multi_string(
    "pairs", [], "File of known pairs, .csv, .tsv or text: one for all sources, or one for each."
)
flags.DEFINE_bool("pair_rows", False, "Whether pairs are row numbers if a file doesn't say it.")
flags.DEFINE_string("out", None, "Folder of the results, new or empty.")
flags.DEFINE_integer("max_rows", 200_000, "Rows read of a file, from its top.", lower_bound=1)
flags.DEFINE_integer(
    "rows", align.LEARNING_ROWS, "Rows that the maps are learned on.", lower_bound=1
)
flags.DEFINE_bool("ordered", True, "Whether the rows of a file are in order of frequency.")
flags.DEFINE_integer("anchors", 300, "Anchors of the relative representations.", lower_bound=1)
flags.DEFINE_integer("folds", 5, "Folds of the check on held-out pairs; 0: none.", lower_bound=0)
flags.DEFINE_integer("random_seed", 0, "Random seed of the folds and of random initializations.")
cli.define_form_flags()
FLAGS = flags.FLAGS
OPTIONS = ("max_rows", "rows", "anchors", "ordered", "folds", "random_seed", *Form._fields)


def main(argv: list[str]) -> None:
    """Aligns files and prints the report."""
    del argv
    if not FLAGS.out:
        raise UserError("There is no --out: say where the results are to be written.")
    print(_align(Path(FLAGS.out)))


def _align(out: Path) -> str:
    """Aligns all sources, writes the results, and returns the report."""
    found = [path.name for path in out.iterdir()] if out.is_dir() else []
    others = [name for name in found if not name.startswith((".lock", "config.json"))]
    if out.is_file() or (others and "config.json" not in found):
        raise UserError(f"{out} exists and holds no alignment: choose another --out.")
    sources, target = _read()
    fingerprints = [_fingerprint(space) for space in (*sources, target)]
    config = {name: FLAGS[name].value for name in OPTIONS} | {"spaces": fingerprints}
    work = Workdir(out, config, "--out")  # refuses other spaces and options
    if not (out / "report.md").is_file():
        bar = progress_bar(sources, desc="aligning", unit="space")
        aligned = [_align_source(source, target, work, config) for source in bar]
        sections = [source.section for source in aligned]
        if len(sources) > 1:
            alignments = [source.alignment for source in aligned]
            sections.append(_join(sources, target, alignments, work.path / "common"))
        text = report.document(target, sections)
        page = report.page(text, f"Alignment onto {target.name}", work.path)
        write_atomically(work.path / "report.html", page.encode())
        write_atomically(work.path / "report.md", text.encode())
    for folder in ("learning", "parts"):  # only needed to resume
        shutil.rmtree(out / folder, ignore_errors=True)
    return (out / "report.md").read_text()


def _read() -> tuple[list[Space], Space]:
    """The sources and the target, before anything is written; each file is read once.

    Raises:
      UserError: a file that can't be read, pairs or vectors that don't fit.
    """
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
        align.normalise(source.vectors, target.vectors, source.pairs, names)
    return sources, target


def _fingerprint(space: Space) -> str:
    """The name of a space and a hash of what was read of it.

    It is not taken of the file, which may be a pipe that can be read once alone.
    """
    digest = hashlib.sha256("\0".join(space.words).encode())
    digest.update(np.ascontiguousarray(space.vectors).data)
    pairs = None if space.pairs is None else space.pairs.tolist()
    digest.update(repr((pairs, space.num_unknown)).encode())
    return f"{space.name} {digest.hexdigest()[:16]}"


class _Aligned(NamedTuple):
    """The result of one source, and its section of the report."""

    alignment: align.Alignment
    section: str


def _align_source(source: Space, target: Space, work: Workdir, config: dict) -> _Aligned:
    """Aligns one source with the target and writes its results."""
    began = time.perf_counter()
    vectors, pairs = (source.vectors, target.vectors), source.pairs
    options = {"ordered": FLAGS.ordered, "random_seed": FLAGS.random_seed, "progress": True}
    learning = Workdir(work.path / "learning" / source.name, config, "--out")
    names = source.name, target.name
    result = align.discover(
        *vectors, pairs, names=names, rows=FLAGS.rows, workdir=learning, **options
    )
    held_out = None
    if FLAGS.folds and pairs is not None and len(np.unique(pairs[:, 0])) >= 2:
        options |= {"folds": FLAGS.folds, "rows": FLAGS.rows}
        if FLAGS.ordered:
            options["rows"] = min(FLAGS.rows, align.HELD_OUT_ROWS)
        task = f"{source.name}-held-out"
        stored = work.part(
            task, lambda: [array.tolist() for array in align.held_out(*vectors, pairs, **options)]
        )
        held_out = align.HeldOut(*map(np.array, stored))
    output.write_alignment(work.path / source.name, result, source, target, FLAGS.anchors)
    for sentence in report.warnings(source, result, held_out):
        logging.warning("%s", sentence)
    figures = report.figures(source, target, result, held_out, learning.metrics.records())
    for name, figure in figures.items():
        save_figure(figure, work.path / source.name / f"{name}.png")
    seconds = time.perf_counter() - began
    section = report.section(source, target, result, held_out, figures, seconds)
    return _Aligned(result, section)


def _join(
    sources: Sequence[Space], target: Space, results: Sequence[align.Alignment], folder: Path
) -> str:
    """Writes the maps of all spaces into common coordinates, and returns the section on them."""
    succeeded = {s.name: r for s, r in zip(sources, results, strict=True) if not r.failed}
    coordinates = None
    if len(succeeded) > 1:
        vectors = {s.name: s.vectors for s in sources if s.name in succeeded}
        together = joined.join(vectors, target.vectors, succeeded, FLAGS.rows)
        coordinates = together.coordinates
        for name, aligner in together.aligners.items():
            aligner.save(folder / f"{name}.npz")
    left_out = [s.name for s in sources if s.name not in succeeded]
    return report.common_section(target, left_out, coordinates)


if __name__ == "__main__":
    cli.run(main)
