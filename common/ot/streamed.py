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
from common.parallel import block_rows, map_rows, max_of_parts, scan_rows, sum_of_parts
from common.retrieval import TopK, first_largest, largest_of_parts

# In units of the largest norm, or of its square if that is the cost. The plans of a smaller epsilon
# differ in nothing that float32 resolves: their rows are hard.
MIN_EPSILON = 1e-9
LOW = -1e30  # below every score, and finite: LOW - LOW is 0, not NaN


class Matching(NamedTuple):
    """Potentials and argmax of a streamed plan P_ij = exp((u_i + v_j - M_ij) / epsilon).

    `to_y` is argmax_j P_ij, None unless asked for, and `to_x` argmax_i P_ij. u and v are in the
    unit of the cost and include epsilon log a and epsilon log b. The error is
    sum_i |sum_j P_ij - a_i| before the last iteration, meaningful after two or more.
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

    The cost M is the Euclidean distance, or its square ('sqeuclidean'), which for unit rows is
    2 - 2 cos; another is a UserError. From u = 0, v = epsilon log b:

      u_i = epsilon log a_i - epsilon log sum_j exp((v_j - M_ij) / epsilon)
      v_j = epsilon log b_j - epsilon log sum_i exp((u_i - M_ij) / epsilon)

    Each iteration is one pass over blocks of rows; none follows once the error is at most
    `tolerance`. As epsilon -> 0, one iteration gives u_i = min_j M_ij and v_j = min_i (M_ij - u_i):
    nearest neighbours corrected for hubness, not yet transport. All rows whose nearest neighbour is
    y_j are then tied in column j. Ties go to the lower index. No gradient is propagated.

    Distances are computed from squares, |x|^2 + |y|^2 - 2 xy. In float32, distances below about
    5e-4 times the norms are rounding error, and entries of the plan have a relative error of
    1e-7 M / epsilon, below which `error` cannot fall.

    With `rows`, `to_y` is computed in one more pass. Most of the time is spent on the product x y',
    for which `factors` left right' = x y' with fewer columns may be given.
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

        def step(carry, block, columns):
            y, v, change = columns.rows
            scores = (columns.masked(v, LOW) - _distance(block.rows, y, cost)) + change
            best, place = first_largest(scores, axis=1)
            found = TopK(best[:, None], columns.index[place][:, None])
            return carry, largest_of_parts(found, 1).index[:, 0]

        columns = points_y, v, change
        to_y = scan_rows(step, lambda columns: (), points_x, columns, block=block_rows)[1]
    return Matching(to_y=to_y, to_x=to_x, u=epsilon * u, v=epsilon * (v + change), error=error)


class _Scores(NamedTuple):
    """Of s_ij = log(P_ij / a_i) over rows i: the best, its row, and sum_i exp(s_ij - best)."""

    best: Float[Array, " m"]
    index: Int[Array, " m"]
    mass: Float[Array, " m"]


def _iteration(x, y, v, cost):
    """The new u, and what the new v and the argmax of the columns need, in one pass."""

    def step(carry, block, columns):
        y, v = columns.rows
        # The block's rows are the last axis: CPUs reduce both axes faster in this layout.
        logits = columns.masked(v, LOW)[:, None] - _distance(y, block.rows, cost)
        nearest = max_of_parts(logits.max(axis=0))
        log_mass = jnp.log(sum_of_parts(jnp.exp(logits - nearest).sum(axis=0)))
        # In this order the score is exactly 0 at a neighbour much nearer than all others, so that
        # all rows with such a neighbour are tied.
        score = (logits - nearest) - block.masked(log_mass, -LOW)
        best, place = first_largest(score, axis=1)
        mass = jnp.exp(score - best[:, None]).sum(axis=1)
        scores = _Scores(best, block.index[place], mass)
        return merge(carry, scores), nearest + log_mass

    def merge(first, second):
        best = jnp.maximum(first.best, second.best)
        lower = (second.best == first.best) & (second.index < first.index)
        index = jnp.where((second.best > first.best) | lower, second.index, first.index)
        mass = first.mass * jnp.exp(first.best - best) + second.mass * jnp.exp(second.best - best)
        return _Scores(best, index, mass)

    def init(columns):
        v = columns.rows[1]
        return _Scores(jnp.full_like(v, LOW), jnp.zeros_like(columns.index), jnp.zeros_like(v))

    scores, log_sum = scan_rows(step, init, x, (y, v), block=block_rows)
    return -jnp.log(len(x.squares)) - log_sum, scores


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
    sums to one over j, with the Euclidean distance M. For means along the plan's rows pass
    (x, y, v) of `match`, for means along its columns (y, x, u). Gradients are of `values` only.
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
