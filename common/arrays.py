"""Types of arrays, for functions that take those of NumPy as well as those of JAX."""

from typing import TypeVar

import numpy as np
from jaxtyping import Array, Float

AnyArray = Array | np.ndarray
SameArray = TypeVar("SameArray", bound=AnyArray)  # the result is of the library of the argument
Scalar = float | Float[AnyArray, ""]  # in a traced function, a traced array
