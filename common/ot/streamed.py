"""Entropic transport between two large clouds, streamed over blocks of rows.

The plan is never held, so memory is O(n d + block n). ott 0.6.0 gives no argmax of a plan without
the plan, and its online mode, `PointCloud(batch_size=...)`, raises AttributeError on jax >= 0.9.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common.arrays import RealNumber
from common.errors import check_choice
from common.parallel import block_rows, map_rows, scan_rows
from common.retrieval import first_largest

# In units of the largest norm, or of its square if that is the cost. The plans of a smaller epsilon
# differ in nothing that float32 resolves: their rows are hard.
MIN_EPSILON = 1e-9
LOW = -1e30  # below every score, and finite: LOW - LOW is 0, not NaN


class Matching(NamedTuple):
    """Potentials and argmax of a streamed plan P_ij = exp((u_i + v_j - M_ij) / epsilon).

    Attributes:
      to_y: argmax_j P_ij for each row of x; None unless asked for.
      to_x: argmax_i P_ij for each row of y.
      u: potential of x, in the unit of the cost; it includes epsilon log a.
      v: potential of y, in the unit of the cost; it includes epsilon log b.
      error: sum_i |sum_j P_ij - a_i| before the last iteration. The first iteration starts without
        a plan, so the error is meaningful after two or more.
    """

    to_y: Int[Array, " n"] | None
    to_x: Int[Array, " m"]
    u: Float[Array, " n"]
    v: Float[Array, " m"]
    error: Float[Array, ""]


@partial(jax.jit, static_argnames=("iterations", "rows", "cost"))
def match(
    x: Float[Array, "n d"],
    y: Float[Array, "m d"],
    epsilon: RealNumber,
    *,
    iterations: int = 1,
    tolerance: RealNumber = 0.0,
    rows: bool = False,
    cost: str = "euclidean",
    factors: tuple[Float[Array, "n r"], Float[Array, "m r"]] | None = None,
) -> Matching:
    """Matches two clouds by the argmax of a Sinkhorn plan with uniform weights a and b.

    The cost M is the Euclidean distance, or its square, which for unit rows is 2 - 2 cos. From
    u = 0, v = epsilon log b:

      u_i = epsilon log a_i - epsilon log sum_j exp((v_j - M_ij) / epsilon)
      v_j = epsilon log b_j - epsilon log sum_i exp((u_i - M_ij) / epsilon)

    Each iteration is one pass over blocks of rows. As epsilon -> 0, one iteration gives
    u_i = min_j M_ij and v_j = min_i (M_ij - u_i): nearest neighbours corrected for hubness, not yet
    transport. All rows whose nearest neighbour is y_j are then tied in column j. Ties go to the
    lower index. No gradient is propagated.

    Distances are computed from squares, |x|^2 + |y|^2 - 2 xy. In float32, distances below about
    5e-4 times the norms are rounding error, and entries of the plan have a relative error of
    1e-7 M / epsilon, below which `error` cannot fall.

    Args:
      x: points.
      y: points.
      epsilon: regularisation, in the unit of the cost; `MIN_EPSILON` stands for zero and for
        whatever is smaller.
      iterations: maximal number of iterations, at least 1.
      tolerance: no further iteration is done once the error is at most this.
      rows: whether to compute `to_y`, which costs one more pass; `to_x` costs nothing.
      cost: 'euclidean' or 'sqeuclidean'.
      factors: arrays `left` and `right` with left right' = x y' and fewer columns than x and y, if
        such are known. Most of the time is spent on that product.

    Raises:
      UserError: the cost is unknown.
    """
    check_choice("cost", cost, ("euclidean", "sqeuclidean"))
    x, y, factors = lax.stop_gradient((x, y, factors))
    n, m, epsilon = len(x), len(y), _at_least_resolved(epsilon, x, y, cost)
    points_x, points_y = _points(x, y, epsilon, cost, factors)

    # Potentials and distances are in units of epsilon from here on. The last change of v is stored
    # separately: (v - M) + change is the same number for all tied entries of a row, because
    # v - M is; v + change - M is not.
    def iterate(state):
        count, old, v, change, _, _ = state
        v = v + change
        u, scores = _iteration(points_x, points_y, v, cost)
        # The new u corrects the row sums of the previous plan, so their error follows from it.
        error = jnp.abs(jnp.exp(old - u) - 1).mean()
        change = jnp.log(n) - jnp.log(m) - scores.best - jnp.log(scores.mass)
        return count + 1, u, v, change, scores.index, error

    def continues(state):
        return (state[0] < iterations) & (state[-1] > tolerance)

    zeros = jnp.zeros_like(points_y.squares)
    start = jnp.zeros_like(points_x.squares), zeros - jnp.log(m), zeros, jnp.zeros(m, jnp.int32)
    start = 0, *start, jnp.full_like(zeros, jnp.inf, shape=())
    # Without a loop the compiler omits what is needed only by a next iteration or by users of v.
    end = iterate(start) if iterations == 1 else lax.while_loop(continues, iterate, start)
    _, u, v, change, to_x, error = end
    to_y = None
    if rows:
        best = partial(_best_keys, cost)
        to_y = map_rows(best, points_x, points_y, v, change, block=block_rows(m))
    return Matching(to_y=to_y, to_x=to_x, u=epsilon * u, v=epsilon * (v + change), error=error)


class _Scores(NamedTuple):
    """Of s_ij = log(P_ij / a_i) over rows i: the best, its row, and sum_i exp(s_ij - best)."""

    best: Float[Array, " m"]
    index: Int[Array, " m"]
    mass: Float[Array, " m"]


def _iteration(x, y, v, cost):
    """The new u, and what the new v and the argmax of the columns need, in one pass."""

    def step(carry, index, valid, block, y, v):
        # The block's rows are the last axis: CPUs reduce both axes faster in this layout.
        logits = v[:, None] - _distance(y, block, cost)
        nearest = logits.max(axis=0)
        log_mass = jnp.log(jnp.exp(logits - nearest).sum(axis=0))
        # In this order the score is exactly 0 at a neighbour much nearer than all others, so that
        # all rows with such a neighbour are tied.
        score = (logits - nearest) - jnp.where(valid, log_mass, -LOW)
        best, place = first_largest(score, axis=1)
        mass = jnp.exp(score - best[:, None]).sum(axis=1)
        scores = _Scores(best, index[place], mass)
        return merge(carry, scores), nearest + log_mass

    def merge(first, second):
        best = jnp.maximum(first.best, second.best)
        # A strict comparison, so that ties stay with the lower row.
        index = jnp.where(second.best > first.best, second.index, first.index)
        mass = first.mass * jnp.exp(first.best - best) + second.mass * jnp.exp(second.best - best)
        return _Scores(best, index, mass)

    init = _Scores(jnp.full_like(v, LOW), jnp.zeros(len(v), jnp.int32), jnp.zeros_like(v))
    scores, log_sum = scan_rows(step, init, merge, x, y, v, block=block_rows(len(v)))
    return -jnp.log(len(x.squares)) - log_sum, scores


def _best_keys(cost, x, y, v, change):
    scores = (v - _distance(x, y, cost)) + change
    return first_largest(scores, axis=1)[1]


@jax.jit
def barycentric(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    potential: Float[Array, " m"],
    values: Float[Array, "m p"],
    epsilon: RealNumber,
) -> Float[Array, "n p"]:
    """Plan-weighted means of values: the soft form of the argmax of `match`.

    Row i of the result is sum_j w_ij values_j, where w_ij ~ exp((potential_j - M_ij) / epsilon)
    sums to one over j: row i of the plan, normalised. For means along the plan's rows pass
    (x, y, v), for means along its columns (y, x, u). M is the Euclidean distance. The plan is not
    held. Gradients are propagated to `values` only.

    Args:
      queries: points for which a mean is computed.
      keys: points that have a value each.
      potential: of the keys, in the unit of the distance, from `match`.
      values: of the keys.
      epsilon: as given to `match`.
    """
    queries, keys, potential = lax.stop_gradient((queries, keys, potential))
    epsilon = _at_least_resolved(epsilon, queries, keys)

    @jax.checkpoint  # otherwise every block of the plan would be stored for the gradient
    def mean(queries, keys, potential, values):
        return jax.nn.softmax(potential - _distance(queries, keys), axis=1) @ values

    query_points, key_points = _points(queries, keys, epsilon)
    block = block_rows(len(values))
    return map_rows(mean, query_points, key_points, potential / epsilon, values, block=block)


class _Points(NamedTuple):
    """Rows and their squared norms, scaled so that squared distances are in units of epsilon."""

    factor: Float[Array, "n r"]
    squares: Float[Array, " n"]


def _at_least_resolved(epsilon, x, y, cost="euclidean") -> Float[Array, ""]:
    """The regularisation, or that whose plan is as hard as float32 can tell."""
    largest = jnp.maximum(*(jnp.sum(points * points, axis=1).max() for points in (x, y)))
    largest = jnp.where(largest > 0, largest, 1.0)
    unit = largest if cost == "sqeuclidean" else jnp.sqrt(largest)
    return jnp.maximum(epsilon, MIN_EPSILON * unit)


def _points(x, y, epsilon, cost="euclidean", factors=None) -> tuple[_Points, _Points]:
    # Scaling the points instead of the distances saves a division for each pair.
    unit = epsilon if cost == "sqeuclidean" else epsilon**2
    left, right = factors or (x, y)
    return (
        _Points(left * (2 / unit), jnp.sum(x * x, axis=1) / unit),
        _Points(right, jnp.sum(y * y, axis=1) / unit),
    )


def _distance(x: _Points, y: _Points, cost: str = "euclidean") -> Float[Array, "n m"]:
    squares = jnp.maximum(x.squares[:, None] + y.squares - x.factor @ y.factor.T, 0)
    return squares if cost == "sqeuclidean" else jnp.sqrt(squares)
