"""The exception for mistakes that the user can correct."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

MAX_LENGTH = 1000  # characters of a sentence, which may quote a file


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
