"""Entropic transport between many pairs of small clouds, fast enough for a training loop.

`cloud.pair_distances` is the general distance. Here p = 1, the ground distance is Euclidean and
the weights are uniform, and training is accelerated in three ways:

- Warm starts: Sinkhorn begins from potentials that the caller kept from the previous step. A step
  of training moves the clouds little, so a few iterations suffice.
- No unrolling: gradients are those at Sinkhorn's fixed point. By the envelope theorem the gradient
  of the entropic cost by the ground cost C is the plan P; that of <P, C> is given by `sensitivity`.
- The kernel is computed once per problem instead of once per iteration, and pairs are processed in
  blocks that stay in the cache.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from common.ot import safe_sqrt

MIN_SUM = 1e-30  # lower bound of row and column sums, which are divided by
MAX_EXPONENT = 80.0  # upper bound of the kernel's exponents: exp(88) overflows float32


class Potentials(NamedTuple):
    """Warm start of Sinkhorn for each pair of clouds."""

    f: Float[Array, "b M"]  # dual potential of the first cloud
    g: Float[Array, "b M"]  # dual potential of the second cloud
    alpha: Float[Array, "b M"]  # solution of `sensitivity` for the first cloud
    beta: Float[Array, "b M"]  # and for the second cloud

    @classmethod
    def zeros(cls, num_pairs: int, num_points: int) -> "Potentials":
        """Potentials of a cold start."""
        return cls(*(jnp.zeros((num_pairs, num_points)) for _ in cls._fields))


@partial(jax.jit, static_argnames=("iterations", "entropic"))
def transport(
    x: Float[Array, "b M k"],
    y: Float[Array, "b M k"],
    start: Potentials,
    *,
    epsilon: float,
    iterations: int,
    entropic: bool,
) -> tuple[Float[Array, " b"], Potentials]:
    """Entropic transport between x_i and y_i, once differentiable with respect to both.

    Args:
      x: first clouds.
      y: second clouds.
      start: potentials that the iterations begin from.
      epsilon: regularisation, in the unit of the distance.
      iterations: number of Sinkhorn iterations.
      entropic: whether values are <P, C> + epsilon sum P (log P - 1) + epsilon; otherwise <P, C>.

    Returns:
      The values, and the potentials from which a later call can continue.
    """

    def solve(inputs):
        x, y, old = inputs
        cost = _cost(x, y)
        matrix, f, g = plan(cost, old.f, old.g, epsilon, iterations)
        if entropic:
            # The column sums of the plan are exact, so the dual value needs no correction.
            value = jnp.mean(f) + jnp.mean(g)
            return value, _point_gradients(matrix, cost, x, y), old._replace(f=f, g=g)
        value = jnp.sum(matrix * cost)
        by_cost, alpha, beta = sensitivity(matrix, cost, old.alpha, old.beta, epsilon, iterations)
        return value, _point_gradients(by_cost, cost, x, y), Potentials(f, g, alpha, beta)

    inputs = lax.stop_gradient((x, y, start))
    value, (by_x, by_y), potentials = lax.map(solve, inputs, batch_size=_block_size(x.shape[1]))
    return value + _zero_with_gradient(by_x, x) + _zero_with_gradient(by_y, y), potentials


@partial(jax.jit, static_argnames="iterations")
def self_transport(
    x: Float[Array, "n M k"], start: Float[Array, "n M"], *, epsilon: float, iterations: int
) -> tuple[Float[Array, " n"], Float[Array, "n M"]]:
    """The entropic value of `transport` between each cloud and itself, with one potential each."""

    def solve(inputs):
        x, h = inputs
        cost = _cost(x, x)
        matrix, h = self_plan(cost, h, epsilon, iterations)
        by_first, by_second = _point_gradients(matrix, cost, x, x)
        return 2 * jnp.mean(h) + epsilon * (1 - jnp.sum(matrix)), by_first + by_second, h

    inputs = lax.stop_gradient((x, start))
    value, gradient, potential = lax.map(solve, inputs, batch_size=_block_size(x.shape[1]))
    return value + _zero_with_gradient(gradient, x), potential


def plan(
    cost: Float[Array, "M M"],
    f: Float[Array, " M"],
    g: Float[Array, " M"],
    epsilon: float,
    iterations: int,
) -> tuple[Float[Array, "M M"], Float[Array, " M"], Float[Array, " M"]]:
    """Sinkhorn from given potentials: P = exp((f_i + g_j - C_ij) / epsilon), marginals 1 / M.

    The potentials are absorbed into the kernel, so each entry needs one exponential for all
    iterations, and float32 suffices at any epsilon. Potentials that are wrong by more than
    69 epsilon, as at the start of a training, are corrected over several calls.

    Returns:
      The plan, whose columns sum to 1 / M, and the new potentials.
    """
    m = len(cost)
    kernel = _kernel(f, g, cost, epsilon)

    def iterate(_, scalings):
        u = 1 / (m * jnp.maximum(kernel @ scalings[1], MIN_SUM))
        return u, 1 / (m * jnp.maximum(u @ kernel, MIN_SUM))

    ones = jnp.ones_like(f)
    u, v = lax.fori_loop(0, iterations, iterate, (ones, ones))
    return u[:, None] * kernel * v, f + epsilon * jnp.log(u), g + epsilon * jnp.log(v)


def self_plan(
    cost: Float[Array, "M M"], h: Float[Array, " M"], epsilon: float, iterations: int
) -> tuple[Float[Array, "M M"], Float[Array, " M"]]:
    """The plan of a cloud and itself, whose two potentials are equal.

    Each iteration takes the mean of the old potential and Sinkhorn's update of it, which is a
    geometric mean of the scalings.
    """
    m = len(cost)
    kernel = _kernel(h, h, cost, epsilon)

    def iterate(_, u):
        return jnp.sqrt(u / (m * jnp.maximum(kernel @ u, MIN_SUM)))

    u = lax.fori_loop(0, iterations, iterate, jnp.ones_like(h))
    return u[:, None] * kernel * u, h + epsilon * jnp.log(u)


def sensitivity(
    matrix: Float[Array, "M M"],
    cost: Float[Array, "M M"],
    alpha: Float[Array, " M"],
    beta: Float[Array, " M"],
    epsilon: float,
    iterations: int,
) -> tuple[Float[Array, "M M"], Float[Array, " M"], Float[Array, " M"]]:
    """The derivative of <P, C> by C at Sinkhorn's fixed point.

    The marginals a, b of P stay fixed as C changes. With r and s the row and column sums of the
    entrywise product of P and C, solving a_i alpha_i + (P beta)_i = r_i and
    (P' alpha)_j + b_j beta_j = s_j gives the derivative P_ij (1 + (alpha_i + beta_j - C_ij) /
    epsilon). The system is solved by Gauss-Seidel, which converges at the rate of Sinkhorn.

    Args:
      matrix: the plan P.
      cost: the ground cost C.
      alpha: initial solution.
      beta: initial solution.
      epsilon: regularisation.
      iterations: of Gauss-Seidel.

    Returns:
      The derivative, alpha and beta.
    """
    weighted = matrix * cost
    ones = jnp.ones_like(alpha)
    # Matrix products: on CPUs sums over the short last axis take several times as long.
    rows, columns = weighted @ ones, ones @ weighted
    a, b = (jnp.maximum(sums, MIN_SUM) for sums in (matrix @ ones, ones @ matrix))

    def iterate(_, pair):
        alpha = (rows - matrix @ pair[1]) / a
        return alpha, (columns - alpha @ matrix) / b

    alpha, beta = lax.fori_loop(0, iterations, iterate, (alpha, beta))
    return matrix * (1 + (alpha[:, None] + beta - cost) / epsilon), alpha, beta


def _cost(x, y):
    # Coordinate by coordinate: on CPUs sums over the short last axis take several times as long.
    return safe_sqrt(sum((x[:, None, c] - y[:, c]) ** 2 for c in range(x.shape[1])))


def _kernel(f, g, cost, epsilon):
    return jnp.exp(jnp.minimum((f[:, None] + g - cost) / epsilon, MAX_EXPONENT))


def _point_gradients(by_cost, cost, x, y):
    """Gradients by x and y of a value with derivative `by_cost` by the Euclidean cost."""
    weight = jnp.where(cost > 0, by_cost / jnp.where(cost > 0, cost, 1.0), 0.0)
    ones = jnp.ones_like(x[:, 0])
    rows, columns = weight @ ones, ones @ weight
    # Coordinate by coordinate: batches of [M, M] by [M, 2] products are ten times as slow on CPUs.
    by_x = [rows * x[:, c] - weight @ y[:, c] for c in range(x.shape[1])]
    by_y = [columns * y[:, c] - x[:, c] @ weight for c in range(x.shape[1])]
    return jnp.stack(by_x, axis=1), jnp.stack(by_y, axis=1)


def _zero_with_gradient(gradient, x):
    """The value 0, whose gradient by x is `gradient`."""
    return jnp.sum(gradient * (x - lax.stop_gradient(x)), axis=(1, 2))


def _block_size(num_points: int) -> int:
    """Number of pairs per block: their plans fit in a core's cache, or occupy an accelerator."""
    size = (256 << 10) if jax.default_backend() == "cpu" else (256 << 20)
    return max(1, size // (4 * num_points**2))
