"""Maps vectors by the map.npz of `isthmus align` or `isthmus migrate`, to unit length.

  isthmus apply old.parquet --map=DIR/map.npz --out=mapped.parquet
  isthmus apply queries.npy --map=DIR/map.npz --side=target --out=normalised.npy

--side says what the vectors are:
  source  of the space that is mapped, the old model's: they are mapped onto the target (default).
  target  of the target, the new model's, for instance queries of a mapped store: they are centred
          as the map has it. Without that a search misses most of its results, and says nothing.
  back    of the target, but the store is the source's own, which is not changed: they are mapped
          back by the orthogonal matrix nearest to the map's. Search it by inner products of unit
          vectors.

All that is written is of unit length, so that inner products are cosines.

--out is a new file: .parquet (with the other columns of a table), .npz or .vec (words and vectors),
or .npy (vectors alone, in the order of the file). Of several files, or of a glob in quotes, --out
is a folder, in which each keeps its name, in a format that holds what it holds. But for .npz,
blocks of rows are read, mapped and written in turn, so that a file may be larger than memory.
"""

import glob
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from common.errors import UserError
from common.run import cli

flags.DEFINE_string("map", None, "The map.npz of an alignment or a migration.")
flags.DEFINE_string("out", None, "New file of vectors, or a folder of several.")
flags.DEFINE_enum(
    "side", "source", ("source", "target", "back"), "What the vectors are, see above."
)
cli.define_form_flags()
FLAGS = flags.FLAGS
DONE = {
    "source": "of '{source}' mapped onto '{target}'. Search them with vectors of '{target}' that "
    "`isthmus apply --side=target` has normalised.",
    "target": "of '{target}' normalised. Compare them with vectors of '{source}' that `isthmus "
    "apply` has mapped.",
    "back": "of '{target}' mapped back to '{source}'. Search its own vectors, of unit length, by "
    "inner products.",
}


def main(argv: list[str]) -> None:
    """Maps the files."""
    from common import aligner as maps  # --help does without
    from isthmus.align import files

    if len(argv) < 2:
        raise UserError("There are no vectors: give their files after 'apply'.")
    saved, out = (cli.given(name, "isthmus apply") for name in ("map", "out"))
    outputs = _outputs(argv[1:], Path(out))
    aligner, form = maps.load(saved), cli.form()
    if len(outputs) > 1:  # each is tried before any is written, but for files without a row
        empty = [path for path in outputs if files.is_empty(path, aligner, form, FLAGS.side)]
        for path in empty:
            print(f"{path}: no vectors, nothing is written")
        outputs = {path: out for path, out in outputs.items() if path not in empty}
    for path, written in outputs.items():
        rows = written.suffix == ".parquet"  # which holds all columns of a table
        blocks = files.map_blocks(path, aligner, form, side=FLAGS.side, rows=rows)
        count = files.write_blocks(written, blocks)
        done = DONE[FLAGS.side].format(source=aligner.source, target=aligner.target)
        print(f"{written}: {count} vectors {done}")


def _outputs(words: Sequence[str], out: Path) -> dict[Path, Path]:
    """The file that is written for each file that is read; none of them exists.

    A word is a path or a glob; `out` is a file, or a folder if there may be several files.
    """
    from isthmus.align import files

    found = [[word] if Path(word).exists() else sorted(glob.glob(word)) or [word] for word in words]
    paths = [Path(path) for matches in found for path in matches]
    if len(words) == 1 and paths == [Path(words[0])]:
        outputs = {paths[0]: out}
    else:
        outputs = {path: out / files.name_of_mapped(path) for path in dict.fromkeys(paths)}
    for written, count in Counter(outputs.values()).items():
        if count > 1:
            raise UserError(f"{count} of the files would be {written}: map them one by one.")
        if written.exists():
            raise UserError(
                f"The output {written} exists already: choose another --out or delete it."
            )
    return outputs


if __name__ == "__main__":
    FLAGS.set_gnu_getopt()  # flags may follow the files
    cli.run(main, positional=True, by_jax=False)
