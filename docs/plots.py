r"""Makes the figures of the pages again from the recorded results, without a new run.

  python -m docs.plots --name=lpl/nli  # of the records whose names begin so; of all without --name

It draws those figures of docs/figures that the rows of their record suffice for (`figures` of each
paper's page.py), and names the others: they show vectors, or steps of the training, and are made by
the run itself (`python -m docs.keep --all`). It also writes the rows of all records as one table,
docs/results/rows.csv.
"""

import io
from pathlib import Path

from absl import app
from matplotlib.figure import Figure

from common.run import records
from common.run.figures import png
from common.run.workdir import write_atomically
from docs import keep, render

ROOT = Path(__file__).parents[1]


def drawn(name: str) -> dict[str, Figure | None]:
    """Name of each kept figure of a record -> the figure; None if the rows don't suffice for it."""
    record = records.read(render.RESULTS, name)
    figures = render.page_module(name.split("/")[0]).figures(record)
    paths = (ROOT / "docs/figures").glob(f"{name}-*.png")
    kept = sorted(path.stem.removeprefix(f"{Path(name).name}-") for path in paths)
    return {figure: figures.get(figure) for figure in kept}


def main(argv: list[str]) -> None:
    """Draws the figures and writes the table."""
    del argv
    for name in (name for name in render.names() if name.startswith(keep.NAME.value)):
        for figure, content in drawn(name).items():
            path = ROOT / "docs/figures" / f"{name}-{figure}.png"
            if content is None:
                print(f"{path.relative_to(ROOT)} needs a run: python -m docs.keep --all")
            else:
                write_atomically(path, keep.compressed(io.BytesIO(png(content))))
    table = records.frame(render.RESULTS).to_csv(index=False)
    write_atomically(render.RESULTS / "rows.csv", table.encode())


if __name__ == "__main__":
    app.run(main)
