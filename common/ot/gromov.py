"""Entropic Gromov-Wasserstein: couples two clouds of points by their inner distances alone.

A thin wrapper of ott-jax. The squared Euclidean distances are factorised and never held, so a step
costs O(n m d) instead of O(n^2 m). The plan is held: suitable for some thousands of points.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from ott.geometry import pointcloud
from ott.initializers.quadratic import initializers
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import sinkhorn
from ott.solvers.quadratic import gromov_wasserstein as gw


@jax.jit
def gromov_cost(
    x: Float[Array, "n d_x"], y: Float[Array, "m d_y"], plan: Float[Array, "n m"]
) -> Float[Array, ""]:
    """sum_ijkl (D_ik - E_jl)^2 P_ij P_kl, divided by its value for the independent plan.

    D and E are the squared distances in x and in y, each scaled to mean one. The independent plan
    is the product of the marginals. The cost is 0 for an isometry and 1 for the independent plan,
    so that it can be compared between different numbers of points.

    Args:
      x: points.
      y: points.
      plan: P, with uniform marginals and sum one.
    """
    dx, dy = (_geometry(z) for z in (x, y))
    squares = sum(jnp.sum(_mean_squares(z, d)) / len(z) for z, d in ((x, dx), (y, dy)))
    matched = jnp.sum(dx.apply_cost(plan, axis=1) * dy.apply_cost(plan.T, axis=1).T)
    return (squares - 2 * matched) / (squares - 2)


def _geometry(x):
    return pointcloud.PointCloud(x, scale_cost="mean").to_LRCGeometry()


def _mean_squares(x, geometry):
    """Row means of the squares of the distances."""
    return geometry.apply_square_cost(jnp.full(len(x), 1 / len(x)), axis=1).ravel()


@partial(jax.jit, static_argnames=("steps", "iterations"))
def gromov_wasserstein(
    x: Float[Array, "n d_x"],
    y: Float[Array, "m d_y"],
    epsilon: float,
    plan: Float[Array, "n m"] | None = None,
    *,
    steps: int = 100,
    iterations: int = 20,
) -> Float[Array, "n m"]:
    """The plan of entropic Gromov-Wasserstein (Peyre et al. 2016, algorithm 1): repeated Sinkhorn.

    Its marginals are uniform and it sums to one.

    Args:
      x: points.
      y: points.
      epsilon: regularisation, as a fraction of the cost of the independent plan.
      plan: initial plan; None: the independent plan.
      steps: maximal number of linearisations; it stops earlier when the cost no longer changes.
      iterations: Sinkhorn iterations for each, started from the potentials of the previous one.
    """
    dx, dy = (_geometry(z) for z in (x, y))
    independent = sum(_mean_squares(z, d).mean() for z, d in ((x, dx), (y, dy))) - 2
    solver = gw.GromovWasserstein(
        sinkhorn.Sinkhorn(min_iterations=iterations, max_iterations=iterations),
        epsilon=epsilon * independent,
        initializer=initializers.QuadraticInitializer(plan),
        warm_start=True,
        max_iterations=steps,
        threshold=1e-6,
    )
    return solver(quadratic_problem.QuadraticProblem(dx, dy)).matrix
