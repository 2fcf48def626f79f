"""Types of arrays, for functions that take those of NumPy as well as those of JAX."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Array, Float, Int

Unchecked = Any  # what a user gives for an array, which the function itself checks
AnyArray = Array | np.ndarray
# An array of a dataclass that is a tree of JAX, which also builds it of placeholders.
if TYPE_CHECKING:
    Leaf = Array
else:
    Leaf = Any
SameArray = TypeVar("SameArray", bound=AnyArray)  # the result is of the library of the argument
# A traced function sees an array where its caller has given a number.
RealNumber = float | np.floating | Float[Array, ""]
WholeNumber = int | np.integer | Int[Array, ""]
