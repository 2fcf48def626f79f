r"""Keeps a run's results for RESULTS.md: its numbers, its config, how it was made.

  python -m docs.keep --run=runs/nli --name=lpl/nli --cores=2 --seconds=155 \
    --figures=bbc_pairs_test --command="--config=configs/lpl/nli.py"

Writes docs/results/NAME.json, and the figures named as docs/figures/NAME-FIGURE.png. Then
`python -m docs.render` puts them into RESULTS.md and README.md.
"""

import io
import json
import subprocess
import time
from pathlib import Path

from absl import flags
from PIL import Image

from common import cli
from common.errors import UserError
from common.workdir import write_atomically

ROOT = Path(__file__).parents[1]
RUN = flags.DEFINE_string("run", None, "Folder of the run.")
NAME = flags.DEFINE_string("name", None, "Under which it is kept: PACKAGE/NAME.")
COMMAND = flags.DEFINE_string("command", None, "The flags it was given, but for the workdir.")
CORES = flags.DEFINE_integer("cores", None, "Processor cores that the run had.")
SECONDS = flags.DEFINE_float("seconds", None, "How long it took, if it ran in one piece.")
FIGURES = flags.DEFINE_list("figures", [], "Its figures to keep, without .png.")
QUOTE = flags.DEFINE_string("quote", "", "What begins a part of its table.md that no row has.")
DIGITS = 6  # of a number kept


def main(argv: list[str]) -> None:
    """Reads a run's folder and writes what is kept of it."""
    del argv
    run = Path(RUN.value)
    if not (run / "results.json").exists():
        raise UserError(f"There is no {run / 'results.json'}: give the folder of a finished run.")
    found = {
        "command": f"python -m {NAME.value.split('/')[0]}.main {COMMAND.value}",
        "finished": _when(run / "results.json"),
        "commit": _commit(),
        "cores": CORES.value,
        "seconds": SECONDS.value,
        "failed": failed(run),
        "quoted": quoted((run / "table.md").read_text(), QUOTE.value) if QUOTE.value else "",
        "config": json.loads((run / "config.json").read_text()),
    }
    rows = json.loads((run / "results.json").read_text())
    write_atomically(ROOT / "docs/results" / f"{NAME.value}.json", packed(found, rows).encode())
    for figure in FIGURES.value:
        path = ROOT / "docs/figures" / f"{NAME.value}-{figure}.png"
        write_atomically(path, small(run / f"{figure}.png"))


def packed(found: dict, rows: list[dict]) -> str:
    """JSON text: what all rows share said once, then a row a line."""
    rows = [{key: _rounded(value) for key, value in row.items()} for row in rows]
    shared = {k: v for k, v in rows[0].items() if all(k in row and row[k] == v for row in rows)}
    lines = [json.dumps({k: v for k, v in row.items() if k not in shared}) for row in rows]
    head = json.dumps(found | {"shared": shared}, indent=1).removesuffix("\n}")
    return head + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def quoted(table: str, beginning: str) -> str:
    """The parts of table.md that begin so, up to the end of their table, under their headings."""
    heading, found, taking = "", [], False
    for paragraph in table.split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph
        if paragraph.lstrip("# ").startswith(beginning):
            taking = True
            found += [heading] if paragraph != heading else []
        if taking:
            found.append(paragraph.strip())
            taking = not paragraph.startswith("|")
    return "\n\n".join(found)


def failed(run: Path) -> list[str]:
    """The parts of a run that say of themselves that they failed."""
    notes = {}
    for path in sorted((run / "parts").glob("*.json")):
        part = json.loads(path.read_text())
        notes[path.stem] = part.get("notes", {}) if isinstance(part, dict) else {}
    return [name for name, note in notes.items() if note.get("failed")]


def small(path: Path) -> bytes:
    """A figure as PNG of 256 colours: a third of its size, and no difference to the eye."""
    buffer = io.BytesIO()
    Image.open(path).convert("RGB").quantize(256, dither=0).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _rounded(value):
    return round(value, DIGITS) if isinstance(value, float) else value


def _when(path: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(path.stat().st_mtime))


def _commit() -> str:
    """The commit that is checked out, and whether code differs from it."""
    changed = _git("status", "--porcelain", "--", ".", ":!docs", ":!README.md", ":!RESULTS.md")
    return _git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    flags.mark_flags_as_required(["run", "name", "command", "cores"])
    cli.run(main)
