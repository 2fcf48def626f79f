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
from jaxtyping import Array, Bool, Float, Int

from common import ot
from common.arrays import Leaf
from common.errors import check_choice
from common.ot import Potentials
from common.parallel import all_parts, device_bytes, map_rows, on_cpu

DIVERGENCE = "sinkhorn_divergence"
BLOCK_ENTRIES = 1 << 17  # entries of the plans that a CPU computes together; they fit in the cache


class Clouds(NamedTuple):
    """Objects as weighted points."""

    points: Float[Array, "n M k"]
    weights: Float[Array, "n M"] | None = None  # sum to one per object; None if uniform


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["epsilon"],
    meta_fields=["ground", "p", "iterations", "value", "implicit_diff"],
)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Distance:
    """How two clouds are compared; static under jit but for epsilon."""

    ground: str = "euclidean"  # distance d between points, or 'manhattan'
    p: float = 1.0  # exponent of the ground distance, at least 1
    epsilon: Leaf | float  # regularisation (lambda in the papers), in the cost's unit
    iterations: int  # of Sinkhorn
    value: str  # 'transport_cost', 'entropic_cost' or 'sinkhorn_divergence'
    # Whether gradients are those of the optimum, by the implicit function theorem; otherwise they
    # are propagated through the iterations.
    implicit_diff: bool


class Transports(NamedTuple):
    """The value of each transport problem, and potentials from which a later call can continue."""

    values: Float[Array, " b"]
    potentials: Potentials


class WarmStart(NamedTuple):
    """Potentials of each pair, and of each cloud and itself."""

    pairs: Potentials
    selves: Potentials | None  # None unless the distance needs them

    @classmethod
    def zeros(cls, num_pairs: int, num_clouds: int, num_points: int) -> "WarmStart":
        """A cold start."""
        return cls(*(Potentials.zeros(n, num_points) for n in (num_pairs, num_clouds)))


@jax.jit
def pair_distances(
    clouds: Clouds, first: Int[Array, " b"], second: Int[Array, " b"], distance: Distance | None
) -> Float[Array, " b"]:
    """Distances between objects `first` and `second`, given as rows of `clouds`; differentiable.

    Without a `distance` they are Euclidean, between the M k numbers of each object. For the
    Sinkhorn divergence the transport of an object to itself is solved once, however many pairs
    contain the object; only this value is 0 between an object and itself. UserError: an unknown
    ground distance or value.
    """
    if not first.size:
        return jnp.zeros(first.shape)
    if distance is None:
        flat = clouds.points.reshape(len(clouds.points), -1)
        return euclidean(flat[first], flat[second])
    values = transports(_rows(clouds, first), _rows(clouds, second), distance).values
    if distance.value == DIVERGENCE:
        self_costs = _by_blocks((clouds,), distance, None).values
        values -= (self_costs[first] + self_costs[second]) / 2
    return values


@jax.jit
def continued_distances(
    clouds: Clouds,
    first: Int[Array, " b"],
    second: Int[Array, " b"],
    distance: Distance,
    warm_start: WarmStart | None,
    objects: Int[Array, " s"],
) -> tuple[Float[Array, " b"], WarmStart]:
    """`pair_distances` in a training: they begin from earlier potentials, on several devices.

    In a function of `common.parallel.on_parts`, `first` and `second` are the pairs of this device
    and `objects` consecutive objects whose transport to themselves it solves; all devices together
    solve all. `warm_start` is that of an earlier call; None: a cold start.

    Returns:
      The distances, and the potentials from which a later call can continue.
    """
    of_pairs, of_selves = (None, None) if warm_start is None else warm_start
    x, y = _rows(clouds, first), _rows(clouds, second)
    values, of_pairs = transports(x, y, distance, of_pairs)
    if distance.value == DIVERGENCE:
        local = jax.tree.map(
            lambda x: lax.dynamic_slice_in_dim(x, objects[0], len(objects)), clouds
        )
        self_costs, of_selves = _by_blocks((local,), distance, of_selves)
        self_costs = all_parts(self_costs)
        values -= (self_costs[first] + self_costs[second]) / 2
    return values, WarmStart(of_pairs, of_selves)


def transports(
    x: Clouds, y: Clouds, distance: Distance, potentials: Potentials | None = None
) -> Transports:
    """Transport of each x_i to y_i; for the Sinkhorn divergence the entropic cost, its first term.

    The iterations begin from the `potentials` of an earlier call; None: a cold start.
    """
    return _by_blocks((x, y), distance, potentials)


