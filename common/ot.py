"""Entropic optimal transport: differentiable for small clouds, streamed for whole vocabularies.

Conventions: P_ij = exp((u_i + v_j - M_ij) / epsilon), marginals a and b inside u and v. `transport`
and `divergence` are thin wrappers of ott-jax, dense and batched by `vmap`. `match` is our own: ott's
online mode, `PointCloud(batch_size=...)`, fails with AttributeError on jax >= 0.9 (ott 0.6.0), and
nothing in ott gives a plan's argmax without the plan.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from ott.geometry import costs, pointcloud
from ott.solvers import linear
from ott.tools import sinkhorn_divergence

from common.errors import UserError
from common.parallel import block_rows, map_rows, scan_rows

COSTS = {"euclidean": costs.Euclidean(), "sqeuclidean": costs.SqEuclidean()}
LOW = -1e30  # below every score, and finite: LOW - LOW is 0, not NaN


class Transport(NamedTuple):
    """A solved problem between two small clouds.

    Attributes:
      value: <P, C> + epsilon KL(P | a b'), from the potentials.
      cost: <P, C>.
      plan: [n, m] P.
      converged: whether the L1 error of the plan's marginal is below the tolerance.
    """

    value: Float[Array, ""]
    cost: Float[Array, ""]
    plan: Float[Array, "n m"]
    converged: Bool[Array, ""]


class Matching(NamedTuple):
    """Potentials and argmax of a streamed plan.

    Attributes:
      to_y: [n] argmax_j P_ij for each row of x; None unless asked for.
      to_x: [m] argmax_i P_ij for each row of y.
      u: [n] potential of x, in the unit of the distance.
      v: [m] potential of y.
      error: sum_i |sum_j P_ij - a_i| of the plan before the last iteration: at most 2 (1 for the
        zero start on far points), and small when iterations change nothing any more.
    """

    to_y: Int[Array, " n"] | None
    to_x: Int[Array, " m"]
    u: Float[Array, " n"]
    v: Float[Array, " m"]
    error: Float[Array, ""]


def transport(
    x: Float[Array, "n d"],
    y: Float[Array, "m d"],
    a: Float[Array, " n"] | None = None,
    b: Float[Array, " m"] | None = None,
    *,
    epsilon: float,
    cost: str = "sqeuclidean",
    iterations: int = 100,
    tolerance: float = 1e-3,
) -> Transport:
    """Solves entropic transport by a fixed number of Sinkhorn iterations, unrolled for gradients.

    Args:
      x: points.
      y: points.
      a: weights of x, summing to one; None: uniform.
      b: weights of y, likewise.
      epsilon: regularisation, in the unit of the cost.
      cost: 'sqeuclidean' or 'euclidean' (gradient 0 between equal points).
      iterations: all are done, so that `vmap` costs no more than its largest member.
      tolerance: of the marginal error, for `converged` alone.

    Raises:
      UserError: an unknown cost.
    """
    geometry = pointcloud.PointCloud(x, y, cost_fn=_cost(cost), epsilon=epsilon)
    out = linear.solve(geometry, a, b, **_solver(iterations, tolerance))
    return Transport(out.reg_ot_cost, out.primal_cost, out.matrix, out.converged)


def divergence(
    x: Float[Array, "n d"],
    y: Float[Array, "m d"],
    a: Float[Array, " n"] | None = None,
    b: Float[Array, " m"] | None = None,
    *,
    epsilon: float,
    cost: str = "sqeuclidean",
    iterations: int = 100,
    tolerance: float = 1e-3,
) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """W(x, y) - W(x, x) / 2 - W(y, y) / 2, W the `value` of `transport` (Feydy et al. 2019, eq. 3).

    Arguments as for `transport`.

    Returns:
      The divergence, and whether all three problems converged.
    """
    value, out = sinkhorn_divergence.sinkdiv(
        x,
        y,
        a=a,
        b=b,
        cost_fn=_cost(cost),
        epsilon=epsilon,
        solve_kwargs=_solver(iterations, tolerance),
    )
    return value, jnp.all(jnp.stack(out.converged))


def _cost(name: str) -> costs.CostFn:
    if name not in COSTS:
        raise UserError(f"There is no transport cost '{name}': take one of {', '.join(COSTS)}.")
    return COSTS[name]


def _solver(iterations: int, tolerance: float) -> dict:
    # One inner loop of all iterations: gradients by plain unrolling, the error computed once.
    return {
        "min_iterations": iterations,
        "max_iterations": iterations,
        "inner_iterations": iterations,
        "threshold": tolerance,
        "implicit_diff": None,
    }


@partial(jax.jit, static_argnames="rows")
def match(
    x: Float[Array, "n d"],
    y: Float[Array, "m d"],
    epsilon: float,
    *,
    iterations: int = 1,
    tolerance: float = 0.0,
    rows: bool = False,
) -> Matching:
    """Matches two clouds by the argmax of a Sinkhorn plan that is never held.

    The cost M is the Euclidean distance, the weights are uniform; from u = 0, v = epsilon log b:

      u_i = epsilon log a_i - epsilon log sum_j exp((v_j - M_ij) / epsilon)
      v_j = epsilon log b_j - epsilon log sum_i exp((u_i - M_ij) / epsilon)

    As epsilon -> 0 one iteration gives u_i = min_j M_ij, v_j = min_i (M_ij - u_i): nearest
    neighbours corrected for hubness, not yet transport. Ties go to the lower index. Each iteration
    is one pass over blocks of rows; there is no gradient.

    Distances come from squares, M^2 = |x|^2 + |y|^2 - 2 xy, so in float32 those below about 5e-4 of
    the norms are rounding error, and so is `error` below about 1e-7 |M| / epsilon.

    Args:
      x: points.
      y: points.
      epsilon: regularisation, in the unit of the distance.
      iterations: the most iterations, at least 1.
      tolerance: stops early once the error is not above it.
      rows: also the argmax of the plan's rows, for one more pass; the columns' come for free.
    """
    x, y = lax.stop_gradient((x, y))
    n, m = x.shape[0], y.shape[0]
    log_a, log_b = -epsilon * jnp.log(n), -epsilon * jnp.log(m)

    def iterate(state):
        count, u, v, _, _ = state
        new_u, scores = _iteration(x, y, v, epsilon, log_a)
        # The plan's row sums before this iteration are what its new u would put right.
        error = jnp.abs(jnp.exp((u - new_u) / epsilon) - 1).mean()
        v = log_b - scores.best - epsilon * jnp.log(scores.mass)
        return count + 1, new_u, v, scores.index, error

    def goes_on(state):
        return (state[0] < iterations) & (state[4] > tolerance)

    start = (0, jnp.zeros_like(x, shape=n), jnp.full_like(y, log_b, shape=m))
    start += (jnp.zeros(m, jnp.int32), jnp.full_like(x, jnp.inf, shape=()))
    _, u, v, to_x, error = lax.while_loop(goes_on, iterate, start)
    to_y = nearest(x, y, v) if rows else None
    return Matching(to_y, to_x, u, v, error)


class _Scores(NamedTuple):
    """Of s_ij = u_i - M_ij over rows i: the best, its row, sum of exp((s - best) / epsilon)."""

    best: Float[Array, " m"]
    index: Int[Array, " m"]
    mass: Float[Array, " m"]


def _iteration(x, y, v, epsilon, log_a):
    """New u, and all that the update of v and the argmax of the columns need: one pass."""

    def step(carry, index, valid, block, y, v):
        distance = _distance(block, y)
        u = log_a - epsilon * jax.nn.logsumexp((v - distance) / epsilon, axis=1)
        score = jnp.where(valid, u, LOW)[:, None] - distance
        best = score.max(axis=0)
        first = jnp.min(jnp.where(score == best, index[:, None], jnp.iinfo(jnp.int32).max), axis=0)
        mass = jnp.exp((score - best) / epsilon).sum(axis=0)
        return merge(carry, _Scores(best, first, mass)), u

    def merge(first, second):
        best = jnp.maximum(first.best, second.best)
        # Strict: ties stay with the lower row.
        index = jnp.where(second.best > first.best, second.index, first.index)
        mass = first.mass * jnp.exp((first.best - best) / epsilon)
        return _Scores(best, index, mass + second.mass * jnp.exp((second.best - best) / epsilon))

    m = y.shape[0]
    low = jnp.full_like(y, LOW, shape=m)
    init = _Scores(low, jnp.zeros(m, jnp.int32), jnp.zeros_like(low))
    scores, u = scan_rows(step, init, merge, x, y, v, block=block_rows(m))
    return u, scores


def _distance(x, y):
    squares = jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - 2 * x @ y.T
    return jnp.sqrt(jnp.maximum(squares, 0))
