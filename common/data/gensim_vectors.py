"""gensim's `KeyedVectors` in and out; gensim itself is no dependency."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import ArrayLike, Float

from common.data import vectors
from common.data.words import Space
from common.errors import UserError

if TYPE_CHECKING:
    from gensim.models import KeyedVectors


def from_gensim(keyed: Any) -> Space:
    """Words and vectors of a gensim model, in its order.

    Args:
      keyed: has `index_to_key` and `vectors`, as `KeyedVectors` and fastText's do, or has them in
        `wv`, as whole models do.

    Raises:
      UserError: another object, keys that are no words, numbers that are not finite, or vectors of
        zeros.
    """
    keyed = getattr(keyed, "wv", keyed)
    words, found = (getattr(keyed, name, None) for name in ("index_to_key", "vectors"))
    if words is None or found is None:
        raise UserError(
            f"An object of type {type(keyed).__name__} has no index_to_key and vectors: give "
            "gensim's KeyedVectors."
        )
    words, found = list(words), np.asarray(found)
    return Space(words, _checked(words, found))


def to_gensim(words: Sequence[str], found: Float[ArrayLike, "n d"]) -> "KeyedVectors":
    """A `gensim.models.KeyedVectors` of these words and vectors, those of `Aligner.apply` say.

    Raises:
      UserError: gensim is not installed, or what `from_gensim` refuses.
    """
    try:
        from gensim.models import KeyedVectors
    except ImportError as error:
        raise UserError(f"gensim can't be imported ({error}): pip install gensim.") from error
    words, found = list(words), _checked(list(words), np.asarray(found))
    keyed = KeyedVectors(vector_size=found.shape[1], count=0, dtype=np.float32)
    keyed.add_vectors(words, found)
    return keyed


def _checked(words: list[str], found: np.ndarray) -> Float[np.ndarray, "n d"]:
    if found.ndim != 2 or 0 in found.shape or len(found) != len(words):
        raise UserError(
            f"There are {len(words)} words and vectors of shape {found.shape}: give a row a word."
        )
    if found.dtype.kind not in "fiu":
        raise UserError(f"The vectors are of type {found.dtype}: give real numbers.")
    if wrong := [word for word in words if not isinstance(word, str) or not word]:
        raise UserError(f"The key {wrong[0]!r} is no word: give keys that are str.")
    word, times = Counter(words).most_common(1)[0]
    if times > 1:
        raise UserError(f"The word '{word}' comes {times} times: keep one of them.")
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, refused
        found = found.astype(np.float32)
    vectors.refuse(found, lambda row: f"The vector of '{words[row]}'", "that word")
    return found
