"""Entropic transport of many pairs of small clouds at the price of a training loop.

`cloud.pairs` is the general distance; here p = 1, Euclidean cost, equal weights, and what a
training needs besides:

- Potentials go on from a start of the caller's. A step of training moves clouds little, so that a
  few iterations from the last step's potentials do the work of many from nothing.
- Nothing is unrolled, gradients are those of Sinkhorn's fixed point: of the regularised cost by the
  ground cost C it is the plan P, of <P, C> it is what `sensitivity` solves for.
- Kernel and ground cost are made once, not once an iteration, and stay in a core's cache.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from common.sinkhorn import root

FLOOR = 1e-30  # of a kernel's sums, and
HIGHEST = 80.0  # of its exponents, so that float32 stays finite


class Potentials(NamedTuple):
    """Where Sinkhorn starts from and ends at, for each pair; `Potentials.zeros` at first.

    Attributes:
      f: of the first cloud.
      g: of the second.
      alpha: solution of `sensitivity` for the first cloud.
      beta: for the second.
    """

    f: Float[Array, "b M"]
    g: Float[Array, "b M"]
    alpha: Float[Array, "b M"]
    beta: Float[Array, "b M"]

    @classmethod
    def zeros(cls, pairs: int, points: int) -> "Potentials":
        """The start from nothing."""
        return cls(*(jnp.zeros((pairs, points)) for _ in cls._fields))


@partial(jax.jit, static_argnames=("iterations", "regularised"))
def of_pairs(
    x: Float[Array, "b M k"],
    y: Float[Array, "b M k"],
    start: Potentials,
    *,
    epsilon: float,
    iterations: int,
    regularised: bool,
) -> tuple[Float[Array, " b"], Potentials]:
    """Entropic transport between x_i and y_i, differentiable once by x and y.

    Args:
      x: clouds.
      y: clouds.
      start: potentials.
      epsilon: regularisation, in the unit of the distance.
      iterations: of Sinkhorn, and of the system that the gradient of <P, C> needs.
      regularised: <P, C> + epsilon sum P (log P - 1) + epsilon; else <P, C>.

    Returns:
      The values, and the potentials to go on from.
    """

    def solve(inputs):
        x, y, old = inputs
        cost = _cost(x, y)
        slope, f, g = plan(cost, old.f, old.g, epsilon, iterations)
        if regularised:  # the columns are right, so the dual value needs no correction
            return jnp.mean(f) + jnp.mean(g), _pull(slope, cost, x, y), old._replace(f=f, g=g)
        value = jnp.sum(slope * cost)
        slope, alpha, beta = sensitivity(slope, cost, old.alpha, old.beta, epsilon, iterations)
        return value, _pull(slope, cost, x, y), Potentials(f, g, alpha, beta)

    inputs = lax.stop_gradient((x, y, start))
    value, (by_x, by_y), potentials = lax.map(solve, inputs, batch_size=_block(x.shape[1]))
    return value + _linear(by_x, x) + _linear(by_y, y), potentials


@partial(jax.jit, static_argnames="iterations")
def of_own(
    x: Float[Array, "n M k"], start: Float[Array, "n M"], *, epsilon: float, iterations: int
) -> tuple[Float[Array, " n"], Float[Array, "n M"]]:
    """As `of_pairs`, regularised, between each cloud and itself: one potential."""

    def solve(inputs):
        x, h = inputs
        cost = _cost(x, x)
        matrix, h = own_plan(cost, h, epsilon, iterations)
        by_first, by_second = _pull(matrix, cost, x, x)
        return 2 * jnp.mean(h) + epsilon * (1 - jnp.sum(matrix)), by_first + by_second, h

    inputs = lax.stop_gradient((x, start))
    value, slope, potential = lax.map(solve, inputs, batch_size=_block(x.shape[1]))
    return value + _linear(slope, x), potential


def plan(
    cost: Float[Array, "M M"],
    f: Float[Array, " M"],
    g: Float[Array, " M"],
    epsilon: float,
    iterations: int,
) -> tuple[Float[Array, "M M"], Float[Array, " M"], Float[Array, " M"]]:
    """Sinkhorn from given potentials: P = exp((f_i + g_j - C_ij) / epsilon), marginals 1 / M.

    The potentials are in the kernel, so that one exponential an entry serves all iterations, in
    float32 at any epsilon: potentials that are wrong by more than 69 epsilon, as at the start of a
    training, are put right over several calls.

    Returns:
      The plan (its columns sum to 1 / M) and the new potentials.
    """
    m = len(cost)
    kernel = _kernel(f, g, cost, epsilon)

    def iterate(_, scalings):
        u = 1 / (m * jnp.maximum(kernel @ scalings[1], FLOOR))
        return u, 1 / (m * jnp.maximum(u @ kernel, FLOOR))

    ones = jnp.ones_like(f)
    u, v = lax.fori_loop(0, iterations, iterate, (ones, ones))
    return u[:, None] * kernel * v, f + epsilon * jnp.log(u), g + epsilon * jnp.log(v)


def own_plan(
    cost: Float[Array, "M M"], h: Float[Array, " M"], epsilon: float, iterations: int
) -> tuple[Float[Array, "M M"], Float[Array, " M"]]:
    """As `plan`, a cloud against itself: one potential, the mean of old and new each time."""
    m = len(cost)
    kernel = _kernel(h, h, cost, epsilon)

    def iterate(_, u):
        return jnp.sqrt(u / (m * jnp.maximum(kernel @ u, FLOOR)))

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
    """d<P, C> / dC at the fixed point of Sinkhorn.

    P keeps its marginals a, b as C changes: with r and s the row and column sums of P o C,
    a_i alpha_i + (P beta)_i = r_i and (P' alpha)_j + b_j beta_j = s_j give the derivative
    P_ij (1 + (alpha_i + beta_j - C_ij) / epsilon). Solved by Gauss-Seidel, at Sinkhorn's own rate.

    Returns:
      The derivative, and alpha and beta to go on from.
    """
    weighted = matrix * cost
    ones = jnp.ones_like(alpha)
    # Products, since sums over the short last axis are several times as slow on CPUs.
    rows, columns = weighted @ ones, ones @ weighted
    a, b = (jnp.maximum(sums, FLOOR) for sums in (matrix @ ones, ones @ matrix))

    def iterate(_, pair):
        alpha = (rows - matrix @ pair[1]) / a
        return alpha, (columns - alpha @ matrix) / b

    alpha, beta = lax.fori_loop(0, iterations, iterate, (alpha, beta))
    return matrix * (1 + (alpha[:, None] + beta - cost) / epsilon), alpha, beta


def _cost(x, y):
    # A coordinate at a time: a sum over a short last axis is several times as slow on CPUs.
    return root(sum((x[:, None, c] - y[:, c]) ** 2 for c in range(x.shape[1])))


def _kernel(f, g, cost, epsilon):
    return jnp.exp(jnp.minimum((f[:, None] + g - cost) / epsilon, HIGHEST))


def _pull(slope, cost, x, y):
    """Gradients by x and y of a value whose derivative by the Euclidean cost is `slope`."""
    weight = jnp.where(cost > 0, slope / jnp.where(cost > 0, cost, 1.0), 0.0)
    ones = jnp.ones_like(x[:, 0])
    rows, columns = weight @ ones, ones @ weight
    # A coordinate at a time: batches of [M, M] by [M, 2] are ten times as slow on CPUs.
    by_x = [rows * x[:, c] - weight @ y[:, c] for c in range(x.shape[1])]
    by_y = [columns * y[:, c] - x[:, c] @ weight for c in range(x.shape[1])]
    return jnp.stack(by_x, axis=1), jnp.stack(by_y, axis=1)


def _linear(slope, x):
    """0, with gradient `slope` by x."""
    return jnp.sum(slope * (x - lax.stop_gradient(x)), axis=(1, 2))


def _block(points: int) -> int:
    """Pairs that are worked on at once: what stays in a core's cache, or fills an accelerator."""
    size = (256 << 10) if jax.default_backend() == "cpu" else (256 << 20)
    return max(1, size // (4 * points**2))
