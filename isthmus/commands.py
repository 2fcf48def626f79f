"""The command `isthmus`, which runs the module of each of its commands as `python -m` does."""

import ast
import importlib.metadata
import importlib.util
import keyword
import re
import runpy
import sys
from pathlib import Path
from typing import NoReturn

INSTALLED = Path(__file__).parents[1]  # a checkout, or the folder of all installed packages
# The checkout in which one stands comes first: its papers are run, and it gets new ones.
ROOT = next(
    (path for path in (Path.cwd(), *Path.cwd().parents) if (path / "template/my_paper").is_dir()),
    INSTALLED,
)
PAPERS = sorted(
    path.name for path in ROOT.glob("configs/*") if (ROOT / path.name / "main.py").exists()
)
MODULES = {
    "align": "isthmus.align",
    "apply": "isthmus.apply",
    "migrate": "isthmus.store",
    "check": "isthmus.checks",
    "encode": "isthmus.texts",
}
HELP = f"""Two embedding spaces and a few known pairs of items: how do the spaces correspond?

  isthmus align --source=A --target=B --pairs=PAIRS --out=FOLDER    finds the items that correspond
  isthmus apply FILES --map=FOLDER/A/map.npz --out=FILE             maps new vectors
  isthmus migrate --old=A --new=B --pairs=PAIRS --out=FOLDER        what to do when a model changes
  isthmus check --stored=A --again=B                                whether a store is still right
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
command resumes a run that was stopped. `isthmus run PAPER --help` lists configs and flags.""",
    "new": """Makes the files of a new paper in a checkout of isthmus, copies of template/.

  isthmus new NAME

NAME is a Python name in lower case.""",
}


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
    # Modules beside this package come before those of the working folder, and a paper may have been
    # added after the packages were installed from this folder.
    sys.path.insert(0, str(ROOT if command in HELPS else INSTALLED))
    if command == "new":
        _new(*rest[:1] or [""])
        return
    if command not in (*MODULES, "run"):
        _refuse(f"There is no command '{command}': choose one of {', '.join(MODULES)}, run, new.")
    if command == "run":
        paper, *rest = rest or [""]
        if paper not in PAPERS:
            _refuse(f"There is no paper '{paper}': give one of {', '.join(PAPERS)} after 'run'.")
        if {"-h", "--help"} & {*rest}:
            print("\n".join(configs(paper)), end="\n\n")
        module = f"{paper}.main"
    else:
        module = MODULES[command]
    sys.argv[1:] = rest
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def configs(paper: str) -> list[str]:
    """A line for each config of a paper: its name, and the first line of its docstring."""
    texts = {path.stem: path.read_text() for path in (ROOT / "configs" / paper).glob("*.py")}
    first = {
        name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for name, text in sorted(texts.items())
        if "def get_config" in text
    }
    width = max(map(len, first), default=0)
    return [f"  --config={name:{width}}  {line}" for name, line in first.items()]


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
    print(f"In {ROOT}:", file=sys.stderr)
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
