r"""Says what to do with a store of vectors when its embedding model changes.

  isthmus migrate --old=old.npy --new=new.npy --pairs=pairs.txt --out=DIR

--old is the whole store by the old model, --new some of its items by the new model: a few hundred
or thousand, chosen at random, since what they say is taken to hold for the whole store. The first
line says what to do: stay with the old model, map the store, let the old model or the mapped store
give candidates that the new model puts in order, or embed everything again; and what that keeps of
the ten documents that the new model would find.

A line of --pairs is the id of an old and of a new vector, or their rows, counted from 0, with
--pair_rows or for files without ids. Without --pairs, the items that have one id in both files are
the pairs. With fewer than 100 the rows of both files are matched first, which takes minutes.

With --old_queries, --new_queries and --relevant (lines: id of a query, id of a document), the ways
are also judged by the documents that are known to be relevant.

The files are those of `isthmus align`: .npy, .npz, .parquet, .arrow, .feather, .safetensors, .vec,
.txt, .bin, or a folder of shards; in tables --id_column has the ids.

DIR gets report.html and report.md, results.json, and map.npz, which `isthmus apply` reads.
"""

import time
from pathlib import Path

import numpy as np
from absl import flags
from jaxtyping import Int

from common.data.readers import pair_files
from common.data.readers.pair_files import Pairs
from common.errors import UserError
from common.files import write_atomically, write_json
from common.run import cli
from isthmus import store as migrate
from isthmus.align import files
from isthmus.align.report import page
from isthmus.align.space import Space
from isthmus.store import Queries, report
from isthmus.store.result import Migration

flags.DEFINE_string("old", None, "File of all vectors of the old model.")
flags.DEFINE_string("new", None, "File of some vectors of the new model.")
flags.DEFINE_string(
    "pairs", None, "File of pairs: an old and a new id in a line; default: equal ids."
)
flags.DEFINE_bool("pair_rows", False, "Whether pairs are row numbers if a file doesn't say it.")
flags.DEFINE_string("out", None, "Folder of the results, new or empty.")
flags.DEFINE_bool("old_model_runs", True, "Whether queries can still be embedded by the old model.")
flags.DEFINE_string("old_queries", None, "File of queries by the old model.")
flags.DEFINE_string("new_queries", None, "File of the same queries by the new model.")
flags.DEFINE_string("relevant", None, "File of pairs: ids of a query and of a document it seeks.")
flags.DEFINE_integer("random_seed", 0, "Random seed of the search for pairs, if they are few.")
cli.define_form_flags()
FLAGS = flags.FLAGS
COMMAND = "isthmus migrate"


def main(argv: list[str]) -> None:
    """Reads the files, writes the report and the map, and prints the report."""
    del argv
    out = Path(cli.given("out", COMMAND))
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise UserError(f"{out} exists and is not an empty folder: choose another --out.")
    began = time.perf_counter()
    old, new = _space("old"), _space("new")
    queries = _queries(old)
    result = migrate.migrate(
        old.vectors,
        new.vectors,
        _pairs(old, new),
        old_model_runs=FLAGS.old_model_runs,
        queries=queries,
        random_seed=FLAGS.random_seed,
        progress=True,
    )
    out.mkdir(parents=True, exist_ok=True)
    result.aligner.save(out / "map.npz")
    text = report.text(result, time.perf_counter() - began, Path(FLAGS.old), out)
    write_json(out / "results.json", _results(result))
    write_atomically(out / "report.html", page(text, report.verdict(result), out).encode())
    write_atomically(out / "report.md", text.encode())
    print(text.removeprefix("# "))


def _space(name: str) -> Space:
    return files.read_space(Path(cli.given(name, COMMAND)), name, form=cli.form())


def _pairs(old: Space, new: Space) -> Int[np.ndarray, "p 2"] | None:
    """(old row, new row) of the known pairs; None if there are none."""
    if FLAGS.pairs:
        path = Path(FLAGS.pairs)
        return files.with_pairs(old, new, pair_files.read(path), FLAGS.pair_rows, path).pairs
    if old.words[:2] == ["0", "1"] == new.words[:2]:  # row numbers, which are no ids
        return None
    equal = set(old.words).intersection(new.words)
    if not equal:
        return None
    entries = [(word, word) for word in new.words if word in equal]
    return files.with_pairs(old, new, Pairs(entries, False), False, Path(FLAGS.new)).pairs


def _queries(old: Space) -> Queries | None:
    """The judged queries; None if there are none."""
    names = ("old_queries", "new_queries", "relevant")
    if not any(FLAGS[name].value for name in names):
        return None
    by_old, by_new = _space("old_queries"), _space("new_queries")
    if by_old.words != by_new.words:
        raise UserError(
            "--old_queries and --new_queries have other ids or another order: give the same "
            "queries in one order."
        )
    path = Path(cli.given("relevant", COMMAND))
    relevant = files.with_pairs(by_old, old, pair_files.read(path), FLAGS.pair_rows, path).pairs
    return Queries(by_old.vectors, by_new.vectors, np.asarray(relevant))


def _results(result: Migration) -> dict:
    """What programs read: the advice, the shares that are kept, and the judgement."""
    judged = [
        {"strategy": one.ranking.strategy, "candidates": one.ranking.candidates}
        | {name: value for name, value in one._asdict().items() if name != "ranking"}
        for one in result.judged or []
    ]
    return {
        "advice": result.advice._asdict(),
        "certain": result.certain,
        "num_pairs": len(result.pairs),
        "kept": {
            name: {share: list(estimate) for share, estimate in of.items()}
            for name, of in result.estimates._asdict().items()
        },
        "judged": judged,
    }


if __name__ == "__main__":
    cli.run(main)
