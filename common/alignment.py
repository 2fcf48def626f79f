"""Linear maps of a source space into a target space, stored with the normalisation of both.

`fit` normalises each space, fits one of `METHODS` on the pairs, and returns an `Aligner`, whose
`apply` normalises and maps new vectors. To add a method, write a function of two arrays of paired
rows and add it to `METHODS` and to the list of methods in its tests.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from common import likeness, linear
from common.arrays import Leaf, Unchecked
from common.errors import UserError, check_choice, local_path, writing
from common.files import read_arrays, write_arrays
from common.likeness import Profile
from common.linear import (
    EPSILON,
    STEPS,
    least_squares,
    polar,
    procrustes,
    ridge,
    whitened_procrustes,
)

NORMALISE = linear.NORMALISATION
ARRAYS = ("matrix", "source_means", "target_means")
VERSION = 1  # of the format of a saved aligner
MAX_STEPS = 100  # normalisation steps that a file may ask for; each is compiled
METHODS: dict[str, Callable[..., Float[Array, "d_source d_target"]]] = {
    "procrustes": procrustes,
    "least_squares": least_squares,
    "ridge": ridge,
    "whitened_procrustes": whitened_procrustes,
}


@partial(
    jax.tree_util.register_dataclass,
    data_fields=[*ARRAYS, "profile"],
    meta_fields=["normalise", "method", "source", "target"],
)
@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Aligner:
    """A linear map from a source space into a target space; a JAX pytree.

    Attributes:
      matrix: acts on normalised source rows from the right.
      source_means: the vector that each 'center' of `normalise` subtracts from source rows.
      target_means: the vector that each 'center' of `normalise` subtracts from target rows.
      normalise: steps of the normalisation, 'unit' or 'center', in their order.
      method: key of `METHODS` by which the matrix was fitted.
      source: name of the source space.
      target: name of the target space.
      profile: of the normalised rows of the source, by which `likeness` tells other vectors apart;
        None if there is none.
    """

    matrix: Annotated[Leaf, "d_source d_target"]
    source_means: Annotated[Leaf, "steps d_source"]
    target_means: Annotated[Leaf, "steps d_target"]
    normalise: tuple[str, ...]
    method: str
    source: str
    target: str
    profile: Profile | None = None

    def apply(self, vectors: Annotated[Unchecked, "n d_source"]) -> Float[Array, "n d_target"]:
        """Maps raw source vectors into the normalised target space.

        The results are not scaled to unit norm.

        Raises:
          UserError: the vectors have another dimension or are not finite, or one of them cannot be
            normalised.
        """
        return self.normalise_source(vectors) @ self.matrix

    def normalise_source(self, vectors: Annotated[Unchecked, "n d_source"]) -> Float[Array, "n d"]:
        """Normalises raw source vectors as in `fit`; raises the errors of `apply`."""
        return _prepare(vectors, self.source, self.normalise, self.source_means)[0]

    def normalise_target(self, vectors: Annotated[Unchecked, "n d_target"]) -> Float[Array, "n d"]:
        """Normalises raw target vectors as in `fit`; raises the errors of `apply`."""
        return _prepare(vectors, self.target, self.normalise, self.target_means)[0]

    def map_back(self, vectors: Annotated[Unchecked, "n d_target"]) -> Float[Array, "n d_source"]:
        """Maps raw target vectors, for instance queries, to where source vectors are searched.

        It is y W' for normalised rows y, where the singular values of W are set to one: the matrix
        of orthonormal rows or columns that is nearest to W'. Where W is orthogonal already, this is
        the inverse. A ridge map shortens the directions that its pairs have left uncertain; the
        transpose would shorten them once more, and the inverse would lengthen them. Raises the
        errors of `apply`.
        """
        return self.normalise_target(vectors) @ self._backwards

    @cached_property
    def _backwards(self) -> Float[Array, "d_target d_source"]:
        """The matrix of `map_back`, which is decomposed once for all blocks of a file."""
        return polar(self.matrix).T

    def likeness(self, vectors: Annotated[Unchecked, "n d_source"]) -> float | None:
        """How like the source's raw vectors are to new ones, see `common.likeness.likeness`.

        It is about 1 for vectors of the source, and about 0 for those of another space, which the
        map is not for; None if it is not known. Raises the errors of `apply`.
        """
        rows = self.normalise_source(vectors)
        return None if self.profile is None else likeness.likeness(self.profile, rows)

    def inverse(self) -> "Aligner":
        """The aligner from the target space to the source space, by the pseudo-inverse.

        This is the inverse if there is one, and the transpose for 'procrustes'. As every aligner,
        it is applied to raw vectors; results of `apply` are mapped back by `x @ inverse.matrix`.
        """
        return dataclasses.replace(
            self,
            matrix=jnp.linalg.pinv(self.matrix, rtol=EPSILON * max(self.matrix.shape)),
            source_means=self.target_means,
            target_means=self.source_means,
            source=self.target,
            target=self.source,
            profile=None,
        )

    def save(self, path: Path | str) -> None:
        """Writes the aligner to an .npz file, atomically; docs/vector_stores.md has its format.

        Raises:
          UserError: the file cannot be written.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["version"] = VERSION
        if profile := fields.pop("profile"):
            fields |= {f"profile_{name}": array for name, array in profile._asdict().items()}
        path = Path(local_path(path))
        with writing(path, "path"):
            write_arrays(path, fields)


