"""The exception for mistakes that the user can correct, and paths and files that lead to it."""

import contextlib
import difflib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

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
    """Checks the name of one of several things.

    Args:
      what: what is named, in the singular.
      name: as the user gave it.
      choices: the names that there are.

    Raises:
      UserError: there is no such thing.
    """
    if name not in choices:
        raise UserError(f"There is no {what} '{name}': choose one of {', '.join(choices)}.")


def nearest(name: str, names: Collection[str]) -> str | None:
    """The name that is most likely meant by a misspelt one, or by its last part; None: none is."""
    written = {full.rpartition(".")[2]: full for full in names} | {full: full for full in names}
    close = difflib.get_close_matches(name, written, 1) or difflib.get_close_matches(
        name.rpartition(".")[2], written, 1
    )
    return written[close[0]] if close else None


def check_count(
    name: str, count: int, most: int | None = None, of: str = "", *, least: int = 1
) -> None:
    """Checks a number of things, which may be taken from all that there are.

    Args:
      name: of the number, as the user gives it.
      count: the number.
      most: how many there are; None: no limit.
      of: what they are, in the plural.
      least: the smallest number that makes sense.

    Raises:
      UserError: too few or too many.
    """
    if count < least or (most is not None and count > most):
        available = "" if most is None else f" of {most:,} {of}"
        limit = "" if most is None else f", at most {most:,}"
        raise UserError(f"{name} is {count:,}{available}: choose at least {least:,}{limit}.")


def check_fraction(name: str, value: float) -> None:
    """Checks a number that is a part of a whole.

    Args:
      name: of the number, as the user gives it.
      value: the number.

    Raises:
      UserError: it is not between 0 and 1.
    """
    if not 0 <= value <= 1:  # nor is NaN
        raise UserError(f"{name} is {value:g}: choose a number from 0 to 1.")


def is_unreadable(error: Exception) -> bool:
    """Whether an error says that a file cannot be read, and nothing about what it holds.

    No permission, no memory or a failing disk do not make a file damaged; a missing one may be.
    """
    missing = FileNotFoundError, IsADirectoryError, NotADirectoryError
    if isinstance(error, OSError):
        return error.errno is not None and not isinstance(error, missing)
    return isinstance(error, MemoryError)


@contextlib.contextmanager
def writing(path: Path, flag: str, preserved: str = "") -> Iterator[None]:
    """Turns an OSError raised while a file of the user's choice is written into a UserError.

    Args:
      path: the file.
      flag: the command-line flag that chose it.
      preserved: end of the sentence, which may say what is not lost.

    Raises:
      UserError: an OSError was raised.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Cannot write {path} ({error.strerror or error}): choose another {flag} or make "
            f"room{preserved}."
        ) from error


def local_path(path: str | os.PathLike[str]) -> str:
    """A path on this machine, in which `~` and `~user` at the beginning are home folders.

    Raises:
      UserError: an address such as gs://bucket/file, or a home folder that is not known.
    """
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
    """A word of a command line with all paths in it as `local_path` returns them.

    A shell expands `~` at the beginning of a word alone, and not in `--out=~/x`.

    Raises:
      UserError: as `local_path`.
    """
    return WRITTEN_PATH.sub(lambda match: local_path(match[0]), word)
