"""Embedding spaces by name or path, and two of them with the same items in the same order.

`SPACES` is the one place where a space gets its name. The items of a space are words, sentences,
images or classes of images; two spaces are paired by equality of their items' names.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from common.data.readers import vector_files
from common.data.sets import finnish, french, word_vectors
from common.data.space import Space
from common.encoders import minilm
from common.errors import UserError, check_count
from common.spaces import foreign_words, image_classes, image_features, messages, sentences

ENCODED = {
    **{name: partial(sentences.load, name) for name in sentences.SPACES},
    **{name: partial(messages.load, name) for name in messages.ALIGNED},
    **{name: partial(image_features.load, name) for name in image_features.ENCODERS},
    **{name: partial(image_classes.load, name) for name in image_classes.SPACES},
}  # name -> function of the cache directory and of the number of items to encode, the first ones
SPACES: dict[str, Callable[[Path], Space]] = {
    **{name: partial(word_vectors.load, name) for name in word_vectors.DIMENSIONS},
    **{name: partial(minilm.load, name) for name in minilm.NAMES},
    french.NAME: french.load,
    **{name: partial(finnish.load, name) for name in (finnish.NAME, finnish.BY_ENGLISH)},
    **{name: partial(foreign_words.load, name) for name in foreign_words.LANGUAGES},
    **{name: partial(messages.load, name) for name in messages.SPACES},
    **ENCODED,
}  # name -> function of the cache directory


class PairedSpaces(NamedTuple):
    """Row i of both spaces is item i of `names`; `ranks` are its places in both full lists.

    These are in the order of frequency; None if the items have no frequency.
    """

    names: list[str]
    source: Float[np.ndarray, "n d_source"]
    target: Float[np.ndarray, "n d_target"]
    ranks: tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]] | None = None

    def take(self, items: slice | Int[np.ndarray, " m"]) -> "PairedSpaces":
        """Some of the items."""
        names = np.asarray(self.names)[items].tolist()
        ranks = self.ranks and (self.ranks[0][items], self.ranks[1][items])
        return PairedSpaces(names, self.source[items], self.target[items], ranks)


def load(
    source: str,
    target: str,
    *,
    num_words: int | None,
    cache: Path,
    source_words: str = "",
    target_words: str = "",
    drop_first: int = 0,
    min_letters: int = 1,
    max_rows: int = 200_000,
) -> PairedSpaces:
    """Loads two spaces and selects the items that both have, in the source's order.

    `source_words` and `target_words` are the word lists of arrays without words. The first
    `drop_first` shared words are left out, before `num_words` (None: all) are taken. With
    `min_letters` above 1 words must be alphabetic as well.
    UserError: as `load_space`, or fewer shared words than `num_words`.
    """
    check_count("drop_first", drop_first, least=0)
    if num_words is not None:
        check_count("num_words", num_words)
    # Row i is the same item in all spaces of sentences, of messages, of images and of classes.
    if num_words and {source, target} <= ENCODED.keys():
        max_rows = min(max_rows, drop_first + num_words)
    spaces = [
        load_space(name, cache, word_list=word_list, max_rows=max_rows)
        for name, word_list in ((source, source_words), (target, target_words))
    ]
    shared, rows = shared_items(spaces)
    if min_letters > 1:
        shared = [word for word in shared if len(word) >= min_letters and word.isalpha()]
    shared = shared[drop_first:][:num_words]
    if num_words and len(shared) < num_words:
        raise UserError(
            f"'{source}' and '{target}' share {len(shared)} words that satisfy drop_first and "
            f"min_letters, fewer than num_words={num_words}: ask for at most that many."
        )
    places = [np.array([row[word] for word in shared], int) for row in rows]
    vectors = [space.vectors[place] for space, place in zip(spaces, places, strict=True)]
    ranks = None if {source, target} & ENCODED.keys() else (places[0], places[1])
    return PairedSpaces(names=shared, source=vectors[0], target=vectors[1], ranks=ranks)


def shared_items(spaces: Sequence[Space]) -> tuple[list[str], list[dict[str, int]]]:
    """The names that all spaces have, in the order of the first one, and the row of each name."""
    rows = [{word: row for row, word in enumerate(space.words)} for space in spaces]
    return [word for word in spaces[0].words if all(word in found for found in rows)], rows


def load_space(
    name: str, cache: Path, *, word_list: str = "", max_rows: int | None = None
) -> Space:
    """Loads a space by its key in `SPACES`, or from a file that `vector_files.read` reads.

    `max_rows` (None: all) are read from a file, or encoded; spaces of words are read whole.
    """
    if max_rows is not None:
        check_count("max_rows", max_rows)
    if name in ENCODED:
        return ENCODED[name](cache, max_rows)
    if name in SPACES:
        return SPACES[name](cache)
    if not Path(name).exists():
        raise UserError(
            f"'{name}' is neither a file of vectors nor one of {', '.join(SPACES)}: correct the "
            "name or the path."
        )
    words_path = Path(word_list) if word_list else None
    return vector_files.read(Path(name), words_path, max_rows, progress=True)
