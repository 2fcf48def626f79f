r"""Aligns files of vectors: from a few known pairs, or none, to all corresponding rows.

  isthmus align --source=a.vec --target=b.npz --pairs=pairs.txt --out=DIR

Files: word2vec .txt / .bin, fastText .vec, GloVe .txt, .npz (`vectors`, and `words` if there are
any), .npy, .safetensors, .parquet, .arrow, .feather, or a folder of shards of these three. The
most frequent rows come first; give --noordered if there is no such order. A line of the pairs is a
word of the source and one of the target, or row numbers (counted from 0) with --pair_rows or for
spaces without words; a .csv of pairs has the first line `source,target` or `source_row,target_row`.
Of several translations of a word the first is fitted to, and each is right. Without --pairs the
geometries alone are used. With --disjoint no item needs to be in both files: the map is learned
from rows of like items, some thousand of them.
--source (with its --pairs) may be repeated: every source is mapped onto the target, and all spaces
are mapped into common coordinates (common/NAME.npz), in which any two of them are compared.

DIR gets report.html, with figures, and report.md, which describe the other files. report.md is
written last; until then the same command resumes a run that was killed.
`isthmus apply` maps new vectors by the map.npz of a source.
"""

from importlib import import_module

from absl import flags

from common.run import cli
from isthmus.align import LEARNING_ROWS

flags.DEFINE_multi_string("source", [], "File of vectors that are mapped; may be repeated.")
flags.DEFINE_string("target", None, "File of vectors that they are mapped onto.")
flags.DEFINE_multi_string(
    "pairs", [], "File of known pairs, .csv, .tsv or text: one for all sources, or one for each."
)
flags.DEFINE_bool("pair_rows", False, "Whether pairs are row numbers if a file doesn't say it.")
flags.DEFINE_string("out", None, "Folder of the results, new or empty.")
flags.DEFINE_integer("max_rows", 200_000, "Rows read of a file, from its top.", lower_bound=1)
flags.DEFINE_integer("rows", LEARNING_ROWS, "Rows that the maps are learned on.", lower_bound=1)
flags.DEFINE_bool("ordered", True, "Whether the rows of a file are in order of frequency.")
flags.DEFINE_bool(
    "disjoint",
    False,
    "Whether the spaces have no items in common but the pairs, such as texts of two languages.",
)
flags.DEFINE_integer("anchors", 300, "Anchors of the relative representations.", lower_bound=1)
flags.DEFINE_integer("folds", 5, "Folds of the check on held-out pairs; 0: none.", lower_bound=0)
flags.DEFINE_integer("random_seed", 0, "Random seed of the folds and of random initializations.")
cli.define_form_flags()


if __name__ == "__main__":  # --help does without JAX, which the command imports
    cli.run(lambda argv: import_module("isthmus.align.command").run())
