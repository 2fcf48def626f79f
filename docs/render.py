r"""Writes RESULTS.md, and the blocks of both README.md, from the runs that are kept.

  python -m docs.render          writes both
  python -m docs.render --check  ends with 1 if either is not what it would write

A block stands between `<!-- results:NAME -->` and `<!-- end -->`. NAME is that of a kept run, or a
function of docs/blocks.py. RESULTS.md is docs/notes.md with its blocks filled. A block whose run is
not kept yet stays as it is: numbers measured before, until the run is made again.
"""

import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from ml_collections import ConfigDict

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
BLOCK = re.compile(r"(<!-- results:(\S+) -->\n).*?(<!-- end -->)", flags=re.S)


class Kept(NamedTuple):
    """A kept run.

    Attributes:
      name: PACKAGE/NAME.
      config: its values.
      rows: of its results.json.
      failed: its parts that failed by their own objective.
      made: how: command, finished, commit, cores, seconds.
    """

    name: str
    config: ConfigDict
    rows: list[dict]
    failed: list[str]
    made: dict


def read(name: str) -> Kept | None:
    """A kept run by its name, or None where there is none."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    rows = [found["shared"] | row for row in found.pop("rows")]
    return Kept(name, ConfigDict(found.pop("config")), rows, found.pop("failed"), found)


def outdated(kept: Kept) -> list[str]:
    """The values that the kept command sets otherwise by today's config file, quick runs' apart."""
    given = dict(word.split("=", 1) for word in shlex.split(kept.made["command"])[3:])
    now = _flat(runpy.run_path(str(ROOT / given.pop("--config")))["get_config"]().to_dict())
    now.pop("signed", None)  # no run has it
    then = _flat(kept.config.to_dict())
    set_by_flag = {key.removeprefix("--config."): text for key, text in given.items()}
    same = {key for key, text in set_by_flag.items() if _text(then.get(key)) == text}
    same |= {key for key in now.keys() - set_by_flag.keys() if now[key] == then.get(key, now)}
    return sorted((now.keys() | then.keys()) - same)


def fill(text: str, once: bool = False) -> str:
    """The text with its blocks filled.

    Args:
      text: Markdown.
      once: a legend, that is a long paragraph, which an earlier block has is left out.
    """
    from docs import blocks  # imports every paper package's tables

    seen = set()

    def block(match: re.Match) -> str:
        content = blocks.content(match[2])
        if content is None:
            return match[0]
        if once:
            content = "\n\n".join(_new(content.strip().split("\n\n"), seen))
        return f"{match[1]}\n{content.strip()}\n\n{match[3]}"

    return BLOCK.sub(block, text)


def pages() -> dict[Path, str]:
    """Path -> what it should hold."""
    notes = (ROOT / "docs/notes.md").read_text()
    filled = {ROOT / "RESULTS.md": fill(notes, once=True)}
    for path in (ROOT / "README.md", ROOT / "benchmarks/README.md"):
        filled[path] = fill(path.read_text())
    return filled


def _new(paragraphs: list[str], seen: set[str]) -> list[str]:
    """Without the legends seen before; they are seen now."""
    kept = [p for p in paragraphs if p not in seen]
    seen |= {p for p in paragraphs if len(p) > 300 and not p.startswith("|")}
    return kept


def _flat(values: dict, prefix: str = "") -> dict:
    found = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        elif not prefix.startswith("when_quick."):
            found[prefix + key] = json.loads(json.dumps(value))
    return found


def _text(value) -> str:
    """A value as a flag gives it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def main() -> None:
    """Writes or checks."""
    wrong = [
        path for path, text in pages().items() if not path.exists() or path.read_text() != text
    ]
    if "--check" in sys.argv[1:]:
        for path in wrong:
            print(f"{path.name} is not what the kept runs say: run python -m docs.render.")
        sys.exit(bool(wrong))
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
