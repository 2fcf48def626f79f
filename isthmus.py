"""The command `isthmus`: the command lines of the packages under one name.

A command runs its module as `python -m` does. Modules are given by name and imported when they run,
so that `isthmus --help` starts at once.
"""

import runpy
import sys
from pathlib import Path

PAPERS = sorted(path.parent.name for path in Path(__file__).parent.glob("*/main.py"))
MODULES = {
    "align": "anchor_opt.align",
    "apply": "anchor_opt.align",
    "encode": "common.encoders.encode",
}
HELP = f"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

  isthmus align --source=A --target=B --pairs=PAIRS --out=FOLDER    finds the items that correspond
  isthmus apply NEW --map=FOLDER/A/map.npz --out=FILE               maps new vectors
  isthmus encode --input=TEXTS --output=FILE                        turns texts into vectors
  isthmus run PAPER --config=FILE --workdir=FOLDER                  runs an experiment of a paper

Papers: {", ".join(PAPERS)}.
The flags are listed by `isthmus COMMAND --help`, or `isthmus run PAPER --help`."""


def main() -> None:
    """Runs the command in `sys.argv`; a user's error is one sentence and exit code 2."""
    command, *rest = sys.argv[1:] or ["--help"]
    if command in ("-h", "--help", "help"):
        print(HELP)
        return
    if command not in (*MODULES, "run"):
        _refuse(f"There is no command '{command}': choose one of {', '.join(MODULES)}, run.")
    if command == "run":
        paper, *rest = rest or [""]
        if paper not in PAPERS:
            _refuse(f"There is no paper '{paper}': give one of {', '.join(PAPERS)} after 'run'.")
        module = f"{paper}.main"
    else:
        module = MODULES[command]
    if command == "apply" and rest[:1] != ["--help"]:
        new, *rest = rest or [""]
        if not new or new.startswith("-"):
            _refuse("There are no new vectors: give their file after 'apply', before the flags.")
        rest = [f"--apply={new}", *rest]
    sys.argv[1:] = rest
    # A paper may have been added after the packages were installed from this folder.
    sys.path.insert(0, str(Path(__file__).parent))
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _refuse(sentence: str) -> None:
    print(sentence, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
