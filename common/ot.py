"""Entropic optimal transport: differentiable for small clouds, streamed for whole vocabularies.

Conventions: P_ij = exp((u_i + v_j - M_ij) / epsilon), the marginals a and b inside u and v.
`transport` and `divergence` are thin wrappers of ott-jax: dense, batched by `vmap`. `match` is our
own, since ott 0.6.0 gives no argmax of a plan without the plan, and its online mode,
`PointCloud(batch_size=...)`, raises AttributeError on jax >= 0.9. ott takes two seconds to import,
so that it is where it is used.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from common.errors import UserError
from common.parallel import block_rows, map_rows, scan_rows
from common.sinkhorn import root

LOW = -1e30  # below every score, and finite: LOW - LOW is 0, not NaN


class Transport(NamedTuple):
    """A solved problem between two small clouds.

    Attributes:
      value: <P, C> + epsilon KL(P | a b'), from the potentials.
      cost: <P, C>.
      plan: [n, m] P.
      converged: whether the plan's marginals are right within the tolerance.
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
      u: [n] potential of x, in the unit of the cost.
      v: [m] potential of y.
      error: sum_i |sum_j P_ij - a_i| before the last iteration; the first one starts from no plan,
        so that only the error of two or more says anything.
    """

    to_y: Int[Array, " n"] | None
    to_x: Int[Array, " m"]
    u: Float[Array, " n"]
    v: Float[Array, " m"]
    error: Float[Array, ""]


@partial(jax.jit, static_argnames=("cost", "iterations"))
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

    In float32 `value` keeps five digits down to an epsilon of a millionth of the costs; the shares
    of points that tie, and with them plan, `cost` and gradients, are good to 5e-8 / epsilon.

    Args:
      x: points.
      y: points.
      a: weights of x, summing to one; None: uniform.
      b: weights of y, likewise.
      epsilon: regularisation, in the unit of the cost.
      cost: 'sqeuclidean' or 'euclidean' (gradient 0 between equal points).
      iterations: Sinkhorn iterations, all of which are done.
      tolerance: of the L1 marginal error, for `converged` alone.

    Raises:
      UserError: an unknown cost.
    """
    out = _solve(_cost(x, y, cost), epsilon, a, b, **_solver(iterations, tolerance))
    return Transport(out.reg_ot_cost, out.primal_cost, out.matrix, out.converged)


@partial(jax.jit, static_argnames=("cost", "iterations"))
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
    from ott.geometry import geometry
    from ott.tools import sinkhorn_divergence

    value, out = sinkhorn_divergence.sinkhorn_divergence(
        geometry.Geometry,
        cost_matrix=(_cost(x, y, cost), _cost(x, x, cost), _cost(y, y, cost)),
        epsilon=epsilon,
        a=a,
        b=b,
        solve_kwargs=_solver(iterations, tolerance),
    )
    return value, jnp.all(jnp.stack(out.converged))


@partial(jax.jit, static_argnames="iterations")
def plan(cost: Float[Array, "n m"], epsilon: float, *, iterations: int = 10) -> Float[Array, "n m"]:
    """The entropic plan of a given cost, uniform weights, by products with exp(-cost / epsilon).

    Several times as fast as in the log domain, where epsilon is not below a fortieth or so of the
    costs that matter: float32 ends there.

    Args:
      cost: of each pair.
      epsilon: regularisation, in the unit of the cost.
      iterations: of Sinkhorn, all of which are done.
    """
    return _solve(cost, epsilon, lse_mode=False, **_solver(iterations, 0.0)).matrix


def _solve(cost, epsilon, *weights, **options):
    from ott.geometry import geometry
    from ott.solvers import linear

    problem = geometry.Geometry(cost_matrix=cost, epsilon=epsilon)
    return linear.solve(problem, *weights, **options)


def _cost(x, y, name):
    # Not ott's point clouds: they compute the cost anew in every iteration (twice the time under
    # gradients), and their Euclidean cost (0.6.0) is sqrt(d) between equal points while it is
    # differentiated.
    _check_cost(name)
    squares = jnp.sum((x[:, None] - y) ** 2, axis=-1)
    if name == "sqeuclidean":
        return squares
    return root(squares)


def _check_cost(name):
    if name not in ("euclidean", "sqeuclidean"):
        raise UserError(f"There is no transport cost '{name}': take euclidean or sqeuclidean.")


def _solver(iterations: int, tolerance: float) -> dict:
    return {
        "min_iterations": iterations,
        "max_iterations": iterations,
        # All in one inner loop: with several, the backward pass of ott 0.6.0 starts at the wrong
        # state where minimum and maximum are equal, and gradients are off by tens of per cent.
        "inner_iterations": iterations,
        "threshold": tolerance,
        "implicit_diff": None,
    }


@partial(jax.jit, static_argnames=("iterations", "rows", "cost"))
def match(
    x: Float[Array, "n d"],
    y: Float[Array, "m d"],
    epsilon: float,
    *,
    iterations: int = 1,
    tolerance: float = 0.0,
    rows: bool = False,
    cost: str = "euclidean",
    factors: tuple[Float[Array, "n r"], Float[Array, "m r"]] | None = None,
) -> Matching:
    """Matches two clouds by the argmax of a Sinkhorn plan that is never held.

    The cost M is the Euclidean distance, or its square, which for unit rows is 2 - 2 cos; the
    weights are uniform; from u = 0, v = epsilon log b:

      u_i = epsilon log a_i - epsilon log sum_j exp((v_j - M_ij) / epsilon)
      v_j = epsilon log b_j - epsilon log sum_i exp((u_i - M_ij) / epsilon)

    As epsilon -> 0 one iteration gives u_i = min_j M_ij, v_j = min_i (M_ij - u_i): nearest
    neighbours corrected for hubness, not yet transport. All rows whose nearest neighbour is y_j
    then tie in column j. Ties go to the lower index. Each iteration is one pass over blocks of
    rows. No gradient flows.

    Distances come from squares, |x|^2 + |y|^2 - 2 xy. In float32 those below about 5e-4 of the
    norms are rounding error, and the plan's entries are good to a relative 1e-7 M / epsilon, below
    which `error` can't fall.

    Args:
      x: points.
      y: points.
      epsilon: regularisation, in the unit of the cost.
      iterations: the most iterations, at least 1.
      tolerance: stops before an iteration once the last error was not above it.
      rows: also the argmax of the plan's rows, for one more pass; that of the columns is free.
      cost: 'euclidean' or 'sqeuclidean'.
      factors: arrays left and right of fewer columns than x and y, if there are, with left right' =
        x y': nearly all of the work is that product.

    Raises:
      UserError: an unknown cost.
    """
    _check_cost(cost)
    x, y, factors = lax.stop_gradient((x, y, factors))
    n, m = len(x), len(y)
    x, y = _points(x, y, epsilon, cost, factors)

    # Potentials and distances are in units of epsilon from here on. The last change of v is kept
    # apart: (v - M) + change is the same number for entries of a row that tie, v + change - M not.
    def iterate(state):
        count, old, v, change, _, _ = state
        v = v + change
        u, scores = _iteration(x, y, v, cost)
        # The plan's row sums before this iteration are what its u puts right.
        error = jnp.abs(jnp.exp(old - u) - 1).mean()
        change = jnp.log(n) - jnp.log(m) - scores.best - jnp.log(scores.mass)
        return count + 1, u, v, change, scores.index, error

    def goes_on(state):
        return (state[0] < iterations) & (state[-1] > tolerance)

    zeros = jnp.zeros_like(y.squares)
    start = jnp.zeros_like(x.squares), zeros - jnp.log(m), zeros, jnp.zeros(m, jnp.int32)
    start = 0, *start, jnp.full_like(zeros, jnp.inf, shape=())
    # Without the loop the compiler leaves out what only a next iteration or a caller of v needs.
    end = iterate(start) if iterations == 1 else lax.while_loop(goes_on, iterate, start)
    _, u, v, change, to_x, error = end
    to_y = None
    if rows:
        to_y = map_rows(partial(_best_keys, cost), x, y, v, change, block=block_rows(m))
    return Matching(to_y, to_x, epsilon * u, epsilon * (v + change), error)


class _Scores(NamedTuple):
    """Of s_ij = log(P_ij / a_i) over rows i: the best, its row, and sum_i exp(s_ij - best)."""

    best: Float[Array, " m"]
    index: Int[Array, " m"]
    mass: Float[Array, " m"]


def _iteration(x, y, v, cost):
    """New u, and all that the new v and the argmax of the columns need, in one pass."""

    def step(carry, index, valid, block, y, v):
        # The block's rows come last: CPUs reduce both ways faster than in the plan's own order.
        logits = v[:, None] - _distance(y, block, cost)
        nearest = logits.max(axis=0)
        log_mass = jnp.log(jnp.exp(logits - nearest).sum(axis=0))
        # In this order it is exactly 0 at a neighbour nearest by far, so that such rows tie.
        score = (logits - nearest) - jnp.where(valid, log_mass, -LOW)
        best = score.max(axis=1)
        mass = jnp.exp(score - best[:, None]).sum(axis=1)
        return merge(carry, _Scores(best, index[_first(score, best)], mass)), nearest + log_mass

    def merge(first, second):
        best = jnp.maximum(first.best, second.best)
        # Strict: ties stay with the lower row.
        index = jnp.where(second.best > first.best, second.index, first.index)
        mass = first.mass * jnp.exp(first.best - best) + second.mass * jnp.exp(second.best - best)
        return _Scores(best, index, mass)

    init = _Scores(jnp.full_like(v, LOW), jnp.zeros(len(v), jnp.int32), jnp.zeros_like(v))
    scores, log_sum = scan_rows(step, init, merge, x, y, v, block=block_rows(len(v)))
    return -jnp.log(len(x.squares)) - log_sum, scores


def _best_keys(cost, x, y, v, change):
    scores = (v - _distance(x, y, cost)) + change
    return _first(scores, scores.max(axis=1))


def _first(scores: Float[Array, "n m"], best: Float[Array, " n"]) -> Int[Array, " n"]:
    """The first column of each row that has the row's best: argmax, which XLA does not vectorise.

    The compiler may compute `scores` twice, yet equal to the bit: on the way from the products to
    them are no multiplications, whose rounding depends on what they are joined with. Columns are
    counted in float32, whose minimum is fast: exact up to 2^24 of them.
    """
    m = scores.shape[1]
    column = jnp.arange(m, dtype=jnp.float32)
    return jnp.where(scores == best[:, None], column, m - 1).min(axis=1).astype(jnp.int32)


@jax.jit
def barycentric(
    queries: Float[Array, "n d"],
    keys: Float[Array, "m d"],
    potential: Float[Array, " m"],
    values: Float[Array, "m p"],
    epsilon: float,
) -> Float[Array, "n p"]:
    """Plan-weighted means of values, the plan never held: the soft form of `match`'s argmax.

    Row i of the result is sum_j w_ij values_j, where w_ij ~ exp((potential_j - M_ij) / epsilon)
    sums to one: the plan's row i, normalised. For means along the plan's rows give (x, y, v), along
    its columns (y, x, u). Gradients reach `values` alone.

    Args:
      queries: points that get a mean each.
      keys: points that have a value each.
      potential: of the keys, in the unit of the distance, from `match`.
      values: of the keys.
      epsilon: as given to `match`.
    """
    queries, keys, potential = lax.stop_gradient((queries, keys, potential))

    @jax.checkpoint  # else the gradient would keep every block of the plan
    def mean(queries, keys, potential, values):
        return jax.nn.softmax(potential - _distance(queries, keys), axis=1) @ values

    queries, keys = _points(queries, keys, epsilon)
    block = block_rows(len(values))
    return map_rows(mean, queries, keys, potential / epsilon, values, block=block)


class _Points(NamedTuple):
    """Rows whose products, and squared lengths whose sums, give squares in units of epsilon."""

    factor: Float[Array, "n r"]
    squares: Float[Array, " n"]


def _points(x, y, epsilon, cost="euclidean", factors=None) -> tuple[_Points, _Points]:
    # Scaled here, not pair by pair: a division takes as long as a square root.
    unit = epsilon if cost == "sqeuclidean" else epsilon**2
    left, right = factors or (x, y)
    return (
        _Points(left * (2 / unit), jnp.sum(x * x, axis=1) / unit),
        _Points(right, jnp.sum(y * y, axis=1) / unit),
    )


def _distance(x: _Points, y: _Points, cost: str = "euclidean") -> Float[Array, "n m"]:
    squares = jnp.maximum(x.squares[:, None] + y.squares - x.factor @ y.factor.T, 0)
    return squares if cost == "sqeuclidean" else jnp.sqrt(squares)
