"""Entropic transport of many small problems at once, for training loops; differentiable.

Potentials are computed by ott-jax, see `transport`. What is added here:

- Gradients, either through the iterations or, by the implicit function theorem, at the optimum.
  The implicit differentiation of ott 0.6.0 is not used: its linear solver can't be chosen and
  returns NaN under vmap, because the system is singular (f + c, g - c is the same plan).
- The gradient of a batch is computed with its values. Nothing else is stored for the backward pass.
- Warm starts: iterations continue from potentials of an earlier call. A step of training moves
  clouds little, so that a few iterations suffice.
- If all costs are moderate in units of epsilon, an iteration is a product with exp(-C / epsilon)
  instead of a log-sum-exp, which is up to ten times as fast on CPUs.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from common.arrays import AnyArray, RealNumber
from common.errors import check_choice
from common.ot.limits import FORBIDDEN, MIN_WEIGHT

MIN_EPSILON = 1e-7  # in units of the largest cost; plans of a smaller one are rounding errors
# Kernels are used up to this cost in units of epsilon, and down to this weight. Potentials are of
# the size of the costs, so that all scalings exp(f) stay within e^60, inside the range of float32,
# and entries lost by underflow, below e^-120, carry no mass.
KERNEL_MAX_COST = 60.0
KERNEL_MIN_WEIGHT = 1e-6
# After a warm start the kernel's exponents are kept within these limits. Potentials that are wrong
# by more, as at the start of a training, are corrected over several calls.
EXPONENTS = (-69.0, 80.0)
VALUES = ("transport_cost", "entropic_cost")


class Potentials(NamedTuple):
    """What a later call may continue from, in the unit of the cost."""

    f: Float[Array, "... n"]  # dual potentials of the rows
    g: Float[Array, "... m"]  # and of the columns
    alpha: Float[Array, "... n"]  # solution of `_sensitivity` for the rows
    beta: Float[Array, "... m"]  # and for the columns

    @classmethod
    def zeros(cls, problems: int, points: int) -> "Potentials":
        """Potentials of a cold start."""
        return cls(*(jnp.zeros((problems, points)) for _ in cls._fields))


class BatchSolution(NamedTuple):
    """Solution of each problem.

    In float32 the entropic cost is right to five digits for epsilon down to a millionth of the
    costs; gradients and plans are as accurate as those of `transport`. The transport cost before
    convergence has five digits for epsilon at a hundredth of the costs, one or two at a millionth.
    The error is sum_j |sum_i P_ij - b_j|: row sums are exact. The value alone is differentiable.
    """

    value: Float[Array, "..."]
    error: Float[Array, "..."]
    potentials: Potentials


class _Options(NamedTuple):
    iterations: int
    value: str
    implicit: bool
    symmetric: bool


def safe_sqrt(squares: Float[Array, "..."]) -> Float[Array, "..."]:
    """Square roots with gradient 0 at 0 instead of infinity: distances between equal points."""
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)


def ground_cost(
    x: Float[AnyArray, "... n k"], y: Float[AnyArray, "... m k"], ground: str, p: float
) -> Float[Array, "... n m"]:
    """The costs d(x_i, y_j)^p of each problem, with gradient 0 between equal points.

    Where the Manhattan distance has no derivative, at an equal coordinate, that is 0 as well. d is
    'euclidean' or 'manhattan', else a UserError; p is at least 1, and leading axes broadcast.
    """
    check_choice("distance", ground, ("euclidean", "manhattan"))
    # A sum over the coordinates, written out: XLA does not vectorise a reduction over a short axis.
    differences = (x[..., :, None, i] - y[..., None, :, i] for i in range(x.shape[-1]))
    if ground == "manhattan":
        # Not `jnp.abs`, whose gradient at 0 is 1.
        total, power = sum(d * jnp.sign(d) for d in differences), p
    else:
        total, power = sum(d**2 for d in differences), p / 2
    base = jnp.asarray(total)
    if power == 1:
        return base
    if power == 0.5:
        return safe_sqrt(base)
    positive = base > 0
    return jnp.where(positive, jnp.where(positive, base, 1.0) ** power, 0.0)


def solve_batch(
    cost: Float[AnyArray, "... n m"],
    a: Float[Array, "... n"] | None = None,
    b: Float[Array, "... m"] | None = None,
    *,
    epsilon: RealNumber,
    iterations: int,
    value: str,
    implicit: bool = False,
    start: Potentials | None = None,
    symmetric: bool = False,
) -> BatchSolution:
    """Solves each problem by a fixed number of Sinkhorn iterations, in the type of the costs.

    An infinite cost forbids its pair; weights sum to one, None: uniform. The value is
    'transport_cost', <P, C>, or 'entropic_cost', <P, C> + epsilon KL(P | a b'), computed from the
    dual potentials. Epsilon is not below `MIN_EPSILON`, and `symmetric` as in `transport`.

    Implicit gradients are those of the optimum, which is right after convergence: that of the
    entropic cost by C is the plan (envelope theorem), that of <P, C> is given by `_sensitivity`.
    Otherwise they are propagated through the iterations, which begin from `start`.
    """
    check_choice("value of a transport", value, VALUES)
    *problems, n, m = cost.shape
    cost = jnp.asarray(cost)
    a, b = (_weights(w, (*problems, size), cost.dtype) for w, size in ((a, n), (b, m)))
    forbidden = jnp.isinf(cost)
    largest = lax.stop_gradient(jnp.where(forbidden, 0, cost)).max(axis=(-2, -1))
    epsilon = jnp.asarray(epsilon, cost.dtype)
    epsilon = jnp.maximum(epsilon, MIN_EPSILON * jnp.where(largest > 0, largest, 1.0))
    units = epsilon[..., None]
    options = _Options(iterations, value, implicit, symmetric)
    if start is not None:
        start = jax.tree.map(lambda x: x.astype(cost.dtype) / units, start)
    scaled = jnp.where(forbidden, FORBIDDEN, jnp.where(forbidden, 0, cost) / units[..., None])
    found = _solve(options, scaled, a, b, start)
    return BatchSolution(
        value=epsilon * found.value,
        error=found.error,
        potentials=jax.tree.map(lambda x: lax.stop_gradient(units * x), found.potentials),
    )


def _weights(weights, shape, dtype):
    weights = jnp.asarray(1 / shape[-1] if weights is None else weights, dtype)
    return jnp.broadcast_to(weights, shape)


# From here on costs, potentials and values are in units of epsilon.
def _solve_by_domain(options: _Options, scaled, a, b, start) -> BatchSolution:
    return _by_domain(partial(_solution, options), scaled, a, b, start)


_solve = jax.custom_vjp(_solve_by_domain, nondiff_argnums=(0,))


def _solve_forward(options, scaled, a, b, start):
    def with_gradient(log_domain, start, *inputs):
        def total(inputs):
            found = _solution(options, log_domain, start, *inputs)
            return found.value.sum(), found

        return jax.grad(total, has_aux=True)(inputs)

    gradients, found = _by_domain(with_gradient, scaled, a, b, start)
    return found, (gradients, start)


def _solve_backward(_, residuals, cotangent):
    (by_cost, by_a, by_b), start = residuals
    by_value = cotangent.value[..., None]
    given = by_value[..., None] * by_cost, by_value * by_a, by_value * by_b
    return *given, jax.tree.map(jnp.zeros_like, start)


_solve.defvjp(_solve_forward, _solve_backward)


def _by_domain(function, scaled, a, b, start):
    """The function with kernel updates if they are right, and else in the log domain."""
    if start is not None:
        return function(False, start, scaled, a, b)
    kernel, log = (partial(function, log_domain, None) for log_domain in (False, True))
    safe = (scaled.max() < KERNEL_MAX_COST) & (jnp.minimum(a.min(), b.min()) > KERNEL_MIN_WEIGHT)
    return lax.cond(safe, kernel, log, scaled, a, b)


def _solution(options, log_domain, start, scaled, a, b) -> BatchSolution:
    shifted = scaled
    if start is not None:
        shifted = -jnp.clip(start.f[..., :, None] + start.g[..., None, :] - scaled, *EXPONENTS)
    f, g = _potentials(options, log_domain, shifted, a, b)
    if start is not None:
        f, g = f + start.f, g + start.g
    if options.implicit:
        f, g = lax.stop_gradient((f, g))
    plan = jnp.exp(f[..., :, None] + g[..., None, :] - scaled)
    potentials = Potentials(f, g, jnp.zeros_like(f), jnp.zeros_like(g))
    if options.value == "entropic_cost":
        # The dual objective, for potentials that need not have converged.
        log_a, log_b = (jnp.log(jnp.maximum(w, MIN_WEIGHT)) for w in (a, b))
        value = jnp.sum(a * (f - log_a), axis=-1) + jnp.sum(b * (g - log_b), axis=-1)
        value += 1 - plan.sum(axis=(-2, -1))
    else:
        value = jnp.sum(plan * scaled, axis=(-2, -1))
        if options.implicit:
            matrix, costs, old = lax.stop_gradient((plan, scaled, start or potentials))
            alpha, beta = _sensitivity(matrix, costs, old.alpha, old.beta, options.iterations)
            potentials = potentials._replace(alpha=alpha, beta=beta)
            rows, columns = a - plan.sum(-1), b - plan.sum(-2)
            missing = jnp.sum(alpha * rows, axis=-1) + jnp.sum(beta * columns, axis=-1)
            value += missing - lax.stop_gradient(missing)
    error = jnp.abs(plan.sum(axis=-2) - b).sum(axis=-1)
    return BatchSolution(value, error, potentials)


def _potentials(options, log_domain, scaled, a, b):
    """Those of ott for each problem."""
    from common.ot.dense import transport  # ott takes a second to import, and few runs need it

    settings = {"iterations": options.iterations, "symmetric": options.symmetric}

    def solve(scaled, a, b):
        solved = transport(scaled, a, b, epsilon=1.0, log_domain=log_domain, **settings)
        return solved.f, solved.g

    for _ in range(scaled.ndim - 2):
        solve = jax.vmap(solve)
    return solve(scaled, a, b)


def _sensitivity(plan, scaled, alpha, beta, iterations):
    """The solution of the linear system by which <P, C> at Sinkhorn's fixed point is derived.

    The marginals a, b of P stay fixed as C changes. With r and s the row and column sums of the
    entrywise product of P and C, solving a_i alpha_i + (P beta)_i = r_i and
    (P' alpha)_j + b_j beta_j = s_j gives the derivative P_ij (1 + (alpha_i + beta_j - C_ij) /
    epsilon) by C, alpha by a and beta by b. The system is solved by Gauss-Seidel, which converges
    at the rate of Sinkhorn.
    """
    weighted = plan * scaled
    # Matrix products: on CPUs sums over the short last axis take several times as long.
    times = partial(jnp.einsum, "...nm,...m->...n")
    transposed = partial(jnp.einsum, "...nm,...n->...m")
    ones, other = jnp.ones_like(alpha), jnp.ones_like(beta)
    r, s = times(weighted, other), transposed(weighted, ones)
    a, b = (jnp.maximum(sums, MIN_WEIGHT) for sums in (times(plan, other), transposed(plan, ones)))

    def iterate(_, pair):
        alpha = (r - times(plan, pair[1])) / a
        return alpha, (s - transposed(plan, alpha)) / b

    return lax.fori_loop(0, iterations, iterate, (alpha, beta))
