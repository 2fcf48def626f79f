"""Linear maps between two spaces, as objects that keep their normalisation and say which one moves.

`fit` normalises each space by itself, fits one of `METHODS` on the pairs, and returns an `Aligner`
whose `apply` gives new vectors the same treatment. A new method is a function of two arrays of
paired rows, a line in `METHODS` and a line in the conformance table of its tests.
"""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from common.errors import UserError
from common.workdir import checked_arrays, write_arrays

STEPS = ("unit", "center")
ARRAYS = ("matrix", "moving_means", "fixed_means")
NORMALISE = ("unit", "center", "unit")
MOST_STEPS = 100  # of a file: each is compiled
EPSILON = float(np.finfo(np.float32).eps)


@jax.jit
def procrustes(x: Float[Array, "n d_x"], y: Float[Array, "n d_y"]) -> Float[Array, "d_x d_y"]:
    """The W with orthonormal rows or columns that maximises the sum of <x_i W, y_i>.

    W = U V' of the singular value decomposition U S V' of x' y (Schoenemann 1966); for d_x <= d_y
    it also minimises |x W - y|. Directions that x' y leaves open (fewer pairs than dimensions) are
    mapped isometrically but arbitrarily.
    """
    left, _, right = jnp.linalg.svd(x.T @ y, full_matrices=False)
    return left @ right


def least_squares(x: Float[Array, "n d_x"], y: Float[Array, "n d_y"]) -> Float[Array, "d_x d_y"]:
    """The W of least norm among those that minimise |x W - y|."""
    return _ridge(x, y, 0.0)


def ridge(
    x: Float[Array, "n d_x"], y: Float[Array, "n d_y"], penalty: float = 1.0
) -> Float[Array, "d_x d_y"]:
    """The W that minimises |x W - y|^2 + penalty |W|^2, sums of squares (Hoerl and Kennard 1970).

    Raises:
      UserError: the penalty is negative or not finite.
    """
    if not _traced(penalty) and not 0 <= penalty < np.inf:
        raise UserError(f"The ridge penalty is {penalty}: give a number from 0 up.")
    return _ridge(x, y, penalty)


@jax.jit
def _ridge(x, y, penalty):
    # By the singular values of x, not of x' x, whose condition in float32 would be squared; those
    # of the triangular factor are the same and cost a fraction when there are many rows.
    base, triangle = jnp.linalg.qr(x)
    left, values, right = jnp.linalg.svd(triangle, full_matrices=False)
    kept = values > EPSILON * max(triangle.shape) * values[0]
    gain = jnp.where(kept, values / jnp.where(kept, values**2 + penalty, 1.0), 0.0)
    return (right.T * gain) @ (left.T @ (base.T @ y))


METHODS: dict[str, Callable[..., Float[Array, "d_x d_y"]]] = {
    "procrustes": procrustes,
    "least_squares": least_squares,
    "ridge": ridge,
}


