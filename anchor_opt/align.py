r"""Aligns your own embeddings: files of vectors and a few known pairs in, the correspondence out.

  python -m anchor_opt.align --source=a.vec --target=b.npz --seeds=pairs.txt --out=DIR

Files: word2vec .txt / .bin, fastText .vec, GloVe .txt, .npz (`vectors`, and `words` if there are
any), .npy. The most frequent rows first; give --noordered where there is no such order. The pairs:
a word of the source and one of the target a line, or row numbers where there are no words; without
--seeds the search starts from the two geometries alone. --source (with its --seeds) may be
repeated: every source moves into the target's space.

DIR gets report.md with a figure for each source, target.vec / .npz (the target, normalised), and
for each source a folder of its name: anchors.tsv, dictionary.tsv, map.npz, aligned.vec / .npz,
relative.npz. It is there once all of it is; a run that was stopped goes on in DIR.half.

  python -m anchor_opt.align --apply=new.vec --map=DIR/a/map.npz --out=new_aligned.npz

moves new vectors of the source, with the same centring and scaling.
"""

import itertools
import os
import shutil
from pathlib import Path

from absl import flags

from common import cli
from common.errors import UserError

flags.DEFINE_multi_string("source", [], "File of vectors that move; may be repeated.")
flags.DEFINE_string("target", None, "File of vectors that stay.")
flags.DEFINE_multi_string(
    "seeds", [], "File of known pairs, one for all sources or one for each in order; or none."
)
flags.DEFINE_multi_string("source_words", [], "Word lists of .npy / .npz sources, one for each.")
flags.DEFINE_string("target_words", None, "Word list of a .npy / .npz target, one word a line.")
flags.DEFINE_string("out", None, "Folder of the results, new; with --apply a new .npz or .vec.")
flags.DEFINE_enum(
    "method",
    "bootstrap",
    ["bootstrap", "procrustes", "least_squares", "ridge"],
    "Of the saved map: the search's own, or fitted on the pairs that it has found.",
)
flags.DEFINE_integer(
    "max_rows", 200_000, "Rows read of a file, from its top; --apply reads all.", lower_bound=1
)
flags.DEFINE_integer("rows", 20_000, "Rows of each space that the search sees.", lower_bound=1)
flags.DEFINE_bool("ordered", True, "Whether the first rows of a file are the most frequent.")
flags.DEFINE_integer("anchors", 300, "Of the relative representations.", lower_bound=1)
flags.DEFINE_integer(
    "folds", 5, "Of the check by held-out seeds: a search each; 0 leaves it out.", lower_bound=0
)
flags.DEFINE_integer("random_seed", 0, "Of the folds.")
flags.DEFINE_string("apply", None, "File of new vectors, moved by --map into --out.")
flags.DEFINE_string("map", None, "A map.npz of an earlier run, for --apply.")
FLAGS = flags.FLAGS


def main(argv: list[str]) -> None:
    """Aligns, or applies a saved map."""
    del argv
    for flag, other in itertools.permutations(("apply", "map")):
        if FLAGS[flag].value and not FLAGS[other].value:
            raise UserError(f"--{flag} needs --{other}: give both, or --source and --target.")
    if not FLAGS.out:
        raise UserError("There is no --out: say where the results go.")
    print(_apply() if FLAGS.apply else _align())


def _apply() -> str:
    if FLAGS.source or FLAGS.target or FLAGS.seeds:
        raise UserError("--apply reads no --source, --target or --seeds: the map knows them.")
    out = Path(FLAGS.out)
    if out.suffix not in (".npz", ".vec", ".txt"):
        raise UserError(f"The output {out} is neither .npz nor .vec: give --out such a suffix.")
    if out.exists():
        raise UserError(f"The output {out} is there already: choose another --out or delete it.")
    from anchor_opt import align_files  # takes seconds: once the flags are known to be right
    from common import alignment

    aligner = alignment.load(FLAGS.map)
    words = Path(FLAGS.source_words[0]) if FLAGS.source_words else None
    # Here a bound is only what one asks for: rows left out silently would be lost.
    most = FLAGS.max_rows if FLAGS["max_rows"].present else None
    space = align_files.read_space(Path(FLAGS.apply), words, most)
    align_files.write_space(out, space.words, aligner.apply(space.vectors))
    return (
        f"{len(space.words)} vectors of '{aligner.moving}' moved into the space of "
        f"'{aligner.fixed}' ({' '.join(map(str, aligner.matrix.shape))} dimensions, "
        f"{aligner.method}): {out}. '{aligner.fixed}' did not move; compare with its normalised "
        "vectors."
    )


def _align() -> str:
    if not FLAGS.source or not FLAGS.target:
        raise UserError("Give --source and --target, files of vectors, or --apply and --map.")
    for flag, counts in (("seeds", (0, 1)), ("source_words", (0,))):
        given = len(FLAGS[flag].value)
        if given not in (*counts, len(FLAGS.source)):
            raise UserError(
                f"There are {given} --{flag} for {len(FLAGS.source)} --source: give one for each."
            )
    if FLAGS.folds == 1:
        raise UserError("--folds=1 leaves all seeds out: give two or more, or 0 for no check.")
    out = Path(FLAGS.out)
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not _is_ours(out)):
        raise UserError(f"{out} is there and holds no alignment: choose another --out.")
    from anchor_opt import align_run  # takes seconds: once the flags are known to be right
    from common.workdir import Workdir

    task = align_run.read(FLAGS)
    if _is_ours(out):
        Workdir(out, task.settings, "--out")  # refuses other settings
        _tidy(out)
        return (out / "report.md").read_text()
    half = Path(f"{out}.half")
    report = align_run.align(task, Workdir(half, task.settings, "--out"))
    if out.is_dir():
        out.rmdir()
    os.rename(half, out)
    _tidy(out)
    return report


def _tidy(out: Path) -> None:
    """Deletes what only a run that was stopped needs."""
    for folder in ("search", "parts"):
        shutil.rmtree(out / folder, ignore_errors=True)


def _is_ours(out: Path) -> bool:
    return (out / "config.json").is_file() and (out / "report.md").is_file()


if __name__ == "__main__":
    cli.run(main)
