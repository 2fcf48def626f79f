"""A linear map between two spaces, as it is kept in a file and applied, without JAX.

Vectors of NumPy are mapped by NumPy if the map's arrays are NumPy's, as those of a file are.
"""

import dataclasses
import sys
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from common import likeness, rows
from common.arrays import Leaf, Unchecked
from common.errors import UserError, local_path, writing
from common.files import read_arrays, write_arrays
from common.likeness import Profile
from common.rows import STEPS, is_jax, is_traced

ARRAYS = ("matrix", "source_means", "target_means")
VERSION = 1  # of the format of a saved aligner
FEW_ROWS = 512
BLOCK_ROWS = 8192  # that NumPy normalises and maps at once
MAX_STEPS = 100  # normalisation steps that a file may ask for
EPSILON = float(np.finfo(np.float32).eps)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Aligner:
    """A linear map from a source space into a target space; a JAX pytree where JAX is loaded.

    `matrix` acts on normalised source rows from the right. `normalise` has the steps 'unit' and
    'center', of which each 'center' subtracts its row of `source_means` or `target_means`.
    `profile` is of the source's normalised rows, by which `likeness` tells other vectors apart.
    """

    matrix: Annotated[Leaf, "d_source d_target"]
    source_means: Annotated[Leaf, "steps d_source"]
    target_means: Annotated[Leaf, "steps d_target"]
    normalise: tuple[str, ...]
    method: str
    source: str
    target: str
    profile: Profile | None = None

    def apply(self, vectors: Annotated[Unchecked, "n d_source"]) -> Float[Leaf, "n d_target"]:
        """Maps raw source vectors into the normalised target space; UserError for invalid ones."""
        return prepare(vectors, self.source, self.normalise, self.source_means, self.matrix)[0]

    def normalise_source(self, vectors: Annotated[Unchecked, "n d_source"]) -> Float[Leaf, "n d"]:
        """Normalises raw source vectors as in `fit`; raises the errors of `apply`."""
        return prepare(vectors, self.source, self.normalise, self.source_means)[0]

    def normalise_target(self, vectors: Annotated[Unchecked, "n d_target"]) -> Float[Leaf, "n d"]:
        """Normalises raw target vectors as in `fit`; raises the errors of `apply`."""
        return prepare(vectors, self.target, self.normalise, self.target_means)[0]

    def map_back(self, vectors: Annotated[Unchecked, "n d_target"]) -> Float[Leaf, "n d_source"]:
        """Maps raw target vectors, queries for instance, to where source vectors are searched.

        It is y W' with the singular values of W set to one, since a ridge map shortens directions;
        those that its pairs do not determine, which are near zero, are set to zero.
        """
        steps, means = self.normalise, self.target_means
        return prepare(vectors, self.target, steps, means, self._backwards)[0]

    @cached_property
    def _backwards(self) -> Any:
        """The matrix of `map_back`, decomposed once for all blocks of a file (`linear.svd`)."""
        left, s, right = np.linalg.svd(np.asarray(self.matrix, np.float64), full_matrices=False)
        left *= s > EPSILON * np.sqrt(max(self.matrix.shape)) * s[0]
        return (left @ right).T.astype(np.float32)

    def likeness(self, vectors: Annotated[Unchecked, "n d_source"]) -> float | None:
        """How like the source's raw vectors are to new ones: about 1, or 0 for another space's.

        None if it is not known. Raises the errors of `apply`.
        """
        normalised = self.normalise_source(vectors)
        return None if self.profile is None else likeness.likeness(self.profile, normalised)

    def inverse(self) -> "Aligner":
        """The aligner from the target space to the source space, by the pseudo-inverse.

        It too is for raw vectors; results of `apply` are mapped back by `x @ inverse.matrix`.
        """
        xp = sys.modules["jax"].numpy if is_jax(self.matrix) else np
        return dataclasses.replace(
            self,
            matrix=xp.linalg.pinv(self.matrix, rtol=EPSILON * max(self.matrix.shape)),
            source_means=self.target_means,
            target_means=self.source_means,
            source=self.target,
            target=self.source,
            profile=None,
        )

    def save(self, path: Path | str) -> None:
        """Writes an .npz, atomically (docs/vector_stores.md); UserError if it cannot be written."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if "center" not in self.normalise:  # a step that changes nothing: files have one form
            fields["normalise"] = ("unit", "center", "unit") if self.normalise else ("center",)
            for name, size in zip(ARRAYS[1:], self.matrix.shape, strict=True):
                fields[name] = np.zeros((1, size), np.float32)
        fields["version"] = VERSION
        if profile := fields.pop("profile"):
            fields |= {f"profile_{name}": array for name, array in profile._asdict().items()}
        path = Path(local_path(path))
        with writing(path, "path"):
            write_arrays(path, fields)


@cache
def register_with_jax() -> None:
    """Makes `Aligner` a tree of JAX, once: where maps are fitted, and where one is loaded."""
    import jax

    names = [field.name for field in dataclasses.fields(Aligner)]
    arrays = [*ARRAYS, "profile"]
    jax.tree_util.register_dataclass(Aligner, arrays, [x for x in names if x not in arrays])


def load(path: Path | str) -> Aligner:
    """Reads an aligner, by its file or the folder of its map.npz; UserError if it is none."""
    path = Path(local_path(path))
    path = path / "map.npz" if path.is_dir() else path
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
        if "jax" in sys.modules:
            register_with_jax()
        arrays = {name: np.asarray(fields[name], np.float32) for name in ARRAYS}
        normalise = tuple(fields["normalise"].tolist())
        names = {name: str(fields[name]) for name in ("method", "source", "target")}
        matrix, *means = arrays.values()
        profile = _stored_profile(fields, len(matrix))
        shapes = [(normalise.count("center"), dimension) for dimension in matrix.shape]
        finite = all(np.isfinite(x).all() for x in (*arrays.values(), *(profile or ())))
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
    arrays: Any = (np.asarray(fields[f"profile_{name}"], np.float32) for name in Profile._fields)
    profile = Profile(*arrays)
    if profile.directions.shape != (dimension, profile.directions.size // dimension):
        raise ValueError("inconsistent fields")
    return profile._replace(share=profile.share.reshape(()))


def prepare(
    vectors,
    name: str,
    steps: tuple[str, ...],
    means: Float[Leaf, "steps d"] | None = None,
    matrix: Float[Leaf, "d e"] | None = None,
    centre_rows: int | None = None,
) -> tuple[Any, Any]:
    """Checks, normalises and maps (if a matrix is given) the vectors of a space; fits its means."""
    # Few rows of a service, whose number changes, need no program of JAX: its compilation takes
    # longer, and it would wait forever in a process that was forked.
    few = isinstance(vectors, np.ndarray) and vectors.shape < (FEW_ROWS,)
    by_jax = means is None or is_jax(vectors) or is_traced(means, matrix)
    by_jax |= is_jax(means, matrix) and not few
    try:
        x = vectors if is_jax(vectors) else np.asarray(vectors)
        if by_jax or x.dtype.kind not in "fiub":  # NumPy converts numbers in blocks
            with np.errstate(over="ignore"):  # overflow to infinity is refused below
                x = x.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"The space '{name}' is not an array of numbers: give rows.") from error
    if x.ndim != 2 or (not x.size if means is None else x.shape[1] != means.shape[1]):
        wanted = "n > 0, d" if means is None else f"n, {means.shape[1]}"
        raise UserError(f"The space '{name}' has shape {list(x.shape)}: give rows [{wanted}].")
    if by_jax:
        mapped, fitted, *bad = rows.by_jax(rows.normalise, 1, 3)(x, steps, means, centre_rows)
        mapped = mapped if matrix is None else mapped @ matrix
    else:
        mapped, fitted, *bad = _mapped_in_blocks(x, steps, means, matrix)
    if not is_traced(*bad):  # under `jit` there are no values to check
        zero = "cannot be scaled to unit norm (zero, too long, or equal to the mean of the space)"
        for wrong, reason in ((bad[1], "are not finite in float32"), (bad[0], zero)):
            if len(found := np.flatnonzero(wrong)):
                shown = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
                raise UserError(f"The rows {shown} of '{name}' {reason}: correct or remove them.")
    if is_jax(means, matrix) and not by_jax:
        mapped = sys.modules["jax"].device_put(mapped)  # without a program of JAX
    return mapped, fitted if means is None else means


def _mapped_in_blocks(x, steps, means, matrix) -> tuple[np.ndarray, ...]:
    """As `rows.normalise`, and mapped, by NumPy: of many rows only the results are in memory."""
    means, matrix = np.asarray(means), None if matrix is None else np.asarray(matrix)
    mapped = np.empty((len(x), x.shape[1] if matrix is None else matrix.shape[1]), np.float32)
    without_direction, not_finite = np.zeros((2, len(x)), bool)
    for start in range(0, len(x), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        with np.errstate(all="ignore"):  # overflow to infinity is refused by `prepare`
            some = np.asarray(x[block], np.float32)
            some, _, *bad = rows.normalise(some, steps, means, None, np)
            mapped[block] = some if matrix is None else some @ matrix
        without_direction[block], not_finite[block] = bad
    return mapped, means, without_direction, not_finite
