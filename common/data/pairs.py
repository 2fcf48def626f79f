"""Two spaces of the same items; word spaces by name or path, on the words that they share."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from common.data import french, vectors, words
from common.errors import UserError


class Pair(NamedTuple):
    """Row i of both spaces is the same item; words: most frequent first, in the source's order."""

    names: list[str]
    source: Float[np.ndarray, "n d_source"]
    target: Float[np.ndarray, "n d_target"]


def load(
    source: str,
    target: str,
    *,
    num_words: int,
    cache: Path,
    source_words: str = "",
    target_words: str = "",
    drop_first: int = 0,
    min_letters: int = 1,
    max_rows: int = 200_000,
) -> Pair:
    """Reads two spaces and keeps their most frequent shared words.

    Args:
      source: name of an embedded space or path of a file of vectors.
      target: likewise.
      num_words: words to keep.
      cache: the cache directory of the embedded spaces.
      source_words: path of the word list of a .npy / .npz source.
      target_words: likewise of the target.
      drop_first: shared words to leave out at the top.
      min_letters: shortest word; above 1, only alphabetic words count.
      max_rows: rows to read of a file.

    Raises:
      UserError: an unknown space, a file that can't be read, or fewer shared words than asked.
    """
    spaces = [
        space(name, word_list, cache, max_rows)
        for name, word_list in ((source, source_words), (target, target_words))
    ]
    target_row = {word: row for row, word in enumerate(spaces[1].words)}
    shared = [word for word in spaces[0].words if word in target_row]
    if min_letters > 1:
        shared = [word for word in shared if len(word) >= min_letters and word.isalpha()]
    shared = shared[drop_first : drop_first + num_words]
    if len(shared) < num_words:
        raise UserError(
            f"'{source}' and '{target}' share {len(shared)} words that pass drop_first and "
            f"min_letters, fewer than num_words={num_words}: ask for at most that many."
        )
    source_row = {word: row for row, word in enumerate(spaces[0].words)}
    return Pair(
        shared,
        spaces[0].vectors[[source_row[word] for word in shared]],
        spaces[1].vectors[[target_row[word] for word in shared]],
    )


def space(name: str, word_list: str, cache: Path, max_rows: int) -> words.Space:
    """Reads one space, by the name of an embedded one or the path of a file of vectors.

    Raises:
      UserError: an unknown space, a word list for one that has its words, or a file that can't be
        read.
    """
    if word_list and name in (*words.SPACES, french.NAME):
        raise UserError(f"'{name}' has words of its own: leave out the list {word_list}.")
    if name in words.SPACES:
        return words.load(name, words.NUM_WORDS, cache)
    if name == french.NAME:
        return french.load(french.NUM_WORDS, cache)
    if not Path(name).exists():
        raise UserError(
            f"'{name}' is neither a file of vectors nor an embedded space "
            f"({', '.join(words.SPACES)}, {french.NAME}): correct the name or the path."
        )
    return vectors.read(Path(name), Path(word_list) if word_list else None, max_rows)
