r"""Keeps finished runs as records, which the pages show.

  python -m docs.keep runs/nli lpl/nli --figures=bbc_pairs_test

copies the record of a run, which the run itself has written, to docs/results/PAPER/NAME.json, and
figures of the run to docs/figures/PAPER/NAME-FIGURE.png; without --figures, those that an earlier
record of this name has. `python -m docs.render` then writes the pages that quote it.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from common.errors import UserError
from common.files import write_atomically
from common.run import cli, records
from docs import render

FIGURES = flags.DEFINE_list("figures", None, "Figures to keep, without .png.")


def keep(run: Path, name: str, figures: Sequence[str] | None = None) -> list[Path]:
    """Copies the record of a finished run, and its figures.

    Args:
      run: its folder.
      name: PAPER/NAME of the record.
      figures: names of figures of the run; None: of those that the record has already.

    Returns:
      The files that were written.

    Raises:
      UserError: the run is not finished, is a quick one, its code is in no commit, or it has no
        such figure; nothing is written then.
    """
    file, images = run / records.FILE, render.ROOT / "docs/figures"
    if not file.exists():
        raise UserError(f"There is no {file}: give the folder of a finished run.")
    head, _ = records.unpacked(file.read_text())
    if head["config"].get("quick"):
        raise UserError(f"{run} is a quick run: run its command without --config.quick to keep it.")
    if head["changed"] or not head["commit"]:
        what = f"changed {', '.join(head['changed'])}" if head["changed"] else "code without git"
        raise UserError(f"{run} was made by {what}: commit the code and run it again to keep it.")
    if figures is None:
        kept = sorted(images.glob(f"{name}-*.png"))
        figures = [path.stem.removeprefix(f"{Path(name).name}-") for path in kept]
    copies = {run / f"{figure}.png": images / f"{name}-{figure}.png" for figure in figures}
    if missing := [str(path) for path in copies if not path.exists()]:
        raise UserError(f"There is no {missing[0]}: give --figures of this run.")
    record = render.RESULTS / f"{name}.json"
    write_atomically(record, file.read_bytes())
    for image, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(image, copy)
    return [record, *copies.values()]


def main(argv: list[str]) -> None:
    """Keeps one run and prints what was written."""
    if len(argv) != 3 or "/" not in argv[2]:
        raise UserError("Give the folder of a run and PAPER/NAME of its record; see --help.")
    for path in keep(Path(argv[1]), argv[2], FIGURES.value):
        print(f"wrote {path.relative_to(render.ROOT)}")


if __name__ == "__main__":
    cli.run(main, positional=True)
