"""Linear algebra on the rows of a space: normalisation, whitening and maps between paired rows.

Vectors are rows, so a map acts from the right: x @ W.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from common.arrays import AnyArray, RealNumber
from common.errors import check_choice, check_penalty
from common.parallel import on_cpu, on_tpu
from common.rows import STEPS
from common.rows import unit as unit

EPSILON = float(np.finfo(np.float32).eps)


class Maps(NamedTuple):
    """Maps of two spaces into common coordinates, from the right of their rows."""

    source: Float[Array, "d_source r"]
    target: Float[Array, "d_target r"]


class Moment(NamedTuple):
    """The eigenvalues of the second moment of a space's rows, ascending, and its eigenvectors."""

    values: Float[Array, " d"]
    vectors: Float[Array, "d d"]


class Whitening(NamedTuple):
    """A matrix that whitens rows, and its inverse or pseudo-inverse."""

    matrix: Float[Array, "d d"]
    inverse: Float[Array, "d d"]


def centred(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Rows minus their mean; twice, since the mean of a large common offset is rounded."""
    x = x - x.mean(axis=0)
    return x - x.mean(axis=0)


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


@partial(jax.jit, static_argnames="steps")
def normalise(x: Float[Array, "n d"], steps: tuple[str, ...]) -> Float[Array, "n d"]:
    """Applies steps in their order: 'unit' (rows of unit norm) and 'center' (columns of zero mean).

    An unknown step raises a UserError.
    """
    for step in steps:
        check_choice("normalisation", step, STEPS)
        x = unit(x) if step == "unit" else x - x.mean(axis=0)
    return x


@jax.jit
def preprocess(
    x: Float[Array, "n d"], centre_of: Float[Array, "m d"] | None = None
) -> Float[Array, "n d"]:
    """Scales rows, none of them zero, to unit norm, centres them, and scales them once more.

    The mean is that of `centre_of` after scaling, for instance of the training rows; None: of `x`.
    """
    x = unit(x)
    return unit(x - (x if centre_of is None else unit(centre_of)).mean(axis=0))


@jax.jit
def second_moment(x: Float[Array, "n d"]) -> Moment:
    """The eigendecomposition of x' x / n."""
    return Moment(*jnp.linalg.eigh(x.T @ x / x.shape[0]))


@jax.jit
def whitening(
    x: Float[Array, "n d"], power: RealNumber = 1.0, penalty: RealNumber = 0.0
) -> Float[Array, "d d"]:
    """C^(-power/2), where C = x' x / n + penalty I; 1 whitens, -1 undoes 1; x is centred or not."""
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


@jax.custom_batching.sequential_vmap  # `cond` under vmap computes both of its branches
def svd(x: Float[AnyArray, "n d"]) -> tuple[Array, Array, Array]:
    """The thin U [n, r], S [r] and V' [r, d] of x = U diag(S) V', with r = min(n, d).

    Where LAPACK's fast method ends in NaN, as it may at a low rank, slow QR iterations do it.
    """
    found = tuple(jnp.linalg.svd(x, full_matrices=False))
    by_qr = partial(lax.linalg.svd, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR)
    failed = jnp.isnan(found[1]).any()
    return lax.cond(failed, lambda: tuple(by_qr(x)), lambda: found) if on_cpu() else found


def whitening_on_span(x: Float[AnyArray, "n d"]) -> Whitening:
    """The matrix V diag(1/s) V' of x = U diag(s) V', and its pseudo-inverse; 0 off the span of x.

    Computed from x, not from x' x, whose condition number is the square of that of x.
    """
    _, values, right = svd(x)
    kept = values > EPSILON * max(x.shape) * values[0]
    gain = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    return Whitening((right.T * gain) @ right, (right.T * jnp.where(kept, values, 0)) @ right)


@jax.jit
def procrustes(x: Float[Array, "n d_x"], y: Float[Array, "n d_y"]) -> Float[Array, "d_x d_y"]:
    """The W with orthonormal rows or columns that maximises sum_i <x_i W, y_i> (Schoenemann 1966).

    If d_x <= d_y, it also minimises |x W - y|. With fewer pairs than dimensions W is not unique.
    """
    return polar(x.T @ y)


def whitened_procrustes(
    x: Float[AnyArray, "n d_x"], y: Float[AnyArray, "n d_y"], penalty: RealNumber = 1.0
) -> Float[Array, "d_x d_y"]:
    """An orthogonal map between whitened rows, whose images are coloured as the rows of y are.

    W = A polar(A x' y B) B^-1 with A = (x' x + penalty I)^(-1/2), and B likewise of y. Without a
    penalty these are the steps S1, S2 and S4 of Artetxe et al. 2018; with a large one it is
    `procrustes`. Raises a UserError for a penalty that is negative or not finite.
    """
    check_penalty("penalty", penalty)
    return _whitened_procrustes(x, y, penalty)


@jax.jit
def _whitened_procrustes(x, y, penalty):
    share = penalty / len(x)
    a, moment = whitening(x, 1.0, share), second_moment(y)
    b, inverse = (whitening_of(moment, power, share) for power in (1.0, -1.0))
    return a @ polar(a @ (x.T @ y) @ b) @ inverse


@jax.custom_jvp
@jax.jit
def polar(c: Float[AnyArray, "d_x d_y"]) -> Float[Array, "d_x d_y"]:
    """The W with orthonormal rows or columns that maximises <W, c>: W = U V' of c = U S V'.

    If c is rank-deficient, it is one of several, and the derivative is not finite. On a TPU, whose
    compiler makes four times as much code of a singular value decomposition, it is `polar_by_qr`.
    """
    if on_tpu():
        return polar_by_qr(c)
    left, _, right = svd(c)
    return left @ right


@polar.defjvp
def _polar_jvp(primals, tangents):
    """The derivative from c = U S V' and M = U' dc V.

        dW = U [(M - M')_ij / (s_i + s_j)] V' + (1 - U U') dc V S^-1 V' + U S^-1 U' dc (1 - V V')

    The first term turns W within its span, and the others leave the span on the longer side. There
    are no differences of singular values, as there are in the derivatives of U and V.
    """
    (c,), (tangent,) = primals, tangents
    left, values, right = svd(c)
    inner = left.T @ tangent @ right.T
    turned = left @ ((inner - inner.T) / (values[:, None] + values)) @ right
    rows, columns = (tangent @ right.T) / values, (left.T @ tangent) / values[:, None]
    off_columns = (rows - left @ (left.T @ rows)) @ right
    off_rows = left @ (columns - (columns @ right.T) @ right)
    return polar(c), turned + off_columns + off_rows


def polar_by_qr(c: Float[AnyArray, "d_x d_y"]) -> Float[Array, "d_x d_y"]:
    """`polar` by the dynamically weighted Halley iteration (Nakatsukasa et al. 2010)."""
    if c.shape[0] < c.shape[1]:
        return polar_by_qr(c.T).T
    return jax.scipy.linalg.polar(c, method="qdwh")[0]


def least_squares(
    x: Float[AnyArray, "n d_x"], y: Float[AnyArray, "n d_y"]
) -> Float[Array, "d_x d_y"]:
    """The W of least norm among those that minimise |x W - y|^2."""
    return ridge(x, y, 0.0)


def ridge(
    x: Float[AnyArray, "n d_x"], y: Float[AnyArray, "n d_y"], penalty: RealNumber = 1.0
) -> Float[Array, "d_x d_y"]:
    """The W that minimises |x W - y|^2 + penalty |W|^2; the penalty is checked."""
    check_penalty("penalty", penalty)
    return _ridge(x, y, penalty)


@jax.jit
def _ridge(x, y, penalty):
    # The triangular factor of x has the singular values of x and fewer rows. A decomposition of
    # x' x would square the condition number, which float32 does not allow.
    base, triangle = jnp.linalg.qr(x)
    left, values, right = svd(triangle)
    kept = values > EPSILON * max(triangle.shape) * values[0]
    gain = jnp.where(kept, values / jnp.where(kept, values**2 + penalty, 1.0), 0.0)
    return (right.T * gain) @ (left.T @ (base.T @ y))
