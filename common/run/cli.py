"""The command line of every paper: flags, one-sentence errors, and the call of the experiment."""

import atexit
import contextlib
import errno
import gc
import io
import logging as py_logging
import os
import pkgutil
import re
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import jax
from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from common.data.packages import cache_dir
from common.data.readers.vector_files import Form
from common.errors import UserError, check_choice, nearest, resolved
from common.files import write_atomically
from common.parallel import devices, one_blas_thread
from common.run import compilations, settings
from common.run.workdir import COMMAND, Workdir

# (config, run folder, data cache) -> the table that is printed.
Experiment = Callable[[ConfigDict, Workdir, Path], str]
# Errors of a full or write-protected disk; readers of files raise a UserError instead.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
PROGRAM_DAYS, PROGRAM_BYTES = 60, 4 << 30  # of compiled programs in the cache folder
# With the variants an H100 was idle for minutes before a first random run (docs/accelerators.md).
GPU_FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
# Libraries that log each of their steps at the level INFO, at which runs log their progress.
VERBOSE = re.compile(r"[/\\](orbax|tensorflow_datasets|jax|flax|etils|array_record|asyncio)[/\\]")


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
    _show_in_help("config", "workdir", "distributed")

    def main(argv: list[str]) -> None:
        del argv
        folder = workdir.value
        if distributed.value:
            jax.distributed.initialize()
            _require_device()
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

    run(main)


def define_config_flag(**options: Any) -> flags.FlagHolder:
    """Defines the flag `--config`, by which a file and its values are given.

    Args:
      **options: of `config_flags.DEFINE_config_file`.
    """
    register = config_flags.register_flag_parser_for_type  # pyright: ignore[reportAttributeAccessIssue]  # not in its stubs
    register(tuple, settings.TupleParser())
    about = "Every value of the experiment: a config's name, or a file."
    return config_flags.DEFINE_config_file("config", None, about, lock_config=True, **options)


def define_form_flags() -> None:
    """Defines the flags of which `form` is made: what the suffix of a file leaves open."""
    flags.DEFINE_string(
        "id_column", None, "Of parquet and Arrow, the column whose values identify the rows."
    )
    flags.DEFINE_string("vector_column", None, "Of parquet and Arrow, the column of the vectors.")
    define_errors_flag()
    _show_in_help("id_column", "vector_column")


def define_errors_flag() -> None:
    """Defines the flag `--errors` of commands that read text, see `line_files.lines_of`."""
    flags.DEFINE_enum(
        "errors",
        "strict",
        ("strict", "replace", "backslashreplace"),
        "What becomes of bytes of words and texts that are not UTF-8: an error that names the "
        "line, a sign for them, or their codes (which keeps different words different).",
    )
    _show_in_help("errors")


def _show_in_help(*names: str) -> None:
    """Shows flags that are defined here by the --help of the command, not only by --helpfull."""
    for name in names:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])


def given(name: str, command: str) -> str:
    """The value of a flag of a command.

    Raises:
      UserError: it is not given, or empty.
    """
    if not (value := flags.FLAGS[name].value):
        raise UserError(f"There is no --{name}: give it, or see `{command} --help`.")
    return value


def form() -> Form:
    """What these flags say about the files of vectors."""
    values = flags.FLAGS
    return Form(values.id_column, values.vector_column, values.errors)


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
    _exit(f"There is no config '{config}': give the path of a file, or one of {names}.")


def _check_names(config: ConfigDict) -> None:
    """Ends the process if the command line sets a value that the config does not have."""
    names = settings.flat(config.to_dict())
    for word in sys.argv[1:]:
        given = re.match(r"--?(?:no)?config\.([\w.]+)", word)
        if given and given[1] not in names:
            meant = nearest(given[1], names)
            hint = f": did you mean '{meant}'?" if meant else ": its file has all names."
            _exit(f"The config has no value '{given[1]}'{hint}")


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


