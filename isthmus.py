"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

The front door of the library, beside the command `isthmus`:

  discover(source, target, pairs)   the rows of two arrays that correspond, and a map between them
  fit(method, source, target)       a map fitted to pairs that are known, with its normalisation
  load(path)                        a map that was saved
  encode(texts, model)              texts as vectors
  top_k(queries, keys, k)           the nearest rows, without an array of all pairs

Each is imported when it is first used, so that `import isthmus` and `isthmus --help` start at once.
A command runs its module as `python -m` does.
"""

import importlib
import importlib.metadata
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FRONT_DOOR = {
    "discover": "anchor_opt.align",
    "fit": "common.alignment",
    "load": "common.alignment",
    "top_k": "common.retrieval",
}

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


def __getattr__(name: str) -> Any:
    """The functions of the front door, and `__version__`."""
    if name == "__version__":
        return importlib.metadata.version("isthmus")
    if name not in FRONT_DOOR:
        raise AttributeError(f"module 'isthmus' has no attribute '{name}'")
    return getattr(importlib.import_module(FRONT_DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *FRONT_DOOR, "__version__"])


def encode(texts: Sequence[str], model: str = "minilm", *, max_pieces: int = 256) -> Any:
    """Unit vectors [n, d] of texts, float32.

    They are kept in the cache folder, so that the same texts are not encoded twice, and a call that
    was interrupted goes on where it was stopped.

    Args:
      texts: n texts.
      model: `minilm` or `mpnet`, which are downloaded, or the path of a folder with a BERT or an
        MPNet in Hugging Face's format.
      max_pieces: number of word pieces, special ones included, after which a text is cut.

    Raises:
      UserError: no such encoder, a folder that cannot be read, or a failed download.
    """
    from common.data.packages import cache_dir
    from common.encoders import texts as text_encoders

    return text_encoders.encode(model, list(texts), cache_dir(), max_pieces=max_pieces)


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
