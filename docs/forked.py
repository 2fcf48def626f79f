"""Short runs without their imports: copies of a process that has imported what runs import.

Importing JAX, SciPy, orbax, matplotlib and the rest takes a core 4 seconds, and a quick run 15.
"""

import contextlib
import functools
import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Imported by experiments where they are used.
LATER = ("common.ot.dense", "common.run.cli", "pandas", "scipy.stats", "sklearn.decomposition")


class Server:
    """A process that imports a paper's experiments once, and runs each command in a copy of itself.

    It stays on the cores of the thread that starts it, and ends with the `with` statement.
    """

    def __init__(self, environment: Mapping[str, str]):
        """Starts the process."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: Sequence[str], log: Path) -> int:
        """Runs a command, and returns its exit code.

        Args:
          words: what follows `python`: -m and a module, or a script, and arguments.
          log: file that receives the standard output and errors.
        """
        assert self._process.stdin and self._process.stdout
        print(json.dumps([str(log), *words]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its input ends it


def main() -> None:
    """Runs each command of the standard input, and prints its exit code."""
    for line in sys.stdin:
        log, *words = json.loads(line)
        if words[0] == "-m":
            with contextlib.suppress(Exception):  # a run whose imports fail says so in its log
                _import_experiments(words[1].partition(".")[0])
        copy = os.fork()  # JAX starts its threads when a run first uses a device
        if not copy:
            _run(words, log)
            return
        print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)


@functools.cache
def _import_experiments(paper: str) -> None:
    package = importlib.import_module(f"{paper}.experiments")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    for name in LATER:
        importlib.import_module(name)


def _run(words: Sequence[str], log: str) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream in (1, 2):
        os.dup2(file, stream)
    if words[0] == "-m":
        sys.argv[1:] = words[2:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(words)
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