@partial(
    jax.tree_util.register_dataclass,
    data_fields=list(ARRAYS),
    meta_fields=["normalise", "method", "moving", "fixed"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class Aligner:
    """A linear map from the space that moves into the space that stays; a jax pytree.

    Attributes:
      matrix: acts on the right of normalised rows of the moving space.
      moving_means: one row for each 'center' in `normalise`, fitted on the moving space.
      fixed_means: likewise of the fixed space.
      normalise: the steps, in their order.
      method: the key of `METHODS` it was fitted by.
      moving: name of the space that moves.
      fixed: name of the space that stays.
    """

    matrix: Float[Array, "d_moving d_fixed"]
    moving_means: Float[Array, "steps d_moving"]
    fixed_means: Float[Array, "steps d_fixed"]
    normalise: tuple[str, ...]
    method: str
    moving: str
    fixed: str

    def apply(self, vectors: Float[ArrayLike, "n d_moving"]) -> Float[Array, "n d_fixed"]:
        """Maps raw vectors of the moving space into the fixed space's normalised coordinates.

        The images are not brought to unit length again.

        Raises:
          UserError: another dimension, NaN, infinity, or a vector that can't be normalised.
        """
        return self.normalise_moving(vectors) @ self.matrix

    def normalise_moving(self, vectors: Float[ArrayLike, "n d_moving"]) -> Float[Array, "n d"]:
        """Raw vectors of the moving space as they were before the map was fitted; see `apply`."""
        return _prepare(vectors, self.moving, self.normalise, self.moving_means)[0]

    def normalise_fixed(self, vectors: Float[ArrayLike, "n d_fixed"]) -> Float[Array, "n d"]:
        """Raw vectors of the fixed space in the coordinates that `apply` maps to; see `apply`."""
        return _prepare(vectors, self.fixed, self.normalise, self.fixed_means)[0]

    def inverse(self) -> "Aligner":
        """The aligner that moves the fixed space into the moving one, by the pseudo-inverse.

        That is the inverse where there is one and the transpose for 'procrustes'. Like every
        aligner it takes raw vectors; images of `apply` go back by `x @ inverse.matrix`.
        """
        return dataclasses.replace(
            self,
            matrix=jnp.linalg.pinv(self.matrix, rtol=EPSILON * max(self.matrix.shape)),
            moving_means=self.fixed_means,
            fixed_means=self.moving_means,
            moving=self.fixed,
            fixed=self.moving,
        )

    def save(self, path: Path | str) -> None:
        """Writes the aligner as an .npz file, whole or not at all.

        Raises:
          UserError: the file can't be written.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        try:
            write_arrays(Path(path), fields)
        except OSError as error:
            raise UserError(
                f"Cannot write the aligner {path} ({error.strerror}): choose another path."
            ) from error


def load(path: Path | str) -> Aligner:
    """Reads an aligner that `Aligner.save` wrote.

    Raises:
      UserError: no such file, or it is not an aligner.
    """
    path = Path(path)
    try:
        found = checked_arrays(path)
        arrays = [found[name].astype(np.float32) for name in ARRAYS]
        normalise = tuple(str(step) for step in found["normalise"])
        names = [str(found[name]) for name in ("method", "moving", "fixed")]
        means = [(normalise.count("center"), dimension) for dimension in arrays[0].shape]
        finite = all(np.isfinite(x).all() for x in arrays)
        fits = [x.shape for x in arrays[1:]] == means and arrays[0].size and finite
        if not fits or not set(normalise) <= set(STEPS) or len(normalise) > MOST_STEPS:
            raise ValueError("its fields disagree")
    except OSError as error:
        raise UserError(
            f"Cannot read the aligner {path} ({error.strerror or error}): correct the path."
        ) from error
    except Exception as error:  # numpy's reader raises about anything on foreign or broken bytes
        raise UserError(f"The file {path} is not an aligner: save one there again.") from error
    return Aligner(*map(jnp.asarray, arrays), normalise, *names)


def fit(
    method: str,
    moving_vectors: Float[ArrayLike, "n d_moving"],
    fixed_vectors: Float[ArrayLike, "m d_fixed"],
    *,
    pairs: Int[ArrayLike, "k 2"] | None = None,
    moving: str = "source",
    fixed: str = "target",
    normalise: tuple[str, ...] = NORMALISE,
    frequent: int | None = None,
    **options: float,
) -> Aligner:
    """Fits a map of one space into another.

    May run inside `jit`, where values (NaN, zero rows) go unchecked.

    Args:
      method: a key of `METHODS`.
      moving_vectors: the whole space that moves, raw.
      fixed_vectors: the whole space that stays.
      pairs: rows that correspond, (row of moving, row of fixed); None when row i is row i.
      moving: name of the space that moves.
      fixed: name of the space that stays.
      normalise: 'unit' and 'center' in the order in which each space takes them, by itself.
      frequent: rows of each space, its first, that 'center' takes the mean of; None: all. In large
        vocabularies rare words outnumber all others, and the mean of all is theirs.
      **options: of the method: `penalty` of 'ridge'.

    Raises:
      UserError: an unknown method, option or step, NaN, zero vectors, or pairs that don't fit.
    """
    normalise = (normalise,) if isinstance(normalise, str) else tuple(normalise)
    _check_choices(method, options, normalise)
    if moving == fixed:
        raise UserError(f"Both spaces are called '{moving}': name them apart, one of them moves.")
    x, moving_means = _prepare(moving_vectors, moving, normalise, frequent=frequent)
    y, fixed_means = _prepare(fixed_vectors, fixed, normalise, frequent=frequent)
    if pairs is not None:
        pairs = _checked_pairs(pairs, (len(x), len(y)), (moving, fixed))
        x, y = (jnp.take(z, rows, axis=0) for z, rows in zip((x, y), pairs.T, strict=True))
    elif len(x) != len(y):
        has = f"has {len(x)} vectors and '{fixed}' has {len(y)}"
        raise UserError(f"The space '{moving}' {has}: give pairs of rows, or as many of each.")
    matrix = METHODS[method](x, y, **options)
    return Aligner(matrix, moving_means, fixed_means, normalise, method, moving, fixed)


def _traced(x) -> bool:
    """Under `jit` there are shapes but no values to check."""
    return isinstance(x, jax.core.Tracer)


def _check_choices(method: str, options: dict, normalise: tuple[str, ...]) -> None:
    if method not in METHODS:
        raise UserError(f"No aligner is called '{method}': choose one of {', '.join(METHODS)}.")
    known = list(inspect.signature(METHODS[method]).parameters)[2:]
    if unknown := sorted(options.keys() - known):
        has = f"has only {', '.join(known)}" if known else "has none"
        raise UserError(f"No option of '{method}' is called '{unknown[0]}': it {has}.")
    if unknown := [step for step in normalise if step not in STEPS]:
        raise UserError(f"No normalisation is called '{unknown[0]}': choose {' or '.join(STEPS)}.")


def _checked_pairs(pairs, rows: tuple[int, int], names: tuple[str, str]) -> Int[np.ndarray, "k 2"]:
    pairs = np.asarray(pairs)
    if not pairs.size:
        raise UserError("There are no pairs to fit on: give at least one.")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        has = f"are {pairs.dtype} {list(pairs.shape)}"
        raise UserError(f"The pairs {has}: give integers [k, 2], a row of each space in a pair.")
    outside = np.argwhere((pairs < 0) | (pairs >= rows))
    if len(outside):
        pair, side = outside[0]
        has = f"row {pairs[pair, side]}: the space '{names[side]}' has 0 to {rows[side] - 1}"
        raise UserError(f"Pair {pair} names {has}.")
    return pairs


def _prepare(
    vectors,
    name: str,
    steps: tuple[str, ...],
    means: Float[Array, "steps d"] | None = None,
    frequent: int | None = None,
) -> tuple[Float[Array, "n d"], Float[Array, "steps d"]]:
    """Checks and normalises vectors; without means, fits them."""
    try:
        with np.errstate(over="ignore"):  # infinity is refused below
            x = jnp.asarray(vectors, jnp.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"The vectors of the space '{name}' are no array of numbers.") from error
    if x.ndim != 2 or 0 in x.shape[1:]:
        raise UserError(f"The vectors of the space '{name}' are {list(x.shape)}: give rows [n, d].")
    if means is None and len(x) < 1 + ("center" in steps):
        raise UserError(
            f"The space '{name}' is too small ({len(x)}): give 2 vectors, or 1 without 'center'."
        )
    if means is not None and x.shape[1] != means.shape[1]:
        has = f"has {means.shape[1]} dimensions, not {x.shape[1]}"
        raise UserError(f"The space '{name}' {has}: give vectors of that space.")
    normalised, means, lost, broken = _normalise(x, steps, means, frequent)
    if not _traced(lost):
        _refuse(broken, name, "not finite in float32")
        _refuse(lost, name, "zero, too long, or the mean of the space, and can't become unit")
    return normalised, means


def _refuse(bad: Bool[Array, " n"], name: str, reason: str) -> None:
    rows = [str(row) for row in np.flatnonzero(bad)]
    if rows:
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        raise UserError(
            f"In the space '{name}' these rows are {reason}: {', '.join(rows[:5])}{more}."
        )


@partial(jax.jit, static_argnames=("steps", "frequent"))
def _normalise(x, steps, means, frequent):
    """Also fits the means if there are none, and tells which rows have no direction left.

    And which were not finite.
    """
    broken = ~jnp.isfinite(x).all(axis=1)
    fitted, floor, lost = [], jnp.zeros(len(x)), jnp.zeros(len(x), bool)
    for step in steps:
        length = jnp.linalg.norm(x, axis=1)
        if step == "unit":
            lost |= ~((floor < length) & (length < jnp.inf))
            x = x / jnp.where(lost, 1.0, length)[:, None]
        else:
            fitted.append(x[:frequent].mean(axis=0) if means is None else means[len(fitted)])
            # What centring shortens a million times is nothing but rounding.
            x, floor = x - fitted[-1], jnp.maximum(floor, 1e-6 * length)
    means = jnp.stack(fitted) if fitted else jnp.zeros((0, x.shape[1]))
    return x, means, lost, broken
