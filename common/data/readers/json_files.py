"""Reading vectors and texts from files of JSON objects, one a line.

A line is one of an object's own, `{"id": 7, "embedding": [...]}`; of Cohere's embed jobs, whose
`embeddings` has a list for each type of numbers; or of OpenAI's batches, whose `response` has the
vectors, of lists or of base64, and whose `custom_id` is the id.
"""

import base64
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.data.readers.column_files import Wanted
from common.data.readers.line_files import opened
from common.errors import UserError

SUFFIXES = (".jsonl", ".ndjson", ".json")
IDS = ("custom_id", "id", "words", "text")  # the first that a line has
VECTORS = ("embedding", "embeddings", "vector", "vectors", "values")
Row = tuple[str | None, np.ndarray]  # an id, None if rows have none, and a vector


def _objects(file: io.BufferedIOBase, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the object of each line that is not blank, and where it is."""
    for number, line in enumerate(file, 1):
        try:
            value = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UserError(
                f"{path}, line {number} is no JSON object: write one object of an id and a vector "
                "or a text a line."
            )
        if value:
            yield f"{path}, line {number}", value


def rows(file: io.BufferedIOBase, path: Path, wanted: Wanted) -> Iterator[Row]:
    """Yields the rows of a file.

    That of a request that failed, and null, are NaN. UserError: a line is no object, has no id or
    vector, or a vector of another length than the first.
    """
    name, dimension, waiting = None, 0, []
    for number, (place, line) in enumerate(_objects(file, path)):
        if not number and not wanted.rows:
            name = wanted.ids or next((name for name in IDS if name in line), None)
        word = None if name is None else _text(place, line, name)
        vectors = _vectors(place, line, wanted.vectors)
        dimension = dimension or max(map(len, vectors))
        for item, vector in enumerate(vectors):  # texts of one request have its id in common
            waiting.append((word and f"{word}/{item}" if vectors[1:] else word, vector))
            if len(vector) not in (0, dimension):
                raise UserError(
                    f"{place} has a vector of {len(vector)} numbers, and the first has "
                    f"{dimension}: give vectors of one model."
                )
        if dimension:
            none = np.full(dimension, np.nan, np.float32)
            yield from ((word, vector if len(vector) else none) for word, vector in waiting)
            waiting = []


def texts(path: Path, names: Sequence[str]) -> list[list[str]]:
    """The values of these keys as texts.

    UserError: the file is missing or damaged, or a line is no object or lacks a key.
    """
    with opened(path) as file:
        found = [[_text(*line, name) for name in names] for line in _objects(file, path)]
    return list(map(list, zip(*found, strict=True))) or [[] for _ in names]


def _vectors(place: str, line: dict[str, Any], key: str | None) -> list[np.ndarray]:
    """The vectors of a line; of a request that failed, and of null, an empty one."""
    try:
        if key is None and "custom_id" in line and "response" in line:
            found = ((line["response"] or {}).get("body") or {}).get("data") or [{}]
            found = [one.get("embedding") for one in found]
        else:
            value = line[key or next(name for name in VECTORS if name in line)]
            found = [next(filter(None, value.values())) if isinstance(value, dict) else value]
        return [np.zeros(0) if vector is None else _vector(vector) for vector in found]
    except Exception as error:  # of a value that is anything
        raise UserError(
            f"{place} has no vector, a list of numbers in one of {', '.join(VECTORS)}: give one, "
            "or name its key by --vector_column."
        ) from error


def _vector(value: list[float] | str) -> np.ndarray:
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    with np.errstate(over="ignore"):  # `vector_files.stream` refuses infinity
        vector = np.asarray(value, np.float64).astype(np.float32)
    if vector.ndim != 1 or not vector.size:
        raise ValueError("no list of numbers")
    return vector


def _text(place: str, line: dict[str, Any], name: str) -> str:
    """The value of a key as text, null as none; UserError: there is no such key."""
    if name not in line:
        keys = ", ".join(map(repr, itertools.islice(line, 20)))
        raise UserError(f"{place} has no '{name}' but {keys}: correct it or name another key.")
    text = "" if line[name] is None else str(line[name])
    return text.encode(errors="replace").decode()  # "\\ud83d" is half of a pair of surrogates
