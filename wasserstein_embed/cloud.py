"""Objects as clouds of M points in R^k, compared by entropic transport (Frogner et al. 2019).

Cloud x has points x_i with weights a_i, cloud y has points y_j with weights b_j, and the ground
cost is C_ij = d(x_i, y_j)^p. A fixed number of Sinkhorn iterations approximates the plan

  P = argmin <P, C> + epsilon KL(P | a b'),  subject to P 1 = a and P' 1 = b,

from which `Distance.value` selects one of

  transport_cost        <P, C>
  entropic_cost         W(x, y) = <P, C> + epsilon KL(P | a b')
  sinkhorn_divergence   W(x, y) - (W(x, x) + W(y, y)) / 2  (Feydy et al. 2019, equation 3)

All three estimate the p-th power W_p^p; no root is taken, as in the published code.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from common import ot
from common.errors import UserError
from common.parallel import map_rows

BLOCK_ENTRIES = 1 << 17  # entries of the plans that are computed together; they fit in the cache


class Clouds(NamedTuple):
    """Objects as weighted points."""

    points: Float[Array, "n M k"]
    weights: Float[Array, "n M"] | None = None  # sum to one per object; None if uniform


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distance:
    """How two clouds are compared; static under jit."""

    ground: str  # distance d between points, 'euclidean' or 'manhattan'
    p: float  # exponent of the ground distance, at least 1
    epsilon: float  # regularisation (lambda in the papers), in the unit of the cost
    iterations: int  # of Sinkhorn
    value: str  # 'transport_cost', 'entropic_cost' or 'sinkhorn_divergence'
    # Whether gradients are those of the optimum, by the implicit function theorem; otherwise they
    # are propagated through the iterations.
    implicit_diff: bool

    @property
    def solver(self) -> dict[str, Any]:
        """The options of `common.ot` for these values."""
        options = {"epsilon": self.epsilon, "iterations": self.iterations}
        return options | {"implicit": self.implicit_diff}


@partial(jax.jit, static_argnames="distance")
def pair_distances(
    clouds: Clouds, first: Int[Array, " b"], second: Int[Array, " b"], distance: Distance | None
) -> Float[Array, " b"]:
    """Distances between objects `first` and `second`, given as rows of `clouds`; differentiable.

    Without a `distance` they are Euclidean, between the M k numbers of each object. For the
    Sinkhorn divergence the transport of an object to itself is solved once, however many pairs
    contain the object; only this value is 0 between an object and itself.

    Raises:
      UserError: an unknown ground distance or value.
    """
    if distance is None:
        flat = clouds.points.reshape(len(clouds.points), -1)
        return euclidean(flat[first], flat[second])
    x, y = _rows(clouds, first), _rows(clouds, second)
    values = _by_blocks(lambda pair: _values(*pair, distance), (x, y))
    if distance.value == "sinkhorn_divergence":
        selves = _self_transport(clouds, distance)
        values -= (selves[first] + selves[second]) / 2
    return values


def euclidean(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """|x - y|, with gradient 0 between equal vectors."""
    return ot.safe_sqrt(jnp.sum((x - y) ** 2, axis=-1))


@partial(jax.jit, static_argnames=("distance", "k"))
def nearest_neighbours(
    queries: Clouds, keys: Clouds, distance: Distance, k: int
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """Distances and indices of the k nearest keys of each query, nearest first.

    Queries are processed in blocks on all devices. Of equally distant keys the lower index is
    first. Errors are those of `pair_distances`.
    """
    debiased = distance.value == "sinkhorn_divergence"
    selves = [_self_transport(side, distance) if debiased else None for side in (queries, keys)]
    m, points, _ = keys.points.shape

    def block(rows, keys, key_selves):
        queries, query_selves = rows
        queries = jax.tree.map(lambda x: x[:, None], queries)
        values = _values(queries, jax.tree.map(lambda x: x[None], keys), distance)
        if debiased:
            values -= (query_selves[:, None] + key_selves) / 2
        negative, index = lax.top_k(-values, k)
        return -negative, index

    size = max(1, BLOCK_ENTRIES // (m * points**2))
    return map_rows(block, (queries, selves[0]), keys, selves[1], block=size)


@partial(jax.jit, static_argnames="distance")
def fraction_converged(
    clouds: Clouds,
    first: Int[Array, " b"],
    second: Int[Array, " b"],
    distance: Distance,
    tolerance: float = 0.05,
) -> Float[Array, ""]:
    """Fraction of pairs whose plan violates its marginals by at most `tolerance` in L1 norm."""
    solved = _solve(_rows(clouds, first), _rows(clouds, second), distance)
    return (solved.error <= tolerance).mean()


def _rows(clouds: Clouds, rows: Int[Array, " b"]) -> Clouds:
    return jax.tree.map(lambda x: x[rows], clouds)


def _by_blocks(values: Callable, clouds: Any) -> Float[Array, " b"]:
    """Applies `values` to blocks of problems whose plans fit in the cache together.

    The backward pass recomputes the iterations of a block: storing them would move every
    iteration through main memory.
    """
    n, points, _ = jax.tree.leaves(clouds)[0].shape
    blocks = -(-n * points**2 // BLOCK_ENTRIES)
    if blocks == 1:
        return values(clouds)
    size = -(-n // (blocks * 8)) * 8

    def split(x):
        padding = [(0, blocks * size - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, padding, mode="edge").reshape(blocks, size, *x.shape[1:])

    return lax.map(jax.checkpoint(values), jax.tree.map(split, clouds)).reshape(-1)[:n]


def _self_transport(clouds: Clouds, distance: Distance) -> Float[Array, " n"]:
    """The entropic cost W(x, x) of each object."""

    def values(clouds):
        cost = ot.ground_cost(clouds.points, clouds.points, distance.ground, distance.p)
        return ot.self_transport(cost, clouds.weights, **distance.solver)

    return _by_blocks(values, clouds)


def _values(x: Clouds, y: Clouds, distance: Distance) -> Float[Array, "..."]:
    solved = _solve(x, y, distance)
    if distance.value == "transport_cost":
        return solved.transport_cost
    if distance.value in ("entropic_cost", "sinkhorn_divergence"):
        return solved.entropic_cost
    raise UserError(
        f"There is no distance value '{distance.value}': choose transport_cost, entropic_cost or "
        "sinkhorn_divergence."
    )


def _solve(x: Clouds, y: Clouds, distance: Distance) -> ot.BatchSolution:
    """Solves the problems of clouds whose leading axes broadcast."""
    cost = ot.ground_cost(x.points, y.points, distance.ground, distance.p)
    return ot.solve_batch(cost, x.weights, y.weights, **distance.solver)
