"""Reading the text and binary formats of word2vec, fastText and GloVe, a row at a time.

Lines end at a line feed, and fields at one separator, never at other Unicode white space: files of
fastText and GloVe contain words such as a no-break space or U+0085.
"""

import io
import itertools
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from common.data.readers.line_files import lines_of
from common.errors import UserError

HEADER = re.compile(r"(\d{1,12})[ \t](\d{1,6})\s*", re.ASCII)
NUMBER = re.compile(r" ?[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
SEPARATORS = {" ": "one space", "\t": "one tab", ",": "one comma", ";": "one semicolon"}
QUOTED = re.compile(r'"(.*)"')  # a word of a table that a spreadsheet has written
SAMPLE_LINES = 100  # of which the separators are recognised
MAX_WORD = 1 << 16  # bytes of a word in a .bin file
Row = tuple[str, Float[np.ndarray, " d"]]


class _Layout(NamedTuple):
    """A line is a word, the separator `after_word`, and numbers with `between` between them."""

    after_word: str
    between: str
    dimension: int

    def row(self, line: str) -> Row | None:
        """The word and its numbers; None if the line has another layout."""
        # From the right, because words of GloVe 840B contain spaces.
        head, *values = line.rsplit(self.between, self.dimension - 1)
        word, *value = head.rsplit(self.after_word, 1)
        if self.after_word in ",;" and (quoted := QUOTED.fullmatch(word)):
            word = quoted[1].replace('""', '"')
        try:
            with np.errstate(over="ignore"):  # `vector_files.stream` refuses infinity
                vector = np.array([*value, *values], np.float32)
        except ValueError:
            return None
        return (word, vector) if word and len(vector) == self.dimension else None

    def __str__(self) -> str:
        named = dict.fromkeys(SEPARATORS[separator] for separator in self[:2])
        return f"a word and {self.dimension} numbers separated by {' or '.join(named)}"


def text_rows(
    file: io.BufferedIOBase, path: Path, errors: str, num_words: int | None
) -> Iterator[Row]:
    """Yields the words and vectors of a text; `path` is named in errors, see `lines_of`.

    A first line "n d" states their number and the dimension, and a word may then hold anything but
    tabs and line ends. Without it the separators and the dimension are those of most of the first
    lines, and a word of several parts may not end with a number. No line behind `num_words` rows
    is read; None: all are.
    """
    lines = lines_of(file, path, errors)
    first = next(lines, None)
    if first is None:
        return
    header = HEADER.fullmatch(first[1])
    count, dimension = map(int, header.groups()) if header else (None, None)
    lines = lines if header else itertools.chain([first], lines)
    sample = list(itertools.islice(lines, min(SAMPLE_LINES, num_words or SAMPLE_LINES)))
    layout = None if dimension == 0 else _layout([line for _, line in sample], dimension)
    rows = 0
    for number, line in itertools.chain(sample, lines):
        row = layout and layout.row(line)
        if not row or not layout or (not header and _goes_on(row[0], layout.after_word)):
            expected = layout or f"a word and {dimension or 'its'} numbers with one separator"
            if not layout and not header:
                expected = f"{expected} (texts become vectors by `isthmus encode`)"
            raise UserError(
                f"{path}, line {number} is not {expected} as in line {first[0]}: correct it, state "
                "the numbers of rows and dimensions in a line before all others if it is right, or "
                "fetch the file again."
            )
        yield row
        rows += 1
    if header and rows != count:
        raise UserError(
            f"{path} has {rows} rows of vectors but its first line says {count}: correct that "
            "line, or fetch the file again if it was cut."
        )


def _layout(lines: list[str], dimension: int | None) -> _Layout | None:
    """The layout of most lines; None if they have none, or if it is not clear where words end."""
    numbers = {s: _mode(_numbers(line, s) for line in lines) for s in SEPARATORS}
    if dimension:
        numbers = {separator: min(n, dimension) for separator, n in numbers.items()}
    between = max(numbers, key=lambda separator: numbers[separator])  # the first of equals
    count = numbers[between]
    if dimension and count == dimension:
        return _Layout(between, between, dimension)
    # The first number may stand behind another separator, but "1,000" is a word as well.
    words = [line.rsplit(between, count)[0] for line in lines]
    after_word = next((s for s in SEPARATORS if _mode(_numbers(word, s) for word in words)), None)
    if after_word is None:
        return _Layout(between, between, count) if count and not dimension else None
    if dimension == count + 1 or (not dimension and after_word == "\t"):
        return _Layout(after_word, between, count + 1)
    return None


def _goes_on(word: str, separator: str) -> bool:
    """Whether a word ends as a row of more numbers, or more separators, would."""
    return word.endswith(separator) or _numbers(word, separator) > 0


def _mode(numbers: Iterator[int]) -> int:
    return statistics.mode([*numbers] or [0])


def _numbers(line: str, separator: str) -> int:
    """How many fields at the end of a line, of which the first is never one, are numbers."""
    fields = line.split(separator)[:0:-1]
    return sum(1 for _ in itertools.takewhile(NUMBER.fullmatch, fields))


def binary_rows(file: io.BufferedIOBase, path: Path, errors: str = "strict") -> Iterator[Row]:
    """Yields the words and vectors of word2vec's binary format; for arguments see `text_rows`."""
    try:
        header = HEADER.fullmatch(file.readline(64).decode("latin-1"))
        if not header:
            raise ValueError("it has another first line")
        count, dimension = map(int, header.groups())
        for row in range(count):
            letters = iter(lambda: file.read(1).strip(b" "), b"")
            word = b"".join(itertools.islice(letters, MAX_WORD))
            values = file.read(4 * dimension)
            # Numbers that are printable are a sign of a text file.
            if len(values) < 4 * dimension or not values.strip(b"0123456789+-.eE \r\n"):
                raise ValueError(f"row index {row} is cut or text")
            try:  # some writers end a row with a line feed
                text = word.lstrip(b"\n").decode(errors=errors)
            except UnicodeDecodeError:
                where = f"the word of row index {row} is not UTF-8"
                raise ValueError(f"{where}, which --errors=replace mends") from None
            yield text, np.frombuffer(values, "<f4")
        if file.read(2).strip(b"\n"):
            raise ValueError(f"it has more than {count} rows")
    except ValueError as error:
        raise UserError(
            f"{path} is not word2vec's binary format, 'n d' and n rows of a word in UTF-8 and d "
            f"floats ({error}): fetch it again, or give text another suffix than .bin."
        ) from error
