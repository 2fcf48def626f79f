"""Maps of two spaces into common coordinates by a framework of steps (Artetxe et al. 2018).

S0  normalisation of each space              `linear.normalise`
S1  whitening of each space                  `fit`, with `whiten`
S2  orthogonal maps                          `fit`, `fit_covariance`
S3  re-weighting of the common coordinates   `fit`, `fit_covariance`, with `reweight`
S4  de-whitening, which undoes S1            `fit`, with `whiten`
S5  dimensionality reduction                 the first columns of the maps
"""

from collections.abc import Callable
from functools import partial

import jax
from jaxtyping import Array, Float

from common.arrays import RealNumber
from common.linear import Maps, Whitening, svd


@jax.jit
def fit_covariance(covariance: Float[Array, "d_source d_target"], reweight: RealNumber) -> Maps:
    """S2 and S3: U s^(reweight/2) and V s^(reweight/2) of the covariance U s V', s_1 set to 1."""
    left, values, right = svd(covariance)
    scale = (values / values[0]) ** (reweight / 2)
    return Maps(left * scale, right.T * scale)


@partial(jax.jit, static_argnames=("whiten", "reweight"))
def fit(
    x: Float[Array, "n d_source"],
    y: Float[Array, "n d_target"],
    *,
    whiten: Callable[[Array], Whitening] | None = None,
    reweight: tuple[float, float] = (0.0, 0.0),
) -> Maps:
    """S1 to S4: the maps of both spaces, fitted to paired, normalised rows.

    With whitenings A and B, U s V' = (x A)' (y B), so that x A U and y B V are as correlated as
    possible. The maps are A U s^p U' A^-1 U and B V s^q V' B^-1 V for powers p and q (`reweight`).
    Without `whiten`, A and B are the identity.
    """
    if whiten is None:
        left, values, right = svd(x.T @ y)
        return Maps(left * values ** reweight[0], right.T * values ** reweight[1])
    of_x, of_y = whiten(x), whiten(y)
    cross = (x @ of_x.matrix).T @ (y @ of_y.matrix)
    left, values, right = svd(cross)
    sides = ((of_x, left, reweight[0]), (of_y, right.T, reweight[1]))
    return Maps(
        *(
            (whitening.matrix @ rotation * values**power)
            @ (rotation.T @ whitening.inverse @ rotation)
            for whitening, rotation, power in sides
        )
    )
