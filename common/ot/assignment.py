"""Exact transport between two sets of as many points: the permutation of largest similarity."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

from common.arrays import AnyArray
from common.ot.limits import MIN_WEIGHT

EPSILON = 0.02  # regularisation, in the unit of the similarity
TOLERANCE = 0.03  # mean error of the plan's row sums at which iterations end


def assign(a: Float[AnyArray, "n d"], b: Float[AnyArray, "n d"]) -> Int[np.ndarray, " n"]:
    """The permutation p that maximises sum_i <a_i, b_p(i)>; all n x n products are held.

    By scipy's shortest augmenting paths. A number added to a row or a column of the similarities
    changes the sum of every permutation alike; with the potentials of entropic transport added,
    nearly all paths have length one. The similarities are float32.
    """
    similarity, row_potential, column_potential = map(np.asarray, potentials(a, b)[:3])
    cost = -row_potential.astype(np.float64)[:, None] - similarity
    cost -= column_potential
    return linear_sum_assignment(cost)[1]


@partial(jax.jit, static_argnames="max_iterations")
def potentials(
    a: Float[Array, "n d"], b: Float[Array, "n d"], max_iterations: int = 3
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """Similarities S, potentials f and g, and the row sums of P = exp((S + f 1' + 1 g') / EPSILON).

    By Sinkhorn iterations with a kernel scaled so that the largest entry of each row is 1. The
    columns of P sum to one; the iterations end early once nearly all rows do as well.
    """
    similarity = a @ b.T
    largest = similarity.max(axis=1)
    kernel = jnp.exp((similarity - largest[:, None]) / EPSILON)

    def continues(state):
        done, u, _, row_sums = state
        return (done < max_iterations) & (jnp.abs(u * row_sums - 1).mean() > TOLERANCE)

    def iterate(state):
        done, _, _, row_sums = state
        u = 1 / jnp.maximum(row_sums, MIN_WEIGHT)
        v = 1 / jnp.maximum(u @ kernel, MIN_WEIGHT)
        return done + 1, u, v, kernel @ v

    ones = jnp.ones(len(similarity))
    start = iterate((0, ones, ones, kernel.sum(axis=1)))
    _, u, v, row_sums = lax.while_loop(continues, iterate, start)
    return similarity, EPSILON * jnp.log(u) - largest, EPSILON * jnp.log(v), u * row_sums
