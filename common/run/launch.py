"""The command line of every paper: its flags, its config, and the call of the experiment."""

import os
import pkgutil
import re
import shlex
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from common.data.packages import cache_dir
from common.errors import UserError, check_choice, nearest
from common.files import write_atomically
from common.hosts import unless_refused
from common.run import cli, compilations, settings
from common.run.workdir import COMMAND, Workdir

# (config, run folder, data cache) -> the table, which it has printed.
Experiment = Callable[[ConfigDict, Workdir, Path], str]


def launch(experiments: str) -> None:
    """Runs the experiment that `config.experiment` names, which prints its table.

    It defines flags, so it can be called once, by a `main.py`, whose docstring `--help` prints. Of
    the modules in the package `experiments`, each with a function `run` of type `Experiment`, only
    the one that is run is imported: its libraries take seconds that `--help` does not need.
    """
    paper = experiments.partition(".")[0]
    root = Path(import_module(experiments).__path__[0]).parents[1]
    config_flag, in_file = define_config_flag(), {}
    parse = flags.FLAGS["config"].parser.parse

    def read(argument: str) -> ConfigDict:
        path, colon, rest = argument.partition(":")  # `rest` is the argument of get_config
        config: Any = parse(f"{_config_file(root, paper, path)}{colon}{rest}")
        in_file.update(settings.flat(config.to_dict()))
        _check_names(in_file)
        return config

    flags.FLAGS["config"].parser.parse = read
    flags.mark_flag_as_required("config")
    flags.DEFINE_string("workdir", None, "Folder of the run, made if it is missing.", required=True)
    distributed = flags.DEFINE_bool(
        "distributed", False, "Join the other hosts (jax.distributed) before using a device."
    )
    cli.show_in_help("config", "workdir", "distributed")

    def main(_: list[str]) -> None:
        folder = cli.given("workdir", f"isthmus run {paper}")
        if distributed.value:
            jax.distributed.initialize()
            cli.require_device()
            if host := jax.process_index():
                folder += f"-host{host}"
        for word in sys.argv[1:]:
            path = Path(word.partition("=")[2])
            named = word.lstrip("-").startswith("config.") and os.path.exists(path)
            if named and (path.is_fifo() or path.is_char_device()):
                raise UserError(
                    f"{path} can be read once only, and a run reads its files again when it is "
                    "resumed: write them to a file."
                )
        overrides = config_flags.get_override_values(flags.FLAGS["config"])
        config = settings.apply_quick(config_flag.value, overrides)
        settings.check_counts(config, in_file)
        run_experiment = experiment(experiments, config.experiment)
        values = config.to_dict()
        if jax.process_count() > 1:  # so that no workdir is taken for that of another host
            values["host"] = f"{jax.process_index()} of {jax.process_count()}"
        work = unless_refused(lambda: Workdir(folder, values))
        write_atomically(work.path / COMMAND, f"{_command(root, paper)}\n".encode())
        count = compilations.counted()
        run_experiment(config, work, cache_dir())
        logging.info("%s", count)

    cli.run(main)


def define_config_flag(**options: Any) -> flags.FlagHolder:
    """Defines the flag `--config`; the options are those of `DEFINE_config_file`."""
    register = config_flags.register_flag_parser_for_type  # pyright: ignore[reportAttributeAccessIssue]  # not in its stubs
    register(tuple, settings.TupleParser())
    about = "Every value of the experiment: a config's name, or a file."
    return config_flags.DEFINE_config_file("config", None, about, lock_config=True, **options)


def experiment(package: str, name: str) -> Experiment:
    """The function `run` of a module of a package; UserError: there is no such module."""
    names = sorted(module.name for module in pkgutil.iter_modules(import_module(package).__path__))
    check_choice("experiment", name, names)
    return import_module(f"{package}.{name}").run


def _config_file(root: Path, paper: str, config: str) -> Path:
    """The file of a config, given by its name, or by a path from `root` or here."""
    folder = root / "configs" / paper
    for file in (Path(config), root / config, folder / f"{config}.py"):
        if file.is_file():
            return file
    files = [file for file in sorted(folder.glob("*.py")) if "def get_config" in file.read_text()]
    names = ", ".join(file.stem for file in files)
    cli.leave(f"There is no config '{config}': give the path of a file, or one of {names}.")


def _check_names(names: Collection[str]) -> None:
    """Ends the process if the command line sets a value that the config does not have."""
    for word in sys.argv[1:]:
        given = re.match(r"--?(?:no)?config\.([\w.]+)", word)
        if given and given[1] not in names:
            meant = nearest(given[1], names)
            hint = f": did you mean '{meant}'?" if meant else ": its file has all names."
            cli.leave(f"The config has no value '{given[1]}'{hint}")


def _command(root: Path, paper: str) -> str:
    """The command of this process without --workdir, each flag in one word."""
    kept, words = [], iter(sys.argv[1:])
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and name in flags.FLAGS and not flags.FLAGS[name].boolean:
            value = next(words, "")  # which may begin with a minus
        if name == "config":
            path, colon, rest = value.partition(":")
            file = _config_file(root, paper, path)
            file = file.relative_to(root) if file.is_relative_to(root) else file
            kept.insert(0, f"--config={file}{colon}{rest}")
        elif name != "workdir":
            kept.append(f"--{name}={value}" if value or equals else f"--{name}")
    return " ".join(map(_quoted, ["python", "-m", f"{paper}.main", *kept]))


def _quoted(word: str) -> str:
    """A word for the shell: in double quotes if it has single ones, which shlex takes apart."""
    return f'"{word}"' if "'" in word and not re.search(r'["$`\\!]', word) else shlex.quote(word)
