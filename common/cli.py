"""What the command lines of all packages share: one sentence for a user's mistake."""

import errno
import functools
import logging as py_logging
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import app, flags, logging
from ml_collections import ConfigDict

from common import usage
from common.errors import UserError

# What a full or locked disk says, anywhere in a run; files that are read say more themselves.
UNWRITABLE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EAGAIN,
)
# Without one of these there is nothing to run; other tuples may be empty, figure_words say.
NEEDED = ("methods", "optimise", "heads", "sources", "sizes", "recipes", "geometries", "datasets")
NEEDED += ("pairs", "tasks", "random_seeds", "sweep_values")
CHATTY = re.compile(r"[/\\](orbax|tensorflow_datasets|jax|flax|etils|array_record)[/\\]")


def run(main: Callable[[list[str]], None]) -> None:
    """As `absl.app.run`, but a user's mistake ends with one sentence and exit code 2."""

    def guarded(argv: list[str]) -> None:
        logging.set_verbosity(logging.INFO)
        logging.use_absl_handler()
        # Checkpointing and data libraries tell each of their steps at the same level as we do.
        logging.get_absl_handler().addFilter(
            lambda record: record.levelno > py_logging.INFO or not CHATTY.search(record.pathname)
        )
        try:
            main(argv)
        except UserError as error:
            _leave(str(error))
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            place = f" {error.filename}" if error.filename else ""
            _leave(
                f"Cannot write{place} ({error.strerror}): make room, or choose a folder that can "
                "be written; what is finished is kept, the same command goes on from there."
            )
        except KeyboardInterrupt:
            _leave("Interrupted: run the same command again to go on from here.")

    app.run(guarded, flags_parser=_parse)


def settle(config: ConfigDict, given: dict[str, Any] | None = None) -> ConfigDict:
    """The config as it is meant: `quick` applied, `--config.names=a,b` a tuple of two names.

    Args:
      config: as the command line left it. Its value `signed`, where there is one, names those that
        may be below zero; it is taken out.
      given: values set there, by dotted name: they hold in a quick run, too.

    Raises:
      UserError: nothing to run, or a number that is not finite or has the wrong sign.
    """
    if config.quick:
        config.update(config.when_quick)
        config.update_from_flattened_dict(given or {})
    for name in NEEDED:
        if config.get(name) == ():
            raise UserError(f"{name} is empty: give one value at least.")
    for name, value in config.items():
        if isinstance(value, tuple) and any(isinstance(item, str) for item in value):
            config[name] = tuple(part for item in value for part in item.split(","))
    _see_to_numbers(config, config.get("signed", ()))
    if "signed" in config:
        with config.unlocked():
            del config.signed
    return config


def require(config: ConfigDict, holds: Callable[[Any], bool], what: str, *names: str) -> None:
    """Says at the start which value can't be meant.

    Args:
      config: of the experiment, or a part of it.
      holds: whether a value may be; of a tuple, which may not be empty, each of its values.
      what: the values that may be, as in "give a positive number".
      names: dotted, of the values.

    Raises:
      UserError: a value that may not be.
    """
    for name in names:
        value = functools.reduce(getattr, name.split("."), config)
        if value == () or not all(map(holds, value if isinstance(value, tuple) else (value,))):
            raise UserError(f"{name} is {value}: give {what}.")


def positive(config: ConfigDict, *names: str) -> None:
    """`require` of numbers above zero."""
    require(config, lambda value: value > 0, "a positive number", *names)


def share(config: ConfigDict, *names: str) -> None:
    """`require` of numbers from 0 to 1."""
    require(config, lambda value: 0 <= value <= 1, "a share from 0 to 1", *names)


def at_least(config: ConfigDict, least: int, *names: str) -> None:
    """`require` of numbers from `least` up."""
    require(config, lambda value: value >= least, f"{least} or more", *names)


def multiple(config: ConfigDict, unit: int, *names: str) -> None:
    """`require` of `unit` times 1, 2, 3 and so on."""
    require(config, lambda value: value > 0 and value % unit == 0, f"a multiple of {unit}", *names)


def two(config: ConfigDict, name: str) -> None:
    """Says at the start which tuple is no pair of numbers.

    Raises:
      UserError: another number of them.
    """
    values = functools.reduce(getattr, name.split("."), config)
    if len(values) != 2:
        raise UserError(f"{name} is {values}: give two numbers.")


def choose(known: dict[str, Any], name: str, what: str = "experiment") -> Any:
    """`known[name]`, or the one sentence that lists the names.

    Raises:
      UserError: no such name.
    """
    if name not in known:
        raise UserError(f"There is no {what} '{name}': choose one of {', '.join(known)}.")
    return known[name]


def _see_to_numbers(config: ConfigDict, signed: tuple[str, ...], prefix="", below=False) -> None:
    for name, value in config.items():
        may_be_below = below or name in signed
        if isinstance(value, ConfigDict):
            _see_to_numbers(value, signed, f"{prefix}{name}.", may_be_below)
            continue
        for item in value if isinstance(value, tuple) else (value,):
            if not isinstance(item, int | float):
                continue
            if not math.isfinite(item):
                raise UserError(f"{prefix}{name} is {value}: give a number.")
            if item < 0 and not may_be_below:
                raise UserError(f"{prefix}{name} is {value}: give a number from 0 up.")


def _parse(argv: list[str]) -> list[str]:
    """Parses the flags; config files and overrides raise many kinds of error."""
    config = None
    for argument in argv[1:]:
        name, _, value = argument.partition("=")
        if name.lstrip("-") == "config" and value:
            config = value
            if not Path(value.split(":")[0]).exists():
                known = "give --config=configs/PACKAGE/EXPERIMENT.py"
                _leave(f"There is no config file {value}: {known}.")
    if {"--help", "-help", "-h"} & set(argv[1:]):
        own = flags.FLAGS.get_key_flags_for_module(argv[0])
        package = Path(argv[0]).resolve().parent.name
        print(usage.page(sys.modules["__main__"].__doc__, own, package, config))
        sys.exit(0)
    try:
        rest = flags.FLAGS(argv)
    except (AttributeError, KeyError) as error:  # how ml_collections says: no such key
        names = re.findall(r"\w+", str(error.args[0]).replace("\\n", " "))
        hint = f": did you mean '{names[names.index('mean') + 1]}'?" if "mean" in names else "."
        _leave(f"The config has no value '{names[0]}'{hint}")
    except RecursionError:  # absl seeks a flag of a similar name
        _leave("A flag is too long for any that there is; see --help.")
    except (flags.Error, TypeError, ValueError, SyntaxError) as error:
        _leave(f"{' '.join(str(error).split()).rstrip('.')}; see --help.")
    if len(rest) > 1:
        _leave(f"'{rest[1]}' is not a flag: values are given as --config.name=value.")
    return rest


def _leave(sentence: str) -> None:
    print(" ".join(str(UserError(sentence)).split()), file=sys.stderr)
    sys.exit(2)
