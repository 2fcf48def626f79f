"""The one exception that means: the user can mend this."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

LONGEST = 1000  # characters of a sentence, which may quote a file


class UserError(ValueError):
    """Bad input, said in one sentence: what is wrong, where, and how to mend it.

    The command lines print the sentence and exit with code 2; anything else that is raised is a bug
    of ours and keeps its traceback. Control characters, line ends among them, become spaces, and a
    very long sentence loses its middle: both come from what it quotes.
    """

    def __init__(self, sentence: str):
        sentence = re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", sentence)
        if len(sentence) > LONGEST:
            sentence = f"{sentence[: LONGEST // 2]} ... {sentence[-LONGEST // 2 :]}"
        super().__init__(sentence)


@contextlib.contextmanager
def writing(path: Path, flag: str, kept: str = "") -> Iterator[None]:
    """What keeps a file of the user's choice from being written, in one sentence.

    Args:
      path: of the file.
      flag: by which it was chosen.
      kept: what is not lost, at the end of the sentence.

    Raises:
      UserError: an OSError was raised.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Cannot write {path} ({error.strerror or error}): choose another {flag} or make "
            f"room{kept}."
        ) from error
