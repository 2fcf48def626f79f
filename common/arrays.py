"""Types of arrays, for functions that take those of NumPy as well as those of JAX."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

Unchecked = Any  # what a user gives for an array, which the function itself checks
# The type `Array` of jaxtyping would import JAX, which maps of NumPy do without.
# `Leaf` is an array of a tree of JAX, which also builds it of placeholders; that of a file is
# NumPy's, and is used as one of JAX.
if TYPE_CHECKING:
    from jaxtyping import Array

    AnyArray = Array | np.ndarray
    Leaf = Array
else:
    Array = AnyArray = Leaf = Any
SameArray = TypeVar("SameArray", bound=AnyArray)  # the result is of the library of the argument
# A traced function sees an array where its caller has given a number.
RealNumber = float | np.floating | Float[Array, ""]
WholeNumber = int | np.integer | Int[Array, ""]
