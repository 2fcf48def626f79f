"""Linear algebra on the rows of a space: normalisation, whitening and maps between paired rows.

Vectors are rows, so a map acts from the right: x @ W.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from common.arrays import AnyArray, RealNumber, SameArray
from common.errors import check_choice
from common.parallel import on_tpu

EPSILON = float(np.finfo(np.float32).eps)
STEPS = ("unit", "center")  # of a normalisation
NORMALISATION = ("unit", "center", "unit")


class Maps(NamedTuple):
    """Maps of two spaces into common coordinates, from the right of their rows."""

    source: Float[Array, "d_source r"]
    target: Float[Array, "d_target r"]


class Normalised(NamedTuple):
    """Normalised rows, and the mean that each step 'center' has subtracted."""

    rows: Float[Array, "n d"]
    means: Float[Array, "steps d"]


class Moment(NamedTuple):
    """The eigenvalues of the second moment of a space's rows, ascending, and its eigenvectors."""

    values: Float[Array, " d"]
    vectors: Float[Array, "d d"]


class Whitening(NamedTuple):
    """A matrix that whitens rows, and its inverse or pseudo-inverse."""

    matrix: Float[Array, "d d"]
    inverse: Float[Array, "d d"]


def unit(x: Float[SameArray, "... d"]) -> Float[SameArray, "... d"]:
    """Divides rows (last axis) by their Euclidean norm; a zero row stays zero, with gradient one.

    A NumPy array is normalised by NumPy in its own precision, any other array by JAX.
    """
    return _unit(x, np) if isinstance(x, np.ndarray) else _unit_by_jax(x)


def _unit(x, xp) -> Any:
    squares = xp.sum(x * x, axis=-1, keepdims=True)
    length = xp.sqrt(xp.where(squares > 0, squares, 1))
    # The `where` keeps XLA from multiplying by a reciprocal root, which has one rounding more.
    return x / xp.where(squares > 0, length, 1)


_unit_by_jax = jax.jit(partial(_unit, xp=jnp))


@jax.jit
def apply_map(x: Float[Array, "n d"], matrix: Float[Array, "d r"]) -> Float[Array, "n r"]:
    """Unit rows of x W, in one program."""
    return unit(x @ matrix)


@jax.jit
def apply_maps(
    spaces: tuple[Float[Array, "n d"], Float[Array, "m e"]],
    maps: tuple[Float[Array, "d r"], Float[Array, "e r"]],
) -> tuple[Float[Array, "n r"], Float[Array, "m r"]]:
    """`apply_map` for two spaces."""
    return apply_map(spaces[0], maps[0]), apply_map(spaces[1], maps[1])


@partial(jax.jit, static_argnames=("steps", "centre_rows"))
def normalise(
    x: Float[Array, "n d"],
    steps: tuple[str, ...] = NORMALISATION,
    means: Float[Array, "steps d"] | None = None,
    centre_rows: int | None = None,
) -> Normalised:
    """Applies steps in their order: 'unit' (rows of unit norm) and 'center' (columns of zero mean).

    Args:
      x: rows.
      steps: of the normalisation.
      means: what each 'center' subtracts; None: the mean of the rows at this step.
      centre_rows: number of leading rows whose mean that is; None: all.

    Raises:
      UserError: an unknown step.
    """
    fitted = []
    for step in steps:
        check_choice("normalisation", step, STEPS)
        if step == "unit":
            x = unit(x)
        else:
            fitted.append(x[:centre_rows].mean(axis=0) if means is None else means[len(fitted)])
            x = x - fitted[-1]
    return Normalised(x, jnp.stack(fitted) if fitted else jnp.zeros((0, x.shape[1])))


@jax.jit
def preprocess(
    x: Float[Array, "n d"], centre_of: Float[Array, "m d"] | None = None
) -> Float[Array, "n d"]:
    """Scales rows to unit norm, centres them, and scales them to unit norm again.

    The vectors of an encoder often share a large mean. Without centring it is a part of every
    cosine, and the similarities of two encoders do not correspond.

    Args:
      x: rows, none of them zero.
      centre_of: rows whose mean after scaling is subtracted, for instance the training rows when
        `x` are test rows; None: `x` itself.
    """
    means = None if centre_of is None else unit(centre_of).mean(axis=0)[None]
    return normalise(x, NORMALISATION, means).rows


@jax.jit
def second_moment(x: Float[Array, "n d"]) -> Moment:
    """The eigendecomposition of x' x / n."""
    return Moment(*jnp.linalg.eigh(x.T @ x / x.shape[0]))


@jax.jit
def whitening(
    x: Float[Array, "n d"], power: RealNumber = 1.0, penalty: RealNumber = 0.0
) -> Float[Array, "d d"]:
    """The matrix C^(-power/2), where C = x' x / n + penalty I with the second moment of the rows.

    Args:
      x: rows, centred if C is to be their covariance.
      power: 0 is the identity, 1 whitens, -1 undoes 1; values between whiten partly.
      penalty: the larger it is, the nearer is the matrix to a multiple of the identity.
    """
    return whitening_of(second_moment(x), power, penalty)


@jax.jit
def whitening_of(
    moment: Moment, power: RealNumber, penalty: RealNumber = 0.0
) -> Float[Array, "d d"]:
    """`whitening` by a second moment, which several powers share."""
    values = moment.values + penalty
    # The lower limit keeps directions without variance from being scaled up to noise.
    values = jnp.maximum(values, 1e-6 * values[-1])
    return (moment.vectors * values ** (-power / 2)) @ moment.vectors.T


