"""The exception for mistakes that the user can correct, and paths and files that lead to it."""

import contextlib
import os
import re
from collections.abc import Iterator
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
