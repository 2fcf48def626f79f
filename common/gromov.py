"""Entropic Gromov-Wasserstein: matching two clouds by their inner distances alone.

A thin wrapper of ott-jax. Distances are squared Euclidean, so that they are never held: a step
costs O(n m d), not O(n^2 m). The plan is held: for some thousands of points at most.
ott is imported where it is used, as in common/ot.py.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Coupling(NamedTuple):
    """A soft matching.

    Attributes:
      plan: [n, m], uniform marginals, sum one.
      cost: see `cost`.
    """

    plan: Float[Array, "n m"]
    cost: Float[Array, ""]


@jax.jit
def cost(
    x: Float[Array, "n d_x"], y: Float[Array, "m d_y"], plan: Float[Array, "n m"]
) -> Float[Array, ""]:
    """sum_ijkl (D_ik - E_jl)^2 P_ij P_kl as a share of that of the plan that knows nothing.

    D and E are the squared distances in x and in y, each scaled to mean one. The cost is 0 for an
    isometry and 1 for the product of the marginals, so it compares over numbers of points.

    Args:
      x: points.
      y: points.
      plan: uniform marginals, sum one.
    """
    dx, dy = (_distances(z) for z in (x, y))
    squares = sum(jnp.sum(_squared(z, d)) / len(z) for z, d in ((x, dx), (y, dy)))
    matched = jnp.sum(dx.apply_cost(plan, axis=1) * dy.apply_cost(plan.T, axis=1).T)
    return (squares - 2 * matched) / (squares - 2)


def _distances(x):
    from ott.geometry import pointcloud

    return pointcloud.PointCloud(x, scale_cost="mean").to_LRCGeometry()


def _squared(x, geometry):
    """Row means of the squared distances."""
    return geometry.apply_square_cost(jnp.full(len(x), 1 / len(x)), axis=1).ravel()


@partial(jax.jit, static_argnames=("steps", "iterations"))
def match(
    x: Float[Array, "n d_x"],
    y: Float[Array, "m d_y"],
    epsilon: float,
    plan: Float[Array, "n m"] | None = None,
    *,
    steps: int = 100,
    iterations: int = 20,
) -> Coupling:
    """Gromov-Wasserstein coupling by repeated Sinkhorn (Peyre et al. 2016, algorithm 1).

    Args:
      x: points.
      y: points.
      epsilon: regularisation, as a share of the cost of the plan that knows nothing.
      plan: where to start; None: that plan, the product of the marginals.
      steps: linearisations, at most; it stops when the cost does.
      iterations: Sinkhorn iterations of each, started from the potentials of the last.
    """
    from ott.initializers.quadratic import initializers
    from ott.problems.quadratic import quadratic_problem
    from ott.solvers.linear import sinkhorn
    from ott.solvers.quadratic import gromov_wasserstein

    dx, dy = (_distances(z) for z in (x, y))
    spread = sum(_squared(z, d).mean() for z, d in ((x, dx), (y, dy))) - 2
    solver = gromov_wasserstein.GromovWasserstein(
        sinkhorn.Sinkhorn(min_iterations=iterations, max_iterations=iterations),
        epsilon=epsilon * spread,
        initializer=initializers.QuadraticInitializer(plan),
        warm_start=True,
        max_iterations=steps,
        threshold=1e-6,
    )
    found = solver(quadratic_problem.QuadraticProblem(dx, dy)).matrix
    return Coupling(found, cost(x, y, found))
