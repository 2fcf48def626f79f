"""What `python -m anchor_opt.align` reads and writes: spaces, known pairs, and their results."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from tqdm import tqdm

from common.data import numpy_files, vectors
from common.data.words import Space
from common.errors import UserError, writing
from common.workdir import replacing, write_arrays, write_atomically


class Seeds(NamedTuple):
    """Known pairs as rows of both spaces.

    Attributes:
      rows: (source row, target row).
      unknown: pairs of the file with a word that a space lacks; they are left out.
    """

    rows: Int[np.ndarray, "s 2"]
    unknown: int


def name(path: Path) -> str:
    """What a space is called: its file's name up to the first dot."""
    return path.name.split(".")[0]


def fingerprint(path: Path) -> str:
    """Tells one content of a file from another.

    Raises:
      UserError: the file can't be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise UserError(f"Cannot read {path} ({error.strerror}): correct the path.") from error


def read_space(path: Path, word_list: Path | None, num_rows: int | None) -> Space:
    """As `common.data.vectors.read`, but rows of an array without words go by their numbers.

    Raises:
      UserError: what `read` refuses, or a word with a tab or line end, which would break a table.
    """
    if not word_list and path.suffix.lower() in (".npy", ".npz") and not _has_words(path):
        found = vectors.read_array(path)[:num_rows]
        return Space([str(row) for row in range(len(found))], found)
    space = vectors.read(path, word_list, num_rows)
    for word in space.words:
        if any(c in word for c in "\t\r\n"):
            raise UserError(f"{path} has the word {word!r}: words must hold no tab or line end.")
    return space


def _has_words(path: Path) -> bool:
    try:
        found = numpy_files.names(path)
    except OSError:
        found = None
    # Of a broken .npz `read` says what is wrong.
    return path.suffix.lower() == ".npz" if found is None else "words" in found


def read_seeds(path: Path, source: Space, target: Space) -> Seeds:
    """Known pairs of words (of row numbers, where a space has no words), as rows.

    Raises:
      UserError: a file that can't be read, no pair in both spaces, or a word that is paired twice.
    """
    pairs = list(dict.fromkeys(vectors.read_pairs(path)))
    for side in (0, 1):
        partner: dict[str, str] = {}
        for pair in pairs:
            word, other = pair[side], pair[1 - side]
            if word in partner:
                raise UserError(
                    f"{path} pairs '{word}' with '{partner[word]}' and with '{other}': keep one."
                )
            partner[word] = other
    place = [{word: row for row, word in enumerate(space.words)} for space in (source, target)]
    known = [(place[0][s], place[1][t]) for s, t in pairs if s in place[0] and t in place[1]]
    if not known:
        raise UserError(
            f"None of the {len(pairs)} pairs of {path} is in both spaces ('{pairs[0][0]}', "
            f"'{pairs[0][1]}' is its first): give words of the source, then of the target."
        )
    return Seeds(np.array(known, np.int64), len(pairs) - len(known))


def write_space(path: Path, words: Sequence[str], rows: Float[np.ndarray, "n d"]) -> None:
    """Writes words and vectors as .npz or, under any other suffix, as word2vec text; atomically.

    Raises:
      UserError: the file can't be written.
    """
    rows = np.asarray(rows)
    if path.suffix == ".npz":
        with writing(path, "--out"):
            write_arrays(path, {"words": np.array(words), "vectors": rows})
        return
    with writing(path, "--out"), replacing(path) as file:  # never holds the whole of a large text
        file.writelines(_text(words, rows, path.name))


def _text(words, rows, title) -> Iterator[bytes]:
    yield f"{len(rows)} {rows.shape[1]}\n".encode()
    form = " ".join(["%.6g"] * rows.shape[1])
    bar = tqdm(words, desc=f"writing {title}", unit="word", delay=2)
    for word, row in zip(bar, rows, strict=True):
        yield f"{word} {form % tuple(row.tolist())}\n".encode()


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Writes tab-separated values, a line of names first; atomically."""
    lines = ["\t".join(map(str, row)) + "\n" for row in (header, *rows)]
    with writing(path, "--out"):
        write_atomically(path, "".join(lines).encode())
