"""Linear maps of a source space into a target space, stored with the normalisation of both.

`fit` normalises each space, fits one of `METHODS` on the pairs, and returns an `Aligner`, whose
`apply` normalises and maps new vectors. To add a method, write a function of two arrays of paired
rows and add it to `METHODS` and to the list of methods in its tests.
"""

import inspect
from collections.abc import Callable
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from common.aligner import Aligner, prepare, register_with_jax
from common.aligner import load as load
from common.arrays import Unchecked
from common.errors import UserError, check_choice, check_count
from common.likeness import Profile
from common.linear import least_squares, procrustes, ridge, whitened_procrustes
from common.rows import NORMALISATION as NORMALISE
from common.rows import STEPS

METHODS: dict[str, Callable[..., Float[Array, "d_source d_target"]]] = {
    "procrustes": procrustes,
    "least_squares": least_squares,
    "ridge": ridge,
    "whitened_procrustes": whitened_procrustes,
}
PENALISED = ("ridge", "whitened_procrustes")  # methods with a penalty
register_with_jax()


def fit(
    method: str,
    source: Annotated[Unchecked, "n d_source"],
    target: Annotated[Unchecked, "m d_target"],
    *,
    pairs: Annotated[Unchecked, "k 2"] | None = None,
    names: tuple[str, str] = ("source", "target"),
    normalise: tuple[str, ...] = NORMALISE,
    centre_rows: int | None = None,
    **options: float,
) -> Aligner:
    """Fits a map of a source space into a target space, given all of their raw vectors.

    `pairs` are (source row, target row); None: row i of both. 'center' subtracts the mean of the
    first `centre_rows` rows (None: of all): in a large vocabulary, sorted by frequency, rare words
    would dominate it. `options` has the `penalty` of 'ridge' and 'whitened_procrustes'.
    It may be called inside `jit`; values (NaN, zero rows) are then not checked.

    UserError: the method, an option or a step is unknown; a vector is not finite, or cannot be
    normalised; or the pairs do not fit the spaces.
    """
    check_choice("aligner", method, METHODS)
    if unknown := options.keys() - inspect.signature(METHODS[method]).parameters.keys():
        raise UserError(f"There is no option '{min(unknown)}' of '{method}': remove it.")
    normalise = tuple(normalise)
    for step in normalise:
        check_choice("normalisation", step, STEPS)
    spaces = normalised(source, target, pairs, names, normalise=normalise, centre_rows=centre_rows)
    x, y = spaces.source, spaces.target
    if pairs is not None:
        of_source, of_target = np.asarray(pairs).T
        x, y = jnp.take(x, of_source, axis=0), jnp.take(y, of_target, axis=0)
    elif len(x) != len(y):
        has = f"has {len(x)} vectors and '{names[1]}' has {len(y)}"
        raise UserError(f"The space '{names[0]}' {has}: give pairs, or as many vectors of each.")
    return spaces.aligner(METHODS[method](x, y, **options), method)


class NormalisedSpaces(NamedTuple):
    """Two spaces that are checked and normalised, and what an `Aligner` keeps of that."""

    source: Float[Array, "n d_source"]
    target: Float[Array, "m d_target"]
    source_means: Float[Array, "steps d_source"]
    target_means: Float[Array, "steps d_target"]
    normalise: tuple[str, ...]
    names: tuple[str, str]

    def aligner(
        self, matrix: Float[Array, "d_source d_target"], method: str, profile: Profile | None = None
    ) -> Aligner:
        """The aligner of a map that was fitted to these rows."""
        return Aligner(
            matrix=jax.block_until_ready(matrix),  # a process that is forked cannot wait for it
            source_means=self.source_means,
            target_means=self.target_means,
            normalise=self.normalise,
            method=method,
            source=self.names[0],
            target=self.names[1],
            profile=profile,
        )


def normalised(
    source: Annotated[Unchecked, "n d_source"],
    target: Annotated[Unchecked, "m d_target"],
    pairs: Annotated[Unchecked, "k 2"] | None,
    names: tuple[str, str],
    *,
    normalise: tuple[str, ...] = NORMALISE,
    centre_rows: int | None = None,
) -> NormalisedSpaces:
    """Checks two spaces and the pairs, if there are any, and normalises; see `fit`."""
    if centre_rows is not None:
        check_count("centre_rows", centre_rows)
    x, source_means = prepare(source, names[0], normalise, centre_rows=centre_rows)
    y, target_means = prepare(target, names[1], normalise, centre_rows=centre_rows)
    if pairs is not None:
        pairs = np.asarray(pairs)
        if not pairs.size or pairs.shape[1:] != (2,) or pairs.dtype.kind not in "iu":
            has = f"are {pairs.dtype} of shape {list(pairs.shape)}"
            raise UserError(f"The pairs {has}: give integers [k, 2], source row and target row.")
        outside = ((pairs < 0) | (pairs >= (len(x), len(y)))).any(axis=1)
        if outside.any():
            has = f"has {len(x)} rows and '{names[1]}' has {len(y)}"
            raise UserError(f"Pair {outside.argmax()} is outside: '{names[0]}' {has}.")
    return NormalisedSpaces(x, y, source_means, target_means, normalise, names)
