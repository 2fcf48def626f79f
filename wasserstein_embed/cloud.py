"""Objects as clouds of M points in R^k, compared by entropic transport (Frogner et al. 2019).

An object x with points x_i and weights a, y likewise, ground cost C_ij = d(x_i, y_j)^p:

  P = argmin <P, C> + epsilon KL(P | a b'),  P 1 = a, P' 1 = b  (a fixed number of iterations)

The distance is <P, C>, that minimum, or the minimum less the means of x's and y's own ("debiased",
Feydy et al. 2019, eq. 3). It is W_p^p: for p above 1 no root is taken, as in the published code.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common import cli, sinkhorn
from common.parallel import map_rows

HELD = 1 << 17  # entries of plans at once, near the cache


class Clouds(NamedTuple):
    """Objects as points with weights.

    Attributes:
      points: of each object.
      weights: of its points, summing to one; None: uniform.
    """

    points: Float[Array, "n M k"]
    weights: Float[Array, "n M"] | None = None


class Distance(NamedTuple):
    """How two clouds are compared; static under jit. Made by `distance_of`.

    Attributes:
      ground: 'euclidean' or 'manhattan', the distance d between points.
      p: that it is raised to, at least 1.
      epsilon: regularisation (the papers' lambda), in the unit of the cost.
      iterations: of Sinkhorn.
      value: 'cost', <P, C>; 'regularised', the minimum; 'divergence', the debiased one.
      implicit: whether gradients are those of the optimum, not of the iterations.
    """

    ground: str
    p: float
    epsilon: float
    iterations: int
    value: str
    implicit: bool


def distance_of(config: ConfigDict) -> Distance:
    """The distance that a config describes by a value for each field.

    Raises:
      UserError: a value that it can't have.
    """
    cli.choose(dict.fromkeys(("euclidean", "manhattan")), config.ground, "ground distance")
    cli.choose(dict.fromkeys(("cost", "regularised", "divergence")), config.value, "value")
    cli.at_least(config, 1, "p", "iterations")
    cli.positive(config, "epsilon")
    return Distance(**{name: config[name] for name in Distance._fields})


@partial(jax.jit, static_argnames="distance")
def pairs(
    clouds: Clouds, first: Int[Array, " b"], second: Int[Array, " b"], distance: Distance
) -> Float[Array, " b"]:
    """The distances between objects `first` and `second`, by their rows in `clouds`.

    Differentiable. For the divergence an object's transport to itself is solved once, however many
    pairs it is in. Only the divergence of an object from itself is 0.
    """
    x, y = _rows(clouds, first), _rows(clouds, second)
    values = _by_blocks(lambda pair: _values(*pair, distance), (x, y))
    if distance.value == "divergence":
        own = _own(clouds, distance)
        values -= (own[first] + own[second]) / 2
    return values


def euclidean(
    clouds: Clouds, first: Int[Array, " b"], second: Int[Array, " b"]
) -> Float[Array, " b"]:
    """The Euclidean distances of the same objects as vectors of M k numbers; gradient 0 at 0."""
    flat = clouds.points.reshape(clouds.points.shape[0], -1)
    return sinkhorn.root(jnp.sum((flat[first] - flat[second]) ** 2, axis=-1))


@partial(jax.jit, static_argnames=("distance", "k"))
def nearest(
    queries: Clouds, keys: Clouds, distance: Distance, k: int
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """The k nearest keys of each query, nearest first: distances and indices.

    Streamed over blocks of queries on all devices; ties go to the lower index.
    """
    debiased = distance.value == "divergence"
    own = [_own(side, distance) if debiased else None for side in (queries, keys)]
    m, points, _ = keys.points.shape

    def block(rows, keys, own_keys):
        queries, own_queries = rows
        one, all_ = (
            jax.tree.map(lambda x: jnp.expand_dims(x, axis), side)  # noqa: B023
            for side, axis in ((queries, 1), (keys, 0))
        )
        values = _values(one, all_, distance)
        if debiased:
            values -= (own_queries[:, None] + own_keys) / 2
        negative, index = lax.top_k(-values, k)
        return -negative, index

    size = max(1, HELD // (m * points**2))
    return map_rows(block, (queries, own[0]), keys, own[1], block=size)


@partial(jax.jit, static_argnames="distance")
def share_converged(
    clouds: Clouds,
    first: Int[Array, " b"],
    second: Int[Array, " b"],
    distance: Distance,
    tolerance: float = 0.05,
) -> Float[Array, ""]:
    """Share of the pairs whose plan has its marginals right: L1 error at most `tolerance`."""
    solved = _solve(_rows(clouds, first), _rows(clouds, second), distance)
    return (solved.error <= tolerance).mean()


def _rows(clouds: Clouds, rows: Int[Array, " b"]) -> Clouds:
    return jax.tree.map(lambda x: x[rows], clouds)


def _by_blocks(values: Callable, clouds: Any) -> Float[Array, " b"]:
    """Values of many problems, so many at a time that they stay near the cache.

    The gradient computes a block's iterations again: kept, they would have to go through memory.
    """
    n, points, _ = jax.tree.leaves(clouds)[0].shape
    blocks = -(-n * points**2 // HELD)
    if blocks == 1:
        return values(clouds)
    size = -(-n // (blocks * 8)) * 8

    def split(x):
        padding = [(0, blocks * size - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, padding, mode="edge").reshape(blocks, size, *x.shape[1:])

    return lax.map(jax.checkpoint(values), jax.tree.map(split, clouds)).reshape(-1)[:n]


def _own(clouds: Clouds, distance: Distance) -> Float[Array, " n"]:
    """The regularised value of each object's transport to itself."""

    def values(clouds):
        x, a = clouds
        return sinkhorn.solve_own(
            sinkhorn.ground_cost(x, x, distance.ground, distance.p),
            a,
            epsilon=distance.epsilon,
            iterations=distance.iterations,
            implicit=distance.implicit,
        )

    return _by_blocks(values, clouds)


def _values(x: Clouds, y: Clouds, distance: Distance) -> Float[Array, "..."]:
    solved = _solve(x, y, distance)
    return solved.cost if distance.value == "cost" else solved.value


def _solve(x: Clouds, y: Clouds, distance: Distance) -> sinkhorn.Solved:
    """Clouds with any axes in front, that broadcast."""
    return sinkhorn.solve(
        sinkhorn.ground_cost(x.points, y.points, distance.ground, distance.p),
        x.weights,
        y.weights,
        epsilon=distance.epsilon,
        iterations=distance.iterations,
        implicit=distance.implicit,
    )
