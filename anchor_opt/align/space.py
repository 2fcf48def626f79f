"""A file of vectors, once it is read."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Space(NamedTuple):
    """A space by the name of its file, and its known pairs with the target.

    Pairs are left out if a space lacks one of their words; `num_unknown` is their number.
    """

    name: str
    words: list[str]
    vectors: Float[np.ndarray, "n d"]
    pairs: Int[np.ndarray, "s 2"] | None = None  # (source row, target row)
    num_unknown: int = 0
