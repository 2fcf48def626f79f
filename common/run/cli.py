"""How every command runs: its flags are parsed, and an error of the user is one sentence."""

import atexit
import contextlib
import errno
import gc
import io
import logging as py_logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from absl import app, flags, logging

from common.errors import UserError, resolved

if TYPE_CHECKING:
    from common.data.readers.vector_files import Form

# Errors of a full or write-protected disk; readers of files raise a UserError instead.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
# Libraries that log each of their steps at the level INFO, at which runs log their progress.
VERBOSE = re.compile(r"[/\\](orbax|tensorflow_datasets|jax|flax|etils|array_record|asyncio)[/\\]")


def define_form_flags() -> None:
    """Defines the flags of which `form` is made: what the suffix of a file leaves open."""
    flags.DEFINE_string(
        "id_column", None, "Of parquet and Arrow, the column whose values identify the rows."
    )
    flags.DEFINE_string("vector_column", None, "Of parquet and Arrow, the column of the vectors.")
    define_errors_flag()
    about = "What becomes of vectors that are zero or not finite."
    flags.DEFINE_enum("invalid", "refuse", ("refuse", "drop"), about)
    show_in_help("id_column", "vector_column", "invalid")


def define_errors_flag() -> None:
    """Defines the flag `--errors` of commands that read text, see `line_files.lines_of`."""
    flags.DEFINE_enum(
        "errors",
        "strict",
        ("strict", "replace", "backslashreplace"),
        "What becomes of bytes of words and texts that are not UTF-8: an error that names the "
        "line, a sign for them, or their codes (which keeps different words different).",
    )
    show_in_help("errors")


def show_in_help(*names: str) -> None:
    """Shows flags that are defined here by the --help of the command, not only by --helpfull."""
    for name in names:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])


def given(name: str, command: str) -> str:
    """The value of a flag of a command; UserError: it is not given, or empty."""
    if not (value := flags.FLAGS[name].value):
        raise UserError(f"There is no --{name}: give it, or see `{command} --help`.")
    return value


def form() -> "Form":
    """What these flags say about the files of vectors."""
    from common.data.readers.vector_files import Form

    values: dict[str, Any] = {name: flags.FLAGS[name].value for name in Form._fields}
    return Form(**values)


def run(
    main: Callable[[list[str]], None], *, positional: bool = False, by_jax: bool = True
) -> None:
    """Calls `absl.app.run`; an error that the user can correct is one sentence and exit code 2.

    Paths in the arguments are resolved here, for every flag, before any is parsed. Arguments
    that are no flags are an error unless `positional`; JAX is imported after the flags, `by_jax`.
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
            with _by_jax() if by_jax else contextlib.nullcontext():
                main(argv)
        except UserError as error:
            leave(str(error))
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                leave(f"'{error.filename}' is too long for a path: give one of a file or folder.")
            if error.errno not in UNWRITABLE:
                raise
            place = f" {error.filename}" if error.filename else ""
            leave(
                f"Cannot read or write{place} ({error.strerror}): make room or choose a writable "
                "folder, then run the same command again; finished parts are kept."
            )
        except KeyboardInterrupt:
            leave("Interrupted: run the same command again to resume.")

    # At the default of 700 new objects a tenth of a short run is spent looking for unused cycles,
    # and at its end a tenth of a second.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    try:
        sys.argv[1:] = map(resolved, sys.argv[1:])
    except UserError as error:
        leave(str(error))
    app.run(guarded, flags_parser=partial(_parse, positional=positional))


@contextlib.contextmanager
def _by_jax() -> Iterator[None]:
    from common.parallel import one_blas_thread
    from common.run import compilations

    compilations.keep_programs()
    compilations.compile_for_gpu_at_once()
    if not ("distributed" in flags.FLAGS and flags.FLAGS.distributed):  # joined before
        require_device()
    with one_blas_thread():
        yield


def require_device() -> None:
    """Starts JAX; UserError: JAX_PLATFORMS names a missing device (JAX has many errors of it)."""
    from common.parallel import devices

    try:
        devices()
    except Exception as error:
        platforms = os.environ.get("JAX_PLATFORMS", "")
        reason = str(error).partition(" (")[0].rstrip(".") or "it has no such device or plugin"
        raise UserError(
            f"JAX finds no device for JAX_PLATFORMS='{platforms}' ({reason}): "
            "install its plugin, or unset the variable."
        ) from error


def _worth_showing(record: py_logging.LogRecord) -> bool:
    """Drops steps of verbose libraries, and tracebacks that their threads log before raising."""
    steps = record.levelno <= py_logging.INFO or record.exc_info
    return not (steps and VERBOSE.search(record.pathname))


def _show_unraisable(unraisable: Any) -> None:
    """As Python does, but for the threads of a checkpoint that end after another has failed."""
    if str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)


def _parse(argv: list[str], positional: bool) -> list[str]:
    """Parses the flags; an error, a missing flag for instance, becomes one sentence."""
    try:
        rest = flags.FLAGS(argv)
    except (flags.Error, TypeError, ValueError, SyntaxError) as error:
        leave(f"{' '.join(str(error).split()).rstrip('.')}; see --help.")
    if len(rest) > 1 and not positional:
        given = "config.name" if "config" in flags.FLAGS else "name"
        leave(f"'{rest[1]}' is not a flag: values are given as --{given}=value, see --help.")
    return rest


def leave(sentence: str) -> NoReturn:
    """Ends the process: one sentence to the error stream, and exit code 2."""
    print(" ".join(str(UserError(sentence)).split()), file=sys.stderr)
    sys.exit(2)
