"""Words and their vectors, from whichever file or package."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Space(NamedTuple):
    """Words and their vectors, most frequent first if the order is known."""

    words: list[str]
    vectors: Float[np.ndarray, "n d"]
