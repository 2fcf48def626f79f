"""Reading files of pairs: dictionaries of words, and row numbers that belong together."""

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common.data.readers.line_files import lines_of, opened
from common.errors import UserError

WORDS = ("source", "target")  # names of the columns in a file's first line
ROWS = ("source_row", "target_row")
SEPARATORS = {".csv": ",", ".tsv": "\t"}


class Pairs(NamedTuple):
    """Pairs in the order of a file; `are_rows` is None if it says neither words nor rows."""

    entries: list[tuple[str, str]]
    are_rows: bool | None


def read(path: Path) -> Pairs:
    """Reads pairs of a source and a target.

    A first line with the names `source` and `target` (words), or `source_row` and `target_row`, is
    a header, and there may be other columns. Without a header there are two columns. The suffix,
    which `.gz` may follow, determines the format:
    - `.csv`: commas between the columns; the header is necessary.
    - `.tsv`: tabs. In both, quotes are around a value with a separator, a quote or a line end.
    - Any other suffix: a tab, or else spaces, between the columns; quotes are part of a word.

    UserError: a file that is missing, empty or not UTF-8, or a line without the columns.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    with opened(path) as file:
        separator = SEPARATORS.get(suffix)
        lines = _quoted(file, path, separator) if separator else _plain(file, path)
        first = next(lines, None)
        if first is None:
            raise UserError(f"{path} is empty: give a file with two words a line.")
        header = next((names for names in (WORDS, ROWS) if {*names} <= {*first[1]}), None)
        if header is None and suffix == ".csv":
            raise UserError(
                f"{path} does not name its columns: give it the first line {','.join(WORDS)}, or "
                f"{','.join(ROWS)} for row numbers."
            )
        names = first[1] if header else WORDS
        places = [names.index(name) for name in header or WORDS]
        entries = []
        for number, columns in lines if header else itertools.chain([first], lines):
            source, target = (columns[i] if len(columns) == len(names) else "" for i in places)
            if not source or not target:
                filled = sum(map(bool, columns))
                raise UserError(
                    f"{path}, line {number} has {filled} columns: give a source word and a "
                    "target word (with a tab between them if they contain spaces)."
                )
            entries.append((source, target))
    return Pairs(entries, header == ROWS if header else None)


def _plain(file: io.BufferedIOBase, path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines_of(file, path):
        columns = [column.strip(" ") for column in line.split("\t" if "\t" in line else " ")]
        yield number, [column for column in columns if column]


def _quoted(file: io.BufferedIOBase, path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")  # pyright: ignore[reportArgumentType]
    spaced = separator == ","  # "a, b"
    reader = csv.reader(text, delimiter=separator, skipinitialspace=spaced, strict=True)
    try:
        for columns in reader:
            if columns:
                yield reader.line_num, columns
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}, line {reader.line_num + 1} is not UTF-8 text with '{separator}' between its "
            f"columns and quotes in pairs ({error}): correct it."
        ) from error