def run(main: Callable[[list[str]], None], *, positional: bool = False) -> None:
    """Calls `absl.app.run`; an error that the user can correct is one sentence and exit code 2.

    Paths in the arguments are resolved here, for every flag, before any is parsed.

    Args:
      main: gets the name of the program and the arguments that are no flags.
      positional: whether there may be any of these.
    """

    def guarded(argv: list[str]) -> None:
        logging.set_verbosity(logging.INFO)
        logging.use_absl_handler()
        logging.get_absl_handler().addFilter(_worth_showing)
        sys.unraisablehook = _show_unraisable
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal without ± shows ?
                stream.reconfigure(errors="replace")
        try:
            _keep_compiled_programs()
            _compile_for_gpu_at_once()
            if not ("distributed" in flags.FLAGS and flags.FLAGS.distributed):  # joined before
                _require_device()
            with one_blas_thread():
                main(argv)
        except UserError as error:
            _exit(str(error))
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            place = f" {error.filename}" if error.filename else ""
            _exit(
                f"Cannot read or write{place} ({error.strerror}): make room or choose a writable "
                "folder, then run the same command again; finished parts are kept."
            )
        except KeyboardInterrupt:
            _exit("Interrupted: run the same command again to resume.")

    # At the default of 700 new objects a tenth of a short run is spent looking for unused cycles,
    # and at its end a tenth of a second.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    try:
        sys.argv[1:] = map(resolved, sys.argv[1:])
    except UserError as error:
        _exit(str(error))
    app.run(guarded, flags_parser=partial(_parse, positional=positional))


def _require_device() -> None:
    """Starts JAX, which fails with many kinds of error where JAX_PLATFORMS names a missing device.

    Raises:
      UserError: there is no device.
    """
    try:
        devices()
    except Exception as error:
        platforms = os.environ.get("JAX_PLATFORMS", "")
        reason = str(error).partition(" (")[0].rstrip(".") or "it has no such device or plugin"
        raise UserError(
            f"JAX finds no device for JAX_PLATFORMS='{platforms}' ({reason}): "
            "install its plugin, or unset the variable."
        ) from error


def _keep_compiled_programs() -> None:
    """Stores compiled programs in the cache folder, so that a second run starts at once.

    The variables of JAX, such as JAX_COMPILATION_CACHE_DIR, come first. JAX names each program by
    its code, its own version and the processor.
    """
    folder = cache_dir() / "programs"
    defaults = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0,  # short programs too
    }
    for name, value in defaults.items():
        if not os.environ.get(name.upper()):
            jax.config.update(name, value)
    with contextlib.suppress(OSError):  # none yet, deleted by another run, or not ours to delete
        _forget_old_programs(folder)


def _compile_for_gpu_at_once() -> None:
    """Lets XLA compile for a GPU without timing variants of every matrix product on it.

    XLA_FLAGS, if it is set, comes first. XLA reads it when JAX starts.
    """
    if find_spec("jax_plugins") and any(find_spec(f"jax_plugins.xla_cuda{n}") for n in (12, 13)):
        os.environ.setdefault("XLA_FLAGS", GPU_FLAGS)


def _forget_old_programs(folder: Path) -> None:
    """Deletes programs unused for PROGRAM_DAYS, and the longest unused beyond PROGRAM_BYTES."""
    stored = [(entry.stat(), entry.path) for entry in os.scandir(folder)]
    used = [(max(file.st_atime, file.st_mtime), file.st_size, path) for file, path in stored]
    total = 0
    for last, size, path in sorted(used, reverse=True):
        total += size
        if total > PROGRAM_BYTES or time.time() - last > PROGRAM_DAYS * 86_400:
            os.unlink(path)


def _worth_showing(record: py_logging.LogRecord) -> bool:
    """Drops the steps of verbose libraries, and tracebacks that their threads log before raising.

    Orbax logs the traceback of a failed write in its thread; the error is raised again where the
    checkpoint is waited for, and is reported there.
    """
    steps = record.levelno <= py_logging.INFO or record.exc_info
    return not (steps and VERBOSE.search(record.pathname))


def _show_unraisable(unraisable: Any) -> None:
    """As Python does, except for arrays of a checkpoint that end after another one has failed.

    The failure is raised, and closes the event loop, to which the threads of the others then report
    in vain, each by a traceback.
    """
    if str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)


def _parse(argv: list[str], positional: bool) -> list[str]:
    """Parses the flags; an error of a value becomes one sentence."""
    try:
        rest = app.parse_flags_with_usage(argv)
    except (TypeError, ValueError, SyntaxError) as error:
        _exit(f"{' '.join(str(error).split()).rstrip('.')}; see --help.")
    if len(rest) > 1 and not positional:
        _exit(f"'{rest[1]}' is not a flag: values are given as --config.name=value.")
    return rest


def _exit(sentence: str) -> NoReturn:
    print(" ".join(str(UserError(sentence)).split()), file=sys.stderr)
    sys.exit(2)
