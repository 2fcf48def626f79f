"""The command line of every paper: its flags, its config, and the call of the experiment."""

import pkgutil
import re
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from common.data.packages import cache_dir
from common.errors import UserError, check_choice, nearest
from common.files import write_atomically
from common.run import cli, compilations, settings
from common.run.workdir import COMMAND, Workdir

# (config, run folder, data cache) -> the table that is printed.
Experiment = Callable[[ConfigDict, Workdir, Path], str]


def launch(experiments: str) -> None:
    """Runs the experiment that `config.experiment` names, and prints its table.

    It defines the flags `--config`, `--workdir` and `--distributed`, so it can be called once, by a
    `main.py`. `--help` prints the docstring of that module and these flags.

    Args:
      experiments: package of the paper's experiments, each of which is a module with a function
        `run` of type `Experiment`. Only the one that is run is imported, once the flags are parsed,
        because its libraries take seconds that `--help` and the errors of flags do not need.
    """
    paper = experiments.partition(".")[0]
    root = Path(import_module(experiments).__path__[0]).parents[1]
    config_flag = define_config_flag()
    parse = flags.FLAGS["config"].parser.parse

    def read(argument: str) -> ConfigDict:
        config: Any = parse(str(_config_file(root, paper, argument)))
        _check_names(config)
        return config

    flags.FLAGS["config"].parser.parse = read
    flags.mark_flag_as_required("config")
    workdir = flags.DEFINE_string(
        "workdir", None, "Folder of the run, made if it is missing.", required=True
    )
    distributed = flags.DEFINE_bool(
        "distributed", False, "Join the other hosts (jax.distributed) before using a device."
    )
    cli.show_in_help("config", "workdir", "distributed")

    def main(argv: list[str]) -> None:
        del argv
        folder = workdir.value
        if distributed.value:
            jax.distributed.initialize()
            cli.require_device()
            if host := jax.process_index():
                folder += f"-host{host}"
            # Hosts that skipped different parts would wait for each other forever.
            if jax.process_count() > 1 and any(Path(folder).glob("parts/*")):
                raise UserError(
                    f"The workdir {folder} has parts of another run, and a run on several hosts "
                    "cannot be resumed: choose another --workdir."
                )
        for word in sys.argv[1:]:
            path = Path(word.partition("=")[2])
            if word.lstrip("-").startswith("config.") and (path.is_fifo() or path.is_char_device()):
                raise UserError(
                    f"{path} can be read once only, and a run reads its files again when it is "
                    "resumed: write them to a file."
                )
        file = _config_file(root, paper, config_flags.get_config_filename(flags.FLAGS["config"]))
        overrides = config_flags.get_override_values(flags.FLAGS["config"])
        config = settings.apply_quick(config_flag.value, overrides)
        run_experiment = experiment(experiments, config.experiment)
        work = Workdir(folder, config.to_dict())
        write_atomically(work.path / COMMAND, f"{_command(root, paper, file)}\n".encode())
        with compilations.counted() as count:
            table = run_experiment(config, work, cache_dir())
        logging.info("%s", count)
        print(table)

    cli.run(main)


def define_config_flag(**options: Any) -> flags.FlagHolder:
    """Defines the flag `--config`, by which a file and its values are given.

    Args:
      **options: of `config_flags.DEFINE_config_file`.
    """
    register = config_flags.register_flag_parser_for_type  # pyright: ignore[reportAttributeAccessIssue]  # not in its stubs
    register(tuple, settings.TupleParser())
    about = "Every value of the experiment: a config's name, or a file."
    return config_flags.DEFINE_config_file("config", None, about, lock_config=True, **options)


def experiment(package: str, name: str) -> Experiment:
    """The function `run` of the module of a package of experiments.

    Raises:
      UserError: the package has no module of this name.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(import_module(package).__path__))
    check_choice("experiment", name, names)
    return import_module(f"{package}.{name}").run


def _config_file(root: Path, paper: str, config: str) -> Path:
    """The file of a config, which is given by its path or by its name.

    Args:
      root: folder of the paper and of `configs`; a path may begin there or in the working folder.
      paper: the paper's package.
      config: what the flag says.
    """
    folder = root / "configs" / paper
    for file in (Path(config), root / config, folder / f"{config}.py"):
        if file.is_file():
            return file
    files = [file for file in sorted(folder.glob("*.py")) if "def get_config" in file.read_text()]
    names = ", ".join(file.stem for file in files)
    cli.leave(f"There is no config '{config}': give the path of a file, or one of {names}.")


def _check_names(config: ConfigDict) -> None:
    """Ends the process if the command line sets a value that the config does not have."""
    names = settings.flat(config.to_dict())
    for word in sys.argv[1:]:
        given = re.match(r"--?(?:no)?config\.([\w.]+)", word)
        if given and given[1] not in names:
            meant = nearest(given[1], names)
            hint = f": did you mean '{meant}'?" if meant else ": its file has all names."
            cli.leave(f"The config has no value '{given[1]}'{hint}")


def _command(root: Path, paper: str, config: Path) -> str:
    """The command of this process without --workdir, each flag in one word."""
    words: list[str] = []
    for word in sys.argv[1:]:
        if word.startswith("-"):
            words.append(f"--{word.lstrip('-')}")
        else:  # the value of the flag before it
            words[-1] += f"={word}"
    kept = [word for word in words if not word.startswith(("--config=", "--workdir="))]
    file = config.relative_to(root) if config.is_relative_to(root) else config
    return " ".join(map(_quoted, ["python", "-m", f"{paper}.main", f"--config={file}", *kept]))


def _quoted(word: str) -> str:
    """A word for the shell: in double quotes if it has single ones, which shlex takes apart."""
    return f'"{word}"' if "'" in word and not re.search(r'["$`\\!]', word) else shlex.quote(word)
