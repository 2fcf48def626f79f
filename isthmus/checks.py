r"""Checks a store of vectors and a map that is kept, for a job of every night.

  isthmus check --stored=store.parquet --again=canaries.parquet --id_column=id

--again has vectors that the model in use makes now of some texts of the store, 100 or more, with
their ids: are they of the stored model, the same up to rounding, a rotation of it, or of another
one? By them rows are found that another model has made. The newest tenth of the store, its last
rows, is compared with the others.

With --map, the folder of `isthmus migrate`, and --new, vectors by the new model of 100 or more
items that it was not fitted to, it is estimated what the map keeps, and compared with --before, the
--json of an earlier check.

It prints one line, and leaves with the code 0 if nothing is wrong, 1 if something is, and 2 if the
files can't be read. --json is a file for the numbers.
"""

import json
import sys
from pathlib import Path

from absl import flags

from common.errors import UserError
from common.run import cli

flags.DEFINE_string("stored", None, "File of the stored vectors.")
flags.DEFINE_string("again", None, "File of vectors that are made again.")
flags.DEFINE_string("map", None, "Folder of `isthmus migrate`.")
flags.DEFINE_string("new", None, "File of vectors by the map's target model.")
flags.DEFINE_bool("pair_rows", False, "Whether the rows of a file are the first ones of --stored.")
flags.DEFINE_string("json", None, "File of what was found, for programs.")
flags.DEFINE_string("before", None, "The --json of an earlier check of the same map.")
cli.define_form_flags()
FLAGS = flags.FLAGS


def main(argv: list[str]) -> None:
    """Reads the files, and prints what is found."""
    del argv
    from common import aligner  # --help does without
    from common.data.readers.pair_files import Pairs
    from common.files import write_json
    from isthmus.align import files
    from isthmus.store.check import check

    def read(name):
        path = Path(cli.given(name, "isthmus check"))
        return files.read_space(path, name, form=cli.form()), path

    (stored, _), options = read("stored"), {}
    for name, its_pairs in (("again", "pairs"), ("new", "new_pairs")):
        if FLAGS[name].value:
            space, path = read(name)
            pairs = Pairs([(f"{row}", f"{row}") for row in range(len(space.words))], True)
            if not FLAGS.pair_rows:
                pairs = files.equal_ids(stored, space, required=True)
            if pairs is None:
                raise UserError(
                    f"--stored or --{name} has no ids: give --id_column of a table, or --pair_rows "
                    f"if the rows of --{name} are the first ones of --stored."
                )
            options[name] = space.vectors
            options[its_pairs] = files.with_pairs(stored, space, pairs, False, path).pairs
    if FLAGS.map:
        options["aligner"] = aligner.load(FLAGS.map)
        if FLAGS.before:
            try:
                options["kept"] = json.loads(Path(FLAGS.before).read_text())["measured"]["kept"]
            except (OSError, ValueError, LookupError, TypeError) as error:
                raise UserError(
                    f"{FLAGS.before} is not the --json of a check with --map and --new: give that."
                ) from error
    found = check(stored.vectors, ids=stored.words, **options)
    if FLAGS.json:
        write_json(Path(FLAGS.json), {"ok": not found.wrong, **found._asdict()})
    print(found)
    sys.exit(int(bool(found.wrong)))


if __name__ == "__main__":
    cli.run(main)
