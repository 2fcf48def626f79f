"""Entropic transport of many small problems at once, differentiable.

These are the log-domain iterations of ott-jax, with which the tests compare them. If all costs are
moderate in units of epsilon, each iteration is a product with the kernel exp(-C / epsilon) instead,
without an exponential or a logarithm, which is more than ten times as fast on CPUs.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from common.errors import UserError

MIN_WEIGHT = 1e-30  # lower limit of a weight, so that its logarithm is finite
# Kernels are used up to this cost in units of epsilon, and down to this weight. Potentials are of
# the size of the costs, so that all scalings exp(f) stay within e^60, inside the range of float32,
# and entries lost by underflow, below e^-120, carry no mass.
KERNEL_MAX_COST = 60.0
KERNEL_MIN_WEIGHT = 1e-6


class BatchSolution(NamedTuple):
    """Solution of each problem.

    In float32, `entropic_cost` and its gradient are right to five digits for epsilon down to a
    millionth of the costs. The entries of the plan have a relative error of about 1e-7 C / epsilon,
    the rounding error of the costs themselves. The same holds for `transport_cost` before
    convergence: five digits for epsilon at a hundredth of the costs, one or two at a millionth.

    Attributes:
      transport_cost: <P, C>.
      entropic_cost: <P, C> + epsilon KL(P | a b'), computed from the dual potentials.
      error: sum_j |sum_i P_ij - b_j|; the row sums are exact after each iteration.
    """

    transport_cost: Float[Array, "..."]
    entropic_cost: Float[Array, "..."]
    error: Float[Array, "..."]


def safe_sqrt(squares: Float[Array, "..."]) -> Float[Array, "..."]:
    """Square roots with gradient 0 at 0 instead of infinity: distances between equal points."""
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)


def ground_cost(
    x: Float[Array, "... n k"], y: Float[Array, "... m k"], ground: str, p: float
) -> Float[Array, "... n m"]:
    """The costs d(x_i, y_j)^p of each problem, with gradient 0 between equal points.

    Args:
      x: points; k is small.
      y: points; leading axes broadcast against those of x.
      ground: d, 'euclidean' or 'manhattan'.
      p: at least 1.

    Raises:
      UserError: the distance is unknown.
    """
    # A sum over the coordinates, written out: XLA does not vectorise a reduction over a short axis.
    differences = (x[..., :, None, i] - y[..., None, :, i] for i in range(x.shape[-1]))
    if ground == "manhattan":
        base, power = sum(jnp.abs(d) for d in differences), p
    elif ground == "euclidean":
        base, power = sum(d**2 for d in differences), p / 2
    else:
        raise UserError(f"There is no distance '{ground}': choose 'euclidean' or 'manhattan'.")
    if power == 1:
        return base
    positive = base > 0
    return jnp.where(positive, jnp.where(positive, base, 1.0) ** power, 0.0)


def solve_batch(
    cost: Float[Array, "... n m"],
    a: Float[Array, "... n"] | None,
    b: Float[Array, "... m"] | None,
    *,
    epsilon: float,
    iterations: int,
    implicit: bool = False,
) -> BatchSolution:
    """Solves each problem by a fixed number of Sinkhorn iterations.

    Args:
      cost: C of each problem, not negative.
      a: weights of the rows, summing to one; None: uniform.
      b: weights of the columns, summing to one; None: uniform.
      epsilon: regularisation, in the unit of the cost.
      iterations: number of iterations; all of them are done.
      implicit: whether gradients are those of the optimum, by the implicit function theorem, which
        is right after convergence. Otherwise they are propagated through the iterations. The
        implicit gradient of `entropic_cost` with respect to C is the plan (envelope theorem) and
        needs no linear system.
    """
    *problems, n, m = cost.shape
    (a, log_a), (b, log_b) = (_weights(w, (*problems, s)) for w, s in ((a, n), (b, m)))
    scaled = cost / epsilon  # potentials, too, are in units of epsilon from here on
    f, g = differentiable = _potentials(_sinkhorn, iterations, scaled, log_a, log_b)
    if implicit:
        f, g = lax.stop_gradient((f, g))
        differentiable = _with_implicit_gradient((f, g), scaled, a, b)
    plan = _plan(*differentiable, scaled)
    return BatchSolution(
        transport_cost=jnp.sum(plan * cost, axis=(-2, -1)),
        entropic_cost=epsilon * _dual(f, g, scaled, a, b, log_a, log_b),
        error=jnp.abs(plan.sum(axis=-2) - b).sum(axis=-1),
    )


def self_transport(
    cost: Float[Array, "... n n"],
    a: Float[Array, "... n"] | None,
    *,
    epsilon: float,
    iterations: int,
    implicit: bool = False,
) -> Float[Array, "..."]:
    """The `entropic_cost` of each problem between a cloud and itself.

    Both potentials are equal there. An iteration replaces the potential by the mean of itself and
    its Sinkhorn update (Feydy et al. 2019, section 3.1): half of the work of `solve_batch`, and
    the error at least halves each time.

    Args:
      cost: symmetric, 0 on the diagonal.
      a: weights of both rows and columns; None: uniform.
      epsilon: as in `solve_batch`.
      iterations: as in `solve_batch`.
      implicit: as in `solve_batch`.
    """
    a, log_a = _weights(a, cost.shape[:-1])
    scaled = cost / epsilon
    f, _ = _potentials(_averaged, iterations, scaled, log_a, log_a)
    if implicit:
        f = lax.stop_gradient(f)
    return epsilon * _dual(f, f, scaled, a, a, log_a, log_a)


def _weights(weights, shape):
    """Weights of the full shape, and their logarithms."""
    weights = jnp.broadcast_to(1 / shape[-1] if weights is None else weights, shape)
    return weights, jnp.log(jnp.maximum(weights, MIN_WEIGHT))


def _plan(f, g, scaled):
    return jnp.exp(f[..., :, None] + g[..., None, :] - scaled)


def _dual(f, g, scaled, a, b, log_a, log_b):
    """The dual objective in units of epsilon, for potentials that need not have converged."""
    dual = jnp.sum(a * (f - log_a), axis=-1) + jnp.sum(b * (g - log_b), axis=-1)
    return dual + 1 - _plan(f, g, scaled).sum(axis=(-2, -1))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _potentials(update: Callable, iterations: int, scaled, log_a, log_b):
    """Dual potentials: kernel updates if max(cost) / epsilon is small, else log-domain updates."""
    branches = (partial(_iterated, domain, update, iterations) for domain in (_kernel, _log_domain))
    return lax.cond(_kernel_is_safe(scaled, log_a, log_b), *branches, scaled, log_a, log_b)


def _potentials_forward(update, iterations, *inputs):
    return _potentials(update, iterations, *inputs), inputs


def _potentials_backward(update, iterations, inputs, cotangents):
    # Each branch repeats its own iterations here. Differentiating through `cond` instead would
    # store the residuals of both branches.
    def gradient(domain):
        run = partial(_iterated, domain, update, iterations)
        return lambda inputs, cotangents: jax.vjp(run, *inputs)[1](cotangents)

    branches = gradient(_kernel), gradient(_log_domain)
    return lax.cond(_kernel_is_safe(*inputs), *branches, inputs, cotangents)


_potentials.defvjp(_potentials_forward, _potentials_backward)


def _kernel_is_safe(scaled, log_a, log_b) -> Bool[Array, ""]:
    min_weight = jnp.minimum(log_a.min(), log_b.min())
    return (scaled.max() < KERNEL_MAX_COST) & (min_weight > jnp.log(KERNEL_MIN_WEIGHT))


def _iterated(domain, update, iterations, scaled, log_a, log_b):
    start, to_columns, to_rows, end = domain(scaled, log_a, log_b)

    def iterate(state, _):
        return update(state, to_columns, to_rows, domain is _kernel), None

    f, g = lax.scan(iterate, start, length=iterations)[0]
    return end(f), end(g)


def _sinkhorn(potentials, to_columns, to_rows, multiplicative):
    """One iteration of Sinkhorn."""
    del multiplicative
    g = to_columns(potentials[0])
    return to_rows(g), g


def _averaged(potentials, to_columns, to_rows, multiplicative):
    """The mean of a potential and its Sinkhorn update: the geometric mean of scalings exp(f)."""
    del to_rows
    f = potentials[0]
    f = jnp.sqrt(f * to_columns(f)) if multiplicative else (f + to_columns(f)) / 2
    return f, f


def _kernel(scaled, log_a, log_b):
    """Initial scalings u = exp(f) and v = exp(g), their two updates, and the map to f and g."""
    kernel, a, b = jnp.exp(-scaled), jnp.exp(log_a), jnp.exp(log_b)
    return (
        (jnp.ones_like(a), jnp.ones_like(b)),
        lambda u: b / jnp.einsum("...nm,...n->...m", kernel, u),
        lambda v: a / jnp.einsum("...nm,...m->...n", kernel, v),
        jnp.log,
    )


def _log_domain(scaled, log_a, log_b):
    """As `_kernel`, for f and g. The problems are the last axis: CPUs vectorise over it."""
    scaled = jnp.moveaxis(scaled, (-2, -1), (0, 1))
    log_a, log_b = (jnp.moveaxis(weights, -1, 0) for weights in (log_a, log_b))

    def log_sum_exp(x, axis):
        largest = lax.stop_gradient(x.max(axis=axis, keepdims=True))
        return jnp.log(jnp.exp(x - largest).sum(axis=axis)) + largest.squeeze(axis)

    return (
        (jnp.zeros_like(log_a), jnp.zeros_like(log_b)),
        lambda f: log_b - log_sum_exp(f[:, None] - scaled, 0),
        lambda g: log_a - log_sum_exp(g - scaled, 1),
        lambda potential: jnp.moveaxis(potential, 0, -1),
    )


def _with_implicit_gradient(potentials, scaled, a, b):
    """The same potentials z with the gradient of the optimum, dz = -H^-1 dF where F(z) = 0.

    F are the errors of both marginals and H = dF/dz. ott's ImplicitDiff is not used: the linear
    solver of 0.6.0 can't be chosen and returns NaN under vmap, because H is singular (f + c, g - c
    is the same plan).
    """
    f, g = potentials
    plan = _plan(f, g, scaled)
    error = jnp.concatenate([plan.sum(-1) - a, plan.sum(-2) - b], axis=-1)
    error = error - lax.stop_gradient(error)  # value 0, gradient dF
    plan = lax.stop_gradient(plan)
    n, m = plan.shape[-2:]
    marginals = jnp.concatenate([plan.sum(-1), plan.sum(-2)], axis=-1)
    shift = jnp.concatenate([jnp.ones(n), -jnp.ones(m)]) / (n + m)
    # shift shift' removes the null space of H. The factor 1.000001 keeps H invertible when the plan
    # splits into blocks, each of which has a null space like that.
    hessian = 1.000001 * marginals[..., None] * jnp.eye(n + m) + jnp.outer(shift, shift)
    hessian = hessian.at[..., :n, n:].add(plan).at[..., n:, :n].add(plan.mT)
    step = jnp.linalg.solve(hessian, error[..., None])[..., 0]
    return f - step[..., :n], g - step[..., n:]