def euclidean(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """|x - y|, with gradient 0 between equal vectors."""
    return ot.safe_sqrt(jnp.sum((x - y) ** 2, axis=-1))


def contrastive_losses(
    distance: Float[Array, " b"], same: Bool[Array, " b"], margin: float, power: float
) -> Float[Array, " b"]:
    """The loss r d^p + (1 - r) max(0, margin - d)^p of each pair.

    d is the distance of a pair, and r is 1 if both objects belong together and 0 otherwise.
    """
    return jnp.where(same, distance, jnp.maximum(0.0, margin - distance)) ** power


@partial(jax.jit, static_argnames="k")
def nearest_neighbours(
    queries: Clouds, keys: Clouds, distance: Distance, k: int
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """Distances and indices of the k nearest keys of each query, nearest first.

    Queries are processed in blocks on all devices. Of equally distant keys the lower index is
    first. Errors are those of `pair_distances`.
    """
    debiased = distance.value == DIVERGENCE
    self_costs = [
        _by_blocks((x,), distance, None).values if debiased else None for x in (queries, keys)
    ]
    m, points, _ = keys.points.shape

    def block(rows, keys, costs_of_keys):
        queries, costs_of_queries = rows
        queries = jax.tree.map(lambda x: x[:, None], queries)
        values = _solve(queries, jax.tree.map(lambda x: x[None], keys), distance).value
        if debiased:
            values -= (costs_of_queries[:, None] + costs_of_keys) / 2
        negative, index = lax.top_k(-values, k)
        return -negative, index

    size = max(1, _block_entries() // (m * points**2))
    return map_rows(block, (queries, self_costs[0]), keys, self_costs[1], block=size)


@jax.jit
def fraction_converged(
    clouds: Clouds,
    first: Int[Array, " b"],
    second: Int[Array, " b"],
    distance: Distance,
    tolerance: float = 0.05,
) -> Float[Array, ""]:
    """Fraction of pairs whose plan violates its marginals by at most `tolerance` in L1 norm."""
    x, y = _rows(clouds, first), _rows(clouds, second)
    return (_solve(x, y, distance).error <= tolerance).mean()


def _rows(clouds: Clouds, rows: Int[Array, " b"]) -> Clouds:
    return jax.tree.map(lambda array: array[rows], clouds)


@jax.custom_vjp
def _by_blocks(sides, distance, potentials) -> Transports:
    """Solves problems block by block, whose plans fit in the cache, each with its gradient.

    `sides` are (x, y), or (x,) for the transport of each cloud to itself.
    """
    return _map_blocks(partial(_block, distance=distance), sides, potentials)


def _by_blocks_forward(sides, distance, potentials):
    block = jax.grad(partial(_block_total, distance=distance), has_aux=True)
    gradients, solved = _map_blocks(block, sides, potentials)
    return solved, (gradients, distance, potentials)


def _by_blocks_backward(residuals, cotangents: Transports):
    gradients, *constants = residuals

    def scaled(gradient):
        return cotangents.values.reshape(-1, *[1] * (gradient.ndim - 1)) * gradient

    return jax.tree.map(scaled, gradients), *jax.tree.map(jnp.zeros_like, constants)


_by_blocks.defvjp(_by_blocks_forward, _by_blocks_backward)


def _block_entries() -> int:
    """Entries of the plans that are computed together.

    A GPU in blocks of the size for CPUs took .041 s for the divergences of 1,024 pairs of 64 points
    and their gradients, in 32 steps one after the other, and ott without blocks .012 s (H200).
    On accelerators a float32 array of a block has a 1,024th of the memory (not measured).
    """
    return BLOCK_ENTRIES if on_cpu() else device_bytes() >> 12


def _map_blocks(function: Callable, sides: Any, potentials: Any) -> Any:
    """Applies a function of (sides, potentials) to blocks of their rows."""
    n, points, _ = jax.tree.leaves(sides)[0].shape
    blocks = -(-n * points**2 // _block_entries())
    if blocks == 1:
        return function(sides, potentials)
    size = -(-n // (blocks * 8)) * 8

    def split(x):
        padding = [(0, blocks * size - n)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, padding, mode="edge").reshape(blocks, size, *x.shape[1:])

    results = lax.map(lambda block: function(*block), jax.tree.map(split, (sides, potentials)))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n], results)


def _block_total(sides, potentials, distance):
    """The sum of a block's values, whose gradient has that of each value, and the solution."""
    solved = _block(sides, potentials, distance)
    return solved.values.sum(), solved


def _block(sides, potentials, distance) -> Transports:
    solution = _solve(sides[0], sides[-1], distance, potentials, symmetric=len(sides) == 1)
    return Transports(solution.value, solution.potentials)


def _solve(
    x: Clouds,
    y: Clouds,
    distance: Distance,
    potentials: Potentials | None = None,
    symmetric: bool = False,
) -> ot.BatchSolution:
    """Solves the problems of clouds whose leading axes broadcast."""
    names = {DIVERGENCE: "entropic_cost"} | {name: name for name in ot.VALUES}
    check_choice("distance value", distance.value, names)
    return ot.solve_batch(
        ot.ground_cost(x.points, y.points, distance.ground, distance.p),
        x.weights,
        y.weights,
        epsilon=distance.epsilon,
        iterations=distance.iterations,
        value=names[distance.value],
        implicit=distance.implicit_diff,
        start=potentials,
        symmetric=symmetric,
    )
