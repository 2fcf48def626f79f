"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

The front door of the library, beside the command `isthmus`:

  discover(source, target, pairs)   the rows of two arrays that correspond, and a map between them
  migrate(old, new, pairs)          what to do with a store whose embedding model changes
  fit(method, source, target)       a map fitted to pairs that are known, with its normalisation
  load(path)                        a map that was saved
  encode(texts, model)              texts as vectors
  top_k(queries, keys, k)           the nearest rows, without an array of all pairs

Each is imported when it is first used, so that `import isthmus` and `isthmus --help` start at once.
A command runs its module as `python -m` does.
"""

import importlib
import importlib.metadata
import importlib.util
import keyword
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

FRONT_DOOR = {
    "discover": "anchor_opt.align",
    "migrate": "anchor_opt.migrate",
    "fit": "common.alignment",
    "load": "common.alignment",
    "top_k": "common.retrieval",
}

ROOT = Path(__file__).parent  # a checkout, or the folder of all installed packages
PAPERS = sorted(
    path.name for path in ROOT.glob("configs/*") if (ROOT / path.name / "main.py").exists()
)
MODULES = {
    "align": "anchor_opt.align",
    "apply": "anchor_opt.apply",
    "migrate": "anchor_opt.migrate",
    "encode": "common.encoders.encode",
}
HELP = f"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

  isthmus align --source=A --target=B --pairs=PAIRS --out=FOLDER    finds the items that correspond
  isthmus apply FILES --map=FOLDER/A/map.npz --out=FILE             maps new vectors
  isthmus migrate --old=A --new=B --pairs=PAIRS --out=FOLDER        what to do when a model changes
  isthmus encode --input=TEXTS --output=FILE                        turns texts into vectors
  isthmus run PAPER --config=NAME --workdir=FOLDER                  runs an experiment of a paper
  isthmus new PAPER                                                 makes the files of a new paper

Papers: {", ".join(PAPERS)}.
The flags are listed by `isthmus COMMAND --help`, or `isthmus run PAPER --help`."""
HELPS = {  # of the commands that are not modules of their own
    "run": f"""Runs an experiment of a paper: {", ".join(PAPERS)}.

  isthmus run PAPER --config=NAME --workdir=FOLDER

NAME is a file of configs/PAPER, or the path of another; any of its values is changed by
--config.VALUE=..., and --config.quick makes a run of minutes. FOLDER gets the results; the same
command resumes a run that was stopped. `isthmus run PAPER --help` lists the flags.""",
    "new": """Makes the files of a new paper in a checkout of isthmus, copies of template/.

  isthmus new NAME

NAME is a Python name in lower case.""",
}


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
    from common.errors import local_path

    model = local_path(model)
    return text_encoders.encode(model, list(texts), cache_dir(), max_pieces=max_pieces)


def main() -> None:
    """Runs the command in `sys.argv`; a user's error is one sentence and exit code 2."""
    command, *rest = sys.argv[1:] or ["--help"]
    if command in ("-h", "--help", "help"):
        print(HELP)
        return
    if command == "--version":
        print(importlib.metadata.version("isthmus"))
        return
    if command in HELPS and rest[:1] in (["-h"], ["--help"]):
        print(HELPS[command])
        return
    # Modules beside this one come before those of the working folder, and a paper may have been
    # added after the packages were installed from this folder.
    sys.path.insert(0, str(ROOT))
    if command == "new":
        _new(*rest[:1] or [""])
        return
    if command not in (*MODULES, "run"):
        _refuse(f"There is no command '{command}': choose one of {', '.join(MODULES)}, run, new.")
    if command == "run":
        paper, *rest = rest or [""]
        if paper not in PAPERS:
            _refuse(f"There is no paper '{paper}': give one of {', '.join(PAPERS)} after 'run'.")
        module = f"{paper}.main"
    else:
        module = MODULES[command]
    sys.argv[1:] = rest
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _new(paper: str) -> None:
    """Copies `template/` into the checkout, as a paper of this name."""
    template = ROOT / "template"
    if not (template / "my_paper").exists():
        _refuse("A new paper needs a checkout of isthmus, whose tests and documentation it joins.")
    if not re.fullmatch("[a-z][a-z0-9_]*", paper) or keyword.iskeyword(paper):
        _refuse(f"'{paper}' cannot name a paper: give a Python name in lower case after 'new'.")
    if importlib.util.find_spec(paper):
        _refuse(f"There is a module '{paper}' already: give the paper another name.")
    words = paper.replace("_", " ")
    for source in sorted(path for path in template.rglob("*.*") if path.suffix != ".pyc"):
        path = str(source.relative_to(template)).replace("my_paper", paper)
        text = source.read_text(encoding="utf-8").replace("my_paper", paper)
        text = text.replace("My paper", words.capitalize()).replace("my paper", words)
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path)
    print(f"Run it: isthmus run {paper} --config=main_table --workdir=runs/{paper}")


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