def whitening_on_span(x: Float[AnyArray, "n d"]) -> Whitening:
    """The matrix V diag(1/s) V' of x = U diag(s) V', and its pseudo-inverse.

    The columns of the whitened rows are orthonormal on the span of the rows; both matrices are zero
    off it. Computed from x, not from x' x, whose condition number is the square of that of x.
    """
    _, values, right = jnp.linalg.svd(x, full_matrices=False)
    kept = values > EPSILON * max(x.shape) * values[0]
    gain = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    return Whitening((right.T * gain) @ right, (right.T * values * kept) @ right)


@jax.jit
def procrustes(x: Float[Array, "n d_x"], y: Float[Array, "n d_y"]) -> Float[Array, "d_x d_y"]:
    """The W with orthonormal rows or columns that maximises sum_i <x_i W, y_i>.

    W = U V' of the singular value decomposition x' y = U S V' (Schoenemann 1966). If d_x <= d_y, it
    also minimises |x W - y|. With fewer pairs than dimensions W is not unique: directions that x' y
    does not determine are mapped isometrically but arbitrarily.
    """
    return polar(x.T @ y)


@jax.jit
def whitened_procrustes(
    x: Float[Array, "n d_x"], y: Float[Array, "n d_y"], penalty: RealNumber = 1.0
) -> Float[Array, "d_x d_y"]:
    """An orthogonal map between whitened rows, whose images are coloured as the rows of y are.

    W = A polar(A x' y B) B^-1 with A = (x' x + penalty I)^(-1/2), and B likewise of y. Without a
    penalty these are the steps S1, S2 and S4 of Artetxe et al. 2018; with a large one it is
    `procrustes`. The second moments of few rows are uncertain where they are small, which a penalty
    conceals.
    """
    share = penalty / len(x)
    a, moment = whitening(x, 1.0, share), second_moment(y)
    b, inverse = (whitening_of(moment, power, share) for power in (1.0, -1.0))
    return a @ polar(a @ (x.T @ y) @ b) @ inverse


@jax.custom_jvp
@jax.jit
def polar(c: Float[AnyArray, "d_x d_y"]) -> Float[Array, "d_x d_y"]:
    """The W with orthonormal rows or columns that maximises <W, c>: W = U V' of c = U S V'.

    It is not unique if c is rank-deficient; one of the maximisers is returned, and the derivative
    is not finite.

    The compiler of TPUs makes four times as much code of a singular value decomposition as of the
    QR decompositions by which W is computed there (Nakatsukasa et al. 2010, "Optimizing Halley's
    iteration for computing the matrix polar decomposition").
    """
    if on_tpu():
        return polar_by_qr(c)
    left, _, right = jnp.linalg.svd(c, full_matrices=False)
    return left @ right


@polar.defjvp
def _polar_jvp(primals, tangents):
    """The derivative from c = U S V' and M = U' dc V.

        dW = U [(M - M')_ij / (s_i + s_j)] V' + (1 - U U') dc V S^-1 V' + U S^-1 U' dc (1 - V V')

    The first term turns W within its span, and the others leave the span on the longer side. There
    are no differences of singular values, as there are in the derivatives of U and V.
    """
    (c,), (tangent,) = primals, tangents
    left, values, right = jnp.linalg.svd(c, full_matrices=False)
    inner = left.T @ tangent @ right.T
    turned = left @ ((inner - inner.T) / (values[:, None] + values)) @ right
    rows, columns = (tangent @ right.T) / values, (left.T @ tangent) / values[:, None]
    off_columns = (rows - left @ (left.T @ rows)) @ right
    off_rows = left @ (columns - (columns @ right.T) @ right)
    return polar(c), turned + off_columns + off_rows


def polar_by_qr(c: Float[AnyArray, "d_x d_y"]) -> Float[Array, "d_x d_y"]:
    """`polar` by the QR-based dynamically weighted Halley iteration."""
    if c.shape[0] < c.shape[1]:
        return polar_by_qr(c.T).T
    return jax.scipy.linalg.polar(c, method="qdwh")[0]


def least_squares(
    x: Float[AnyArray, "n d_x"], y: Float[AnyArray, "n d_y"]
) -> Float[Array, "d_x d_y"]:
    """The W of least norm among those that minimise |x W - y|^2."""
    return ridge(x, y, 0.0)


@jax.jit
def ridge(
    x: Float[Array, "n d_x"], y: Float[Array, "n d_y"], penalty: RealNumber = 1.0
) -> Float[Array, "d_x d_y"]:
    """The W that minimises |x W - y|^2 + penalty |W|^2 (Hoerl and Kennard 1970)."""
    # The triangular factor of x has the singular values of x and fewer rows. A decomposition of
    # x' x would square the condition number, which float32 does not allow.
    base, triangle = jnp.linalg.qr(x)
    left, values, right = jnp.linalg.svd(triangle, full_matrices=False)
    kept = values > EPSILON * max(triangle.shape) * values[0]
    gain = jnp.where(kept, values / jnp.where(kept, values**2 + penalty, 1.0), 0.0)
    return (right.T * gain) @ (left.T @ (base.T @ y))
