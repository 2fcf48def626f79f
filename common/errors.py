"""The exception for mistakes that the user can correct, and paths and files that lead to it."""

import contextlib
import difflib
import math
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

MAX_LENGTH = 1000  # characters of a sentence, which may quote a file
# A path at the beginning of a word of a command line, of a flag's value or of a part of it.
WRITTEN_PATH = re.compile(r"(?<![^=:,])(\w[\w+.-]*://[^,]*|~[\w.-]*(?=[/:,]|$))")


class UserError(ValueError):
    """Invalid input, explained in one sentence: what is wrong, where, and how to correct it.

    The command lines print the sentence and exit with code 2. Any other exception is a bug in this
    package and keeps its traceback. What the sentence quotes may be of any content and length:
    control characters, line ends among them, become spaces, and a very long sentence is cut in its
    middle.
    """

    def __init__(self, sentence: str):
        sentence = re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", sentence)
        if len(sentence) > MAX_LENGTH:
            sentence = f"{sentence[: MAX_LENGTH // 2]} ... {sentence[-MAX_LENGTH // 2 :]}"
        super().__init__(sentence)


def check_choice(what: str, name: object, choices: Collection[str]) -> None:
    """Raises a UserError if the name of one of several things, `what` in the singular, is none."""
    if name not in choices:
        raise UserError(f"There is no {what} '{name}': choose one of {', '.join(choices)}.")


def named(items: Sequence[object]) -> str:
    """The first five of several things, and how many there are if these are more."""
    shown = ", ".join(map(str, items[:5]))
    return f"{shown}, ... ({len(items):,} in all)" if len(items) > 5 else shown


def nearest(name: str, names: Collection[str]) -> str | None:
    """The name that is most likely meant by a misspelt one, or by its last part; None: none is."""
    written = {full.rpartition(".")[2]: full for full in names} | {full: full for full in names}
    close = difflib.get_close_matches(name, written, 1) or difflib.get_close_matches(
        name.rpartition(".")[2], written, 1
    )
    return written[close[0]] if close else None


def check_count(
    name: str, count: float, most: int | None = None, of: str = "", *, least: int = 1
) -> None:
    """Raises a UserError if `count`, which the user calls `name`, is no whole number in the limits.

    `most` is how many there are of what `of` says in the plural; None: no limit.
    """
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool):
        raise UserError(f"{name} is {count!r}: choose a whole number.")
    if count < least or (most is not None and count > most):
        if most is None:
            raise UserError(f"{name} is {count:,}: choose at least {least:,}.")
        advice = f"choose at least {least:,}, at most {most:,}"
        advice = f"give at least {least:,} {of}" if most < least else advice
        raise UserError(f"{name} is {count:,} of {most:,} {of}: {advice}.")


def check_fraction(name: str, value: float) -> None:
    """Raises a UserError if a number that is a part of a whole is not from 0 to 1."""
    if not 0 <= value <= 1:  # nor is NaN
        raise UserError(f"{name} is {value:g}: choose a number from 0 to 1.")


def check_penalty(name: str, value: object) -> None:
    """Raises a UserError if a penalty's weight is negative or not finite; not of traced values."""
    if isinstance(value, (int, float, np.number)) and not 0 <= value < math.inf:
        raise UserError(f"{name} is {value}: choose a finite number of at least 0.")


def is_unreadable(error: Exception) -> bool:
    """Whether an error says that a file cannot be read, which says nothing about what it holds."""
    missing = FileNotFoundError, IsADirectoryError, NotADirectoryError
    if isinstance(error, OSError):
        return error.errno is not None and not isinstance(error, missing)
    return isinstance(error, MemoryError)


@contextlib.contextmanager
def writing(path: Path, flag: str) -> Iterator[None]:
    """A UserError for an OSError in writing the file of `flag`."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Cannot write {path} ({error.strerror or error}): choose another {flag} or make room."
        ) from error


def local_path(path: str | os.PathLike[str]) -> str:
    """A path on this machine, `~` expanded; UserError for a remote address or an unknown home."""
    text = os.fspath(path)
    if re.match(r"\w[\w+.-]*://", text):
        raise UserError(
            f"'{text}' is the address of remote storage, which is not supported: copy it to this "
            "machine, or mount it there as a folder."
        )
    expanded = os.path.expanduser(text)
    if text.startswith("~") and expanded == text:
        raise UserError(f"The home folder in '{text}' is not known: write the whole path.")
    return expanded


def resolved(word: str) -> str:
    """A word of a command line, `--out=~/x` for instance, with its paths by `local_path`."""
    return WRITTEN_PATH.sub(lambda match: local_path(match[0]), word)
