"""Files of `python -m anchor_opt.align`: the spaces and pairs it reads, the results it writes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped
from tqdm import tqdm

from anchor_opt.align import Alignment
from common.data import vector_files
from common.errors import UserError, writing
from common.retrieval import Dictionary
from common.workdir import replacing, write_arrays, write_atomically


class Space(NamedTuple):
    """A space by the name of its file, and its known pairs with the target.

    Pairs are left out if a space lacks one of their words; `num_unknown` is their number.
    """

    name: str
    words: list[str]
    vectors: Float[np.ndarray, "n d"]
    pairs: Int[np.ndarray, "s 2"] | None = None  # (source row, target row)
    num_unknown: int = 0


def read_space(path: Path, num_rows: int | None = None) -> Space:
    """Reads a file by `common.data.vector_files.read`; its name up to a dot is that of the space.

    Raises:
      UserError: the file can't be read, or a word has a tab or line end, which would break a table.
    """
    words, vectors = vector_files.read(path, num_words=num_rows)
    for word in words:
        if any(c in word for c in "\t\r\n"):
            raise UserError(f"{path} has the word {word!r}: words must hold no tab or line end.")
    return Space(path.name.split(".")[0], words, vectors)


def read_known_pairs(path: Path, source: Space, target: Space) -> Space:
    """The source with its known pairs of words, or of row numbers where a space has no words.

    Raises:
      UserError: the file can't be read, or none of its pairs is in both spaces.
    """
    pairs = list(dict.fromkeys(vector_files.read_pairs(path)))
    source_row, target_row = (
        {word: row for row, word in enumerate(space.words)} for space in (source, target)
    )
    rows = [(source_row[s], target_row[t]) for s, t in pairs if s in source_row and t in target_row]
    if not rows:
        raise UserError(
            f"None of the {len(pairs)} pairs of {path} is in both spaces (the first is "
            f"'{pairs[0][0]}', '{pairs[0][1]}'): give words of the source, then of the target."
        )
    return source._replace(pairs=np.array(rows, np.int64), num_unknown=len(pairs) - len(rows))


def write_space(path: Path, words: Sequence[str], vectors: Float[np.ndarray, "n d"]) -> None:
    """Writes words and vectors atomically, as .npz or, with any other suffix, as word2vec text.

    Raises:
      UserError: the file can't be written.
    """
    vectors = np.asarray(vectors)
    with writing(path, "--out"):
        if path.suffix == ".npz":
            write_arrays(path, {"words": np.array(words), "vectors": vectors})
            return
        form = " ".join(["%.6g"] * vectors.shape[1])
        bar = tqdm(words, desc=f"writing {path.name}", unit="word", delay=2)
        with replacing(path) as file:  # line by line: the text may not fit into memory
            file.write(f"{len(vectors)} {vectors.shape[1]}\n".encode())
            for word, vector in zip(bar, vectors, strict=True):
                file.write(f"{word} {form % tuple(vector.tolist())}\n".encode())


def write_table(path: Path, columns: Mapping[str, Shaped[np.ndarray, " n"]]) -> None:
    """Writes tab-separated columns with their names atomically; real numbers have four decimals.

    Raises:
      UserError: the file can't be written.
    """
    texts = [
        [f"{value:.4f}" if column.dtype.kind == "f" else str(value) for value in column]
        for column in columns.values()
    ]
    lines = ["\t".join(row) + "\n" for row in (columns, *zip(*texts, strict=True))]
    with writing(path, "--out"):
        write_atomically(path, "".join(lines).encode())


def write_alignment(
    folder: Path, found: Alignment, source: Space, target: Space, num_anchors: int
) -> None:
    """Writes the files of a source into its folder, and `target` beside it, see `report.FILES`.

    Raises:
      UserError: a file can't be written.
    """
    found.aligner.save(folder / "map.npz")
    words, target_words = (np.array(space.words, object) for space in (source, target))
    rows, partners = found.anchors.T
    anchors = {"source": words[rows], "target": target_words[partners]}
    write_table(folder / "anchors.tsv", anchors | {"confidence": found.confidence})
    table = Dictionary(*map(np.asarray, found.dictionary))
    order = np.lexsort((-table.score, ~table.mutual))  # mutual pairs first, then by score
    translations = {
        "source": words,
        "target": target_words[table.to_target],
        "csls": table.score,
        "mutual": table.mutual.astype(int),
        "confidence": table.confidence,
    }
    ordered = {name: column[order] for name, column in translations.items()}
    write_table(folder / "dictionary.tsv", ordered)
    mapped = found.aligner.apply(source.vectors)
    normalised = found.aligner.normalise_target(target.vectors)
    for suffix in (".npz", ".vec"):
        write_space(folder / f"aligned{suffix}", source.words, mapped)
        write_space(folder.parent / f"target{suffix}", target.words, normalised)
    relative = found.relative(source.vectors, target.vectors, num_anchors)
    arrays = {"source": relative[0], "target": relative[1], "anchors": found.anchors[:num_anchors]}
    with writing(folder / "relative.npz", "--out"):
        write_arrays(folder / "relative.npz", arrays)
