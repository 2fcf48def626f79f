r"""Keeps a finished run for the pages: its numbers, its config, and how it was made.

  python -m docs.keep --run=runs/nli --name=lpl/nli --cores=2 --seconds=155 \
    --figures=bbc_pairs_test --command="--config=configs/lpl/nli.py"

Writes docs/results/NAME.json (read by `common.records`), and the figures as
docs/figures/NAME-FIGURE.png. Then `python -m docs.render` writes the pages that quote the run.
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
RUN = flags.DEFINE_string("run", None, "Folder of the finished run.")
NAME = flags.DEFINE_string("name", None, "Name under which it is kept: PAPER/NAME.")
COMMAND = flags.DEFINE_string("command", None, "The run's flags without --workdir.")
CORES = flags.DEFINE_integer("cores", None, "Processor cores that the run had.")
COMMIT = flags.DEFINE_string("commit", None, "Commit that made the run, if it is another one.")
SECONDS = flags.DEFINE_float("seconds", None, "Duration, if the run was not interrupted.")
FIGURES = flags.DEFINE_list("figures", [], "Figures to keep, without .png.")
QUOTE = flags.DEFINE_string("quote", "", "First words of parts of table.md to quote verbatim.")
DIGITS = 6  # decimal places of a kept number


def main(argv: list[str]) -> None:
    """Reads the folder of a run and writes its record."""
    del argv
    run = Path(RUN.value)
    if not (run / "results.json").exists():
        raise UserError(f"There is no {run / 'results.json'}: give the folder of a finished run.")
    record = {
        "command": f"python -m {NAME.value.split('/')[0]}.main {COMMAND.value}",
        "finished": _modified(run / "results.json"),
        "commit": COMMIT.value or _commit(),
        "cores": CORES.value,
        "seconds": SECONDS.value,
        "failed": failed(run),
        "quoted": quoted((run / "table.md").read_text(), QUOTE.value) if QUOTE.value else "",
        "config": json.loads((run / "config.json").read_text()),
    }
    rows = json.loads((run / "results.json").read_text())
    write_atomically(ROOT / "docs/results" / f"{NAME.value}.json", packed(record, rows).encode())
    for figure in FIGURES.value:
        path = ROOT / "docs/figures" / f"{NAME.value}-{figure}.png"
        write_atomically(path, compressed(run / f"{figure}.png"))


def packed(record: dict, rows: list[dict]) -> str:
    """JSON text of a record: fields that all rows share stand once, then one line for each row."""
    fields = [
        {k: _rounded(v) for k, v in row.items() if k != "labels" and v is not None} for row in rows
    ]
    labels = [{k: _rounded(v) for k, v in row["labels"].items()} for row in rows]
    shared, fields = _split(fields)
    shared["labels"], labels = _split(labels)
    lines = [
        json.dumps(row | ({"labels": own} if own else {}))
        for row, own in zip(fields, labels, strict=True)
    ]
    head = json.dumps(record | {"shared": shared}, indent=1).removesuffix("\n}")
    return head + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _split(rows: list[dict]) -> tuple[dict, list[dict]]:
    """What all rows have in common, and the rest of each row."""
    shared = {k: v for k, v in rows[0].items() if all(k in row and row[k] == v for row in rows)}
    return shared, [{k: v for k, v in row.items() if k not in shared} for row in rows]


def quoted(table: str, beginning: str) -> str:
    """The paragraphs of table.md that begin so, through the end of their table, with headings."""
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
    """The parts of a run whose notes say that the method failed."""
    notes = {}
    for path in sorted((run / "parts").glob("*.json")):
        part = json.loads(path.read_text())["result"]
        notes[path.stem] = part.get("notes", {}) if isinstance(part, dict) else {}
    return [name for name, note in notes.items() if note.get("failed")]


def compressed(path: Path) -> bytes:
    """A figure as PNG of 256 colours: a third of its size without a visible difference."""
    buffer = io.BytesIO()
    Image.open(path).convert("RGB").quantize(256, dither=0).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _rounded(value):
    return round(value, DIGITS) if isinstance(value, float) else value


def _modified(path: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(path.stat().st_mtime))


def _commit() -> str:
    """The commit that is checked out, and whether code differs from it."""
    try:
        changed = _git("status", "--porcelain", "--", ".", ":!docs", ":!README.md", ":!RESULTS.md")
        return _git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):  # no git, or an exported tree
        return "no commit"


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    flags.mark_flags_as_required(["run", "name", "command", "cores"])
    cli.run(main)
