r"""Gives every value of a config an absurd one, one at a time, and sees how the run ends.

  python -m tests.faults.values --config=configs/lpl/nli.py --folder=runs/values

Which values: tests/faults/absurd.py. Each is tried on the config's quick form, in a process of its
own that has some seconds. It should end in one sentence, or go on; a traceback is a fault. One line
each in FOLDER/values.jsonl, where the script goes on when stopped.
"""

import contextlib
import importlib
import os
import resource
import runpy
import signal
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from absl import flags
from tqdm import tqdm

from common import cli, report
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from tests.faults.absurd import cases
from tests.faults.lives import lines, tell

CONFIG = flags.DEFINE_multi_string("config", None, "Config files.")
FOLDER = flags.DEFINE_string("folder", None, "Where the lines go.")
SECONDS = flags.DEFINE_integer("seconds", 10, "Of processor time, that a run has.", lower_bound=1)
flags.mark_flags_as_required(["config", "folder"])
RECORD = "values.jsonl"
ENDINGS = {"said": "one sentence", "ran": "ran", "went on": "went on", "FAULT": "traceback"}


def ending(path: str, name: str, value, folder: str) -> str:
    """How the quick run of a config with one wrong value ends; called in a process of its own."""
    config = runpy.run_path(path)["get_config"]().lock()  # as flags have it
    package = importlib.import_module(f"{Path(path).parent.name}.experiments")
    try:
        config.update_from_flattened_dict({name: value, "quick": True})
        config = cli.settle(config, {name: value})
        work = Workdir(folder, config.to_dict())
        cli.choose(package.EXPERIMENTS, config.experiment)(config, work, cache_dir())
    except UserError as error:
        return f"said: {error}"
    except Exception as error:
        what = traceback.format_exception_only(error)[-1].strip()
        ours = [f for f in traceback.extract_tb(error.__traceback__) if os.getcwd() in f.filename]
        where = f"{os.path.relpath(ours[-1].filename)}:{ours[-1].lineno}" if ours else ""
        return f"FAULT: {what} ({where})"
    return "ran"


def attempt(path: str, name: str, value) -> str:
    """`ending` in a child that may take so many seconds of processor time."""
    read, write = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                signal.signal(signal.SIGXCPU, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS.value, SECONDS.value))
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(1, 2)
                os.write(write, ending(path, name, value, folder).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            said = pipe.read().decode()
        os.waitpid(child, 0)
    return said or "went on"


def main(argv: list[str]) -> None:
    """Tries all, and counts."""
    del argv
    folder = Path(FOLDER.value)
    folder.mkdir(parents=True, exist_ok=True)
    found = lines(folder, RECORD)
    tried = {(line["config"], line["name"], line["value"]) for line in found}
    for path in CONFIG.value:
        importlib.import_module(f"{Path(path).parent.name}.experiments")  # once, for all children
        for name, value in tqdm(cases(runpy.run_path(path)["get_config"]()), desc=path):
            if (path, name, repr(value)) in tried:
                continue
            line = {"config": path, "name": name, "value": repr(value)}
            line["ending"] = attempt(path, name, value)
            found.append(line)
            tell(folder, line, RECORD)
    ends = {path: Counter() for path in dict.fromkeys(line["config"] for line in found)}
    for line in found:
        ends[line["config"]][line["ending"].split(":")[0]] += 1
        if line["ending"].startswith("FAULT"):
            print(line["config"], line["name"], line["value"], line["ending"])
    rows = [
        [path, *map(str, (count.total(), *map(count.__getitem__, ENDINGS)))]
        for path, count in ends.items()
    ]
    print(report.markdown(["config", "values", *ENDINGS.values()], rows))


if __name__ == "__main__":
    cli.run(main)
