"""GOAT: graph matching via optimal transport (Saad-Eldin et al. 2021, arXiv:2111.05366).

Marchisio et al. 2022 take it for word embeddings with few known pairs.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

from common.arrays import AnyArray
from common.linear import procrustes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of `solve`, those of its public implementation."""

    steps: int = 30  # at most
    tolerance: float = 0.03  # of |P - P_before| / sqrt(n)
    inverse_epsilon: float = 100.0  # of the transport, in units of the largest gradient
    iterations: int = 200  # of Sinkhorn; ours


def solve(
    source: Float[AnyArray, "n d"],
    target: Float[AnyArray, "m e"],
    pairs: tuple[Int[AnyArray, " p"], Int[AnyArray, " p"]],
    settings: Settings,
) -> Float[Array, "d e"]:
    """GOAT: the Frank-Wolfe method for graph matching whose steps are entropic transports.

    Maximises Tr(A P B P') over doubly stochastic P from the barycentre, where A = x x' and B = y y'
    and the known pairs are matched. W is fitted to the assignment nearest to P and the known pairs.
    It holds arrays [n, n]; the smaller space is filled up with zero rows. Nothing is random.
    """
    order = [
        np.r_[rows, np.setdiff1d(np.arange(len(x)), rows)]
        for x, rows in zip((source, target), pairs, strict=True)
    ]
    size, count = max(len(source), len(target)), len(pairs[0])
    x, y = (
        jnp.pad(jnp.take(space, rows, axis=0), [(0, size - len(space)), (0, 0)])
        for space, rows in zip((source, target), order, strict=True)
    )
    # With its type given, the plan is of the type of later ones, so that `_step` is compiled once.
    plan = jnp.full((size - count, size - count), 1 / (size - count), jnp.float32)
    change, steps = jnp.inf, 0
    while steps < settings.steps and change > settings.tolerance:
        plan, change = _step(plan, x, y, count, settings)
        steps += 1
    rows, columns = linear_sum_assignment(plan, maximize=True)
    real = (rows < len(source) - count) & (columns < len(target) - count)
    known = np.arange(count)
    return procrustes(
        jnp.take(x, np.r_[known, rows[real] + count], axis=0),
        jnp.take(y, np.r_[known, columns[real] + count], axis=0),
    )


@partial(jax.jit, static_argnames=("count", "settings"))
def _step(plan, x, y, count, settings):
    """The next plan, and |P - P_before| / sqrt(n)."""
    from common.ot.dense import transport  # ott takes a second to import

    free = x[count:], y[count:]

    def product(p):
        """A P B of the free rows, by the factors of A and B."""
        return free[0] @ (free[0].T @ p @ free[1]) @ free[1].T

    linear = (free[0] @ x[:count].T) @ (free[1] @ y[:count].T).T
    quadratic = product(plan)
    gradient = 2 * (linear + quadratic)
    cost = -gradient / jnp.abs(gradient).max()
    epsilon = 1 / settings.inverse_epsilon
    target = transport(cost, epsilon=epsilon, iterations=settings.iterations).matrix
    target *= len(plan)
    # f(P + t D) = f(P) + t (<gradient, D>) + t^2 <A D B, D>, of which the best t is taken.
    change = target - plan
    slope, bend = jnp.sum(gradient * change), jnp.sum(product(change) * change)
    inner = jnp.clip(-slope / jnp.where(bend < 0, 2 * bend, -1.0), 0.0, 1.0)
    step = jnp.where(bend < 0, inner, jnp.where(slope + bend > 0, 1.0, 0.0))
    return plan + step * change, jnp.linalg.norm(step * change) / jnp.sqrt(len(plan))
