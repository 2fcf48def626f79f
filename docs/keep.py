r"""Keeps finished runs as records, which the pages show.

  python -m docs.keep runs/nli lpl/nli --figures=bbc_pairs_test

copies the record of a run, which the run itself has written, to docs/results/PAPER/NAME.json, and
figures of the run to docs/figures/PAPER/NAME-FIGURE.png; without --figures, those that an earlier
record of this name has. `python -m docs.render` then writes the pages that quote it.
"""

from collections.abc import Sequence
from pathlib import Path

from absl import flags

from common.errors import UserError
from common.files import write_atomically
from common.run import cli, records
from docs import render

FIGURES = flags.DEFINE_list("figures", None, "Figures to keep, without .png.")


def keep(run: Path, name: str, figures: Sequence[str] | None = None) -> None:
    """Copies the record PAPER/NAME of a finished run, and figures, and prints what was written.

    None: the figures that the record has already. UserError, and nothing is written: the run is not
    finished, is a quick one, its code is in no commit, or it has no such figure.
    """
    record = records.of_run(run)
    if record.config.get("quick"):
        raise UserError(f"{run} is a quick run: run its command without --config.quick to keep it.")
    if record.changed or not record.commit:
        what = f"changed {', '.join(record.changed)}" if record.changed else "code without git"
        raise UserError(f"{run} was made by {what}: commit the code and run it again to keep it.")
    wanted = render.kept_figures(name) if figures is None else figures
    folder = render.ROOT / "docs/figures"
    copies = {run / f"{figure}.png": folder / f"{name}-{figure}.png" for figure in wanted}
    if missing := [path for path in copies if not path.exists()]:
        raise UserError(f"There is no {missing[0]}: give --figures of this run.")
    copies[run / records.FILE] = render.RESULTS / f"{name}.json"
    for source, copy in copies.items():
        write_atomically(copy, source.read_bytes())
        print(f"wrote {copy.relative_to(render.ROOT)}")


def main(argv: list[str]) -> None:
    """Keeps one run."""
    if len(argv) != 3 or "/" not in argv[2]:
        raise UserError("Give the folder of a run and PAPER/NAME of its record; see --help.")
    keep(Path(argv[1]), argv[2], FIGURES.value)


if __name__ == "__main__":
    cli.run(main, positional=True)