def load(path: Path | str) -> Aligner:
    """Reads an aligner that `Aligner.save` has written.

    Raises:
      UserError: the file does not exist, is not an aligner, or is of a later version.
    """
    path = Path(local_path(path))
    wrong = f"The file {path} is missing or is not an aligner: correct the path or save one there."
    try:
        fields = read_arrays(path)
        version = int(fields.get("version", 0))  # the first files have none
    except Exception as error:  # NumPy raises many kinds of error for damaged or foreign files
        raise UserError(wrong) from error
    if version > VERSION:
        raise UserError(
            f"The file {path} has version {version} of the format, of which this isthmus reads "
            f"{VERSION}: install the release that wrote it, or a later one."
        )
    try:
        arrays = {name: jnp.asarray(fields[name], jnp.float32) for name in ARRAYS}
        normalise = tuple(fields["normalise"].tolist())
        names = {name: str(fields[name]) for name in ("method", "source", "target")}
        matrix, *means = arrays.values()
        profile = _stored_profile(fields, len(matrix))
        shapes = [(normalise.count("center"), dimension) for dimension in matrix.shape]
        finite = all(jnp.isfinite(x).all() for x in (*arrays.values(), *(profile or ())))
        steps = set(normalise) <= set(STEPS) and len(normalise) <= MAX_STEPS
        if not (matrix.size and [x.shape for x in means] == shapes and finite and steps):
            raise ValueError("inconsistent fields")
    except Exception as error:
        raise UserError(wrong) from error
    values: dict[str, Any] = {**arrays, **names}
    return Aligner(normalise=normalise, profile=profile, **values)


def _stored_profile(fields: Mapping[str, np.ndarray], dimension: int) -> Profile | None:
    if "profile_share" not in fields:
        return None
    arrays = (jnp.asarray(fields[f"profile_{name}"], jnp.float32) for name in Profile._fields)
    profile = Profile(*arrays)
    if profile.directions.shape != (dimension, profile.directions.size // dimension):
        raise ValueError("inconsistent fields")
    return profile._replace(share=profile.share.reshape(()))


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
    """Fits a map of a source space into a target space.

    It may be called inside `jit`; values (NaN, zero rows) are then not checked.

    Args:
      method: key of `METHODS`.
      source: all vectors of the source space, not normalised.
      target: all vectors of the target space, not normalised.
      pairs: known pairs (source row, target row); None: row i of both spaces is a pair.
      names: names of the source space and of the target space.
      normalise: 'unit' (scale rows to unit norm) and 'center' (subtract the mean), in the order in
        which they are applied to each space.
      centre_rows: number of leading rows of each space whose mean 'center' subtracts; None: all.
        In a large vocabulary, sorted by frequency, rare words would otherwise dominate the mean.
      **options: options of the method: `penalty` of 'ridge' and 'whitened_procrustes'.

    Raises:
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
    """Two spaces that are checked and normalised, and what an `Aligner` keeps of that.

    Attributes:
      source: rows.
      target: rows.
      source_means: see `Aligner`, as target_means and normalise.
      target_means: of the target.
      normalise: the steps.
      names: of the spaces.
    """

    source: Float[Array, "n d_source"]
    target: Float[Array, "m d_target"]
    source_means: Float[Array, "steps d_source"]
    target_means: Float[Array, "steps d_target"]
    normalise: tuple[str, ...]
    names: tuple[str, str]

    def aligner(
        self,
        matrix: Float[Array, "d_source d_target"],
        method: str,
        profile: Profile | None = None,
    ) -> Aligner:
        """The aligner of a map that was fitted to these rows."""
        return Aligner(
            matrix=matrix,
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
    x, source_means = _prepare(source, names[0], normalise, centre_rows=centre_rows)
    y, target_means = _prepare(target, names[1], normalise, centre_rows=centre_rows)
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


def _prepare(
    vectors,
    name: str,
    steps: tuple[str, ...],
    means: Float[Array, "steps d"] | None = None,
    centre_rows: int | None = None,
) -> tuple[Float[Array, "n d"], Float[Array, "steps d"]]:
    """Checks and normalises the vectors of a space; fits the means if none are given."""
    try:
        with np.errstate(over="ignore"):  # overflow to infinity is refused below
            x = jnp.asarray(vectors, jnp.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"The space '{name}' is not an array of numbers: give rows.") from error
    if x.ndim != 2 or (not x.size if means is None else x.shape[1] != means.shape[1]):
        wanted = "n > 0, d" if means is None else f"n, {means.shape[1]}"
        raise UserError(f"The space '{name}' has shape {list(x.shape)}: give rows [{wanted}].")
    normalised, fitted, without_direction, not_finite = _normalise(x, steps, means, centre_rows)
    if not isinstance(not_finite, Tracer):  # under `jit` there are no values to check
        zero = "cannot be scaled to unit norm (zero, too long, or equal to the mean of the space)"
        for bad, reason in ((not_finite, "are not finite in float32"), (without_direction, zero)):
            if len(rows := np.flatnonzero(bad)):
                shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
                raise UserError(f"The rows {shown} of '{name}' {reason}: correct or remove them.")
    return normalised, fitted


@partial(jax.jit, static_argnames=("steps", "centre_rows"))
def _normalise(x, steps, means, centre_rows):
    """Normalised rows, the means, and two masks: rows without a direction, rows not finite."""
    not_finite = ~jnp.isfinite(x).all(axis=1)
    fitted, min_length = jnp.zeros((0, x.shape[1])), jnp.zeros(len(x))
    without_direction = jnp.zeros(len(x), bool)
    for step in steps:
        length = jnp.linalg.norm(x, axis=1)
        if step == "unit":
            without_direction |= ~((min_length < length) & (length < jnp.inf))
        else:  # a vector that centring shortens a million times consists of rounding errors
            min_length = jnp.maximum(min_length, 1e-6 * length)
        remaining = None if means is None else means[len(fitted) :]
        x, mean = linear.normalise(x, (step,), remaining, centre_rows)
        fitted = jnp.concatenate([fitted, mean])
    return x, fitted, without_direction, not_finite
