"""`isthmus migrate`, once its flags are parsed (`__main__`)."""

import dataclasses
import importlib.metadata
import time
from pathlib import Path

import numpy as np
from absl import flags, logging
from jaxtyping import Int

from common.data.readers import pair_files
from common.data.readers.vector_files import Form
from common.errors import UserError
from common.files import write_json
from common.run import cli
from common.run.figures import save_figure
from isthmus import pages, picture
from isthmus.align import files
from isthmus.align.files import Space
from isthmus.store import migration, report
from isthmus.store.migration import Migration
from isthmus.store.remapping import SETTINGS
from isthmus.store.strategies import Judgement

FLAGS = flags.FLAGS
COMMAND = "isthmus migrate"


def run() -> None:
    """Reads the files, writes the report and the map, and prints the report."""
    out = Path(cli.given("out", COMMAND))
    place = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not place.is_dir() or (out.is_dir() and any(out.iterdir())):
        raise UserError(f"{place} exists and is not an empty folder: choose another --out.")
    began = time.perf_counter()
    old, new = _space("old"), _space("new")
    asked = dict.fromkeys(("wanted_of_map", "wanted_of_old"), FLAGS.keep)
    result = migration.migrate(
        old.vectors,
        new.vectors,
        _pairs(old, new),
        old_model_runs=FLAGS.old_model_runs,
        queries=_queries(old),
        metric=FLAGS.metric,
        candidates=[int(count) for count in FLAGS.candidates or ()],
        settings=SETTINGS if FLAGS.keep is None else dataclasses.replace(SETTINGS, **asked),
        random_seed=FLAGS.random_seed,
        progress=True,
    )
    result.aligner.save(out / "map.npz")
    seconds = time.perf_counter() - began
    given = seconds, Path(FLAGS.old), out, _form("old"), FLAGS.seconds_per_text
    text = report.text(result, *given) + report.suspicious(result, old.words, new.words)
    write_json(out / "results.json", _results(result))
    print(text.removeprefix("# "), flush=True)  # before anything is drawn
    save_figure(report.figure(result), out / "kept.png")
    drawn = picture.part([picture.View(result.aligner, old, new, result.pairs)])
    pages.write(out, text, report.verdict(result), drawn)


def _one_table() -> bool:
    """Whether the vectors of both models are columns of one table, whose rows are the pairs."""
    return bool(FLAGS.new_column) and FLAGS.new in (None, FLAGS.old)


def _form(name: str) -> Form:
    form, column = cli.form(), FLAGS[f"{name.partition('_')[0]}_column"].value
    return form._replace(vector_column=column or form.vector_column)


def _space(name: str) -> Space:
    form = _form(name)
    if name == "new" and (FLAGS.id_column or _one_table()) and not FLAGS.pair_rows:
        form = form._replace(invalid="drop")  # rows that the new model has not embedded yet
    path = Path(FLAGS.old if name == "new" and _one_table() else cli.given(name, COMMAND))
    # Without a column for them, ids of one table are its row numbers.
    numbered = name in ("old", "new") and _one_table() and not FLAGS.id_column
    return files.read_space(path, name, form=form, rows=numbered)


def _pairs(old: Space, new: Space) -> Int[np.ndarray, "p 2"] | None:
    """(old row, new row) of the known pairs; None if there are none."""
    if FLAGS.pairs:
        path = Path(FLAGS.pairs)
        return files.with_pairs(old, new, pair_files.read(path), FLAGS.pair_rows, path).pairs
    equal = files.equal_ids(old, new, FLAGS.id_column is not None)
    if _one_table() and not FLAGS.id_column:
        equal = pair_files.Pairs([(row, row) for row in new.words], False)
    if equal is None:
        few = old.has_ids and new.has_ids
        why = "few ids are in both files" if few else "a file has no ids (--id_column of a table)"
        logging.info(
            "There are no pairs, since --pairs is not given and %s: give one of them.", why
        )
        return None
    return files.with_pairs(old, new, equal, False, Path(FLAGS.new or FLAGS.old)).pairs


def _queries(old: Space) -> migration.Queries | None:
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
    return migration.Queries(by_old.vectors, by_new.vectors, np.asarray(relevant))


def _results(result: Migration) -> dict:
    """What programs read: the advice, the shares that are kept, and the judgement."""
    settings = result.settings
    judged = [
        {"strategy": ranking.strategy, "candidates": ranking.candidates}
        | dict(zip(Judgement._fields[1:], scores, strict=True))
        for ranking, *scores in result.judged or []
    ]
    return {
        "advice": result.advice._asdict(),
        "certain": result.certain,
        "doubts": result.doubts,
        "num_pairs": len(result.pairs),
        "num_duplicates": result.duplicates,
        "suspicious_pairs": result.suspicious.tolist(),
        "num_old": result.sizes[0],
        "num_new": result.sizes[1],
        "asked": {"of_map": settings.wanted_of_map, "of_old": settings.wanted_of_old},
        "tolerance": settings.tolerance,
        "version": importlib.metadata.version("isthmus"),
        "kept": result.estimates._asdict(),  # a share and its uncertainty
        "judged": judged,
    }
