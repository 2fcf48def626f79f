"""Reading files of text line by line, plain or compressed (`.gz`)."""

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from common.errors import UserError

MAX_LINE = 1 << 20  # bytes of a line; a longer one is a sign of a binary file


def read_lines(path: Path, errors: str | None = None, *, blank: bool = False) -> list[str]:
    """The lines of a UTF-8 file, see `lines_of`; UserError: it is missing, damaged or not UTF-8."""
    with opened(path) as file:
        return [line for _, line in lines_of(file, path, errors, blank=blank)]


def lines_of(
    file: io.BufferedIOBase, path: Path, errors: str | None = None, *, blank: bool = False
) -> Iterator[tuple[int, str]]:
    """Yields the lines with their numbers from 1, those of white space alone only with `blank`.

    `errors` is what `bytes.decode` does with bytes that are not UTF-8; None: strict, and no flag
    --errors changes it. UserError, with the path: a line is too long or not UTF-8.
    """
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        try:
            if len(line) > MAX_LINE:
                raise ValueError
            line = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"")
            text = line.decode(errors=errors or "strict").rstrip(" \r\n")
        except ValueError:
            flag = "give --errors=replace (to align, apply or encode) if a character is cut, "
            raise UserError(
                f"{path}, line {number} is not UTF-8 text of at most {MAX_LINE >> 20} MiB: convert "
                f"the file, {flag if errors else ''}or, if it is binary, give it the suffix of its "
                "format (.bin, .npy, .npz, .gz)."
            ) from None
        if text or blank:
            yield number, text


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Opens a file, decompressed if its suffix is `.gz`; raises the errors of `explained`."""
    opening = gzip.open if path.suffix.lower() == ".gz" else open
    with explained(path), opening(path, "rb") as file:
        yield file


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns the errors of the system and of gzip about a file into a UserError."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"Cannot read {path} ({getattr(error, 'strerror', None) or error}): correct the path, "
            "or fetch the file again if it is damaged."
        ) from error
