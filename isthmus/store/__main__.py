r"""Says what to do with a store of vectors when its embedding model changes.

  isthmus migrate --old=old.npy --new=new.npy --pairs=pairs.txt --out=DIR

--old is the whole store by the old model, --new some of its items by the new model: a few hundred
or thousand, chosen at random, since what they say is taken to hold for the whole store. The first
line says what to do: stay with the old model, map the store, let the old model or the mapped store
give candidates that the new model puts in order, or embed everything again; and what that keeps of
the ten documents that the new model would find.

A line of --pairs is the id of an old and of a new vector, or their rows, counted from 0, with
--pair_rows or for files without ids. Without --pairs, the items that have one id in both files are
the pairs, if most have; row numbers are no ids. With fewer than 100 the rows of both files are
matched first, which takes minutes.

With --old_queries, --new_queries and --relevant (lines: id of a query, id of a document), the ways
are also judged by the documents that are known to be relevant.

The files are those of `isthmus align`: .npy, .npz, .parquet, .arrow, .feather, .jsonl,
.safetensors, .vec, .txt, .bin, or a folder of shards; in tables --id_column has the ids. One table
may have vectors of both models, of the new one in some rows:

  isthmus migrate --old=store.parquet --old_column=embedding --new_column=embedding_v2 --out=DIR

DIR gets report.html and report.md, results.json, kept.png and map.npz, for `isthmus apply`.
"""

from importlib import import_module

from absl import flags

from common.run import cli
from isthmus.store import METRICS

flags.DEFINE_string("old", None, "File of all vectors of the old model.")
flags.DEFINE_string("new", None, "File of some vectors of the new model; default: --old.")
flags.DEFINE_string("old_column", None, "Column of the old vectors; default: --vector_column.")
flags.DEFINE_string("new_column", None, "Column of the new vectors; default: --vector_column.")
flags.DEFINE_string(
    "pairs", None, "File of pairs: an old and a new id in a line; default: equal ids."
)
flags.DEFINE_bool("pair_rows", False, "Whether pairs are row numbers if a file doesn't say it.")
flags.DEFINE_string("out", None, "Folder of the results, new or empty.")
flags.DEFINE_bool("old_model_runs", True, "Whether queries can still be embedded by the old model.")
flags.DEFINE_string("old_queries", None, "File of queries by the old model.")
flags.DEFINE_string("new_queries", None, "File of the same queries by the new model.")
flags.DEFINE_string("relevant", None, "File of pairs: ids of a query and of a document it seeks.")
flags.DEFINE_enum(
    "metric", None, METRICS, "By which the old store is searched; default: by cosines, and a look."
)
flags.DEFINE_float(
    "keep",
    None,
    "Share of the ten nearest that is enough; default: .95, of old candidates .80.",
    lower_bound=0,
    upper_bound=1,
)
flags.DEFINE_list("candidates", None, "Further numbers of candidates, such as 500,1000.")
flags.DEFINE_float("seconds_per_text", None, "Time of the new model for a text.", lower_bound=0)
flags.DEFINE_integer("random_seed", 0, "Random seed of the search for pairs, if they are few.")
cli.define_form_flags()


if __name__ == "__main__":  # --help does without JAX, which the command imports
    cli.run(lambda argv: import_module("isthmus.store.command").run())
