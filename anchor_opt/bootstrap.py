"""The bootstrap: from a few seeds to a whole correspondence, by matching and re-mapping in turn.

Both spaces are mapped into common coordinates (first: coordinates in the seeds), rows are matched
there by hubness-corrected similarity, and the matches give the next pair of maps by one SVD. Each
anchor is so tied to one map between the spaces; Algorithm 1, which moves 285 anchors freely from
random starts, matches on noise instead. At the end the anchors are freed again (refine.py).

Related: self-learning and symmetric re-weighting (Artetxe et al. 2018), CSLS (Lample et al. 2018).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from anchor_opt.relative import unit
from common import ot
from common.parallel import block_rows, scan_rows
from common.retrieval import largest, products

# Below every score 2 s - r of unit rows, and finite: a column may lose all of them.
DROPPED = -4.0


class Settings(NamedTuple):
    """Static choices of the loop; see defaults.py for what was measured."""

    neighbours: int  # of the hubness correction
    reweight: float  # power of the singular values in the common coordinates; 0: orthogonal map
    seed_weight: float  # of each seed pair against a match
    patience: int  # steps without gain before the share doubles or, at 1, the loop ends
    tolerance: float  # smallest gain of the objective that counts


class Annealing(NamedTuple):
    """Static choices of `soft_step`."""

    epsilon: tuple[float, ...]  # of each step, in the unit of the cosine
    iterations: int  # of Sinkhorn in each step
    reweight: float  # as in Settings
    seed_weight: float  # as in Settings


class State(NamedTuple):
    """Maps into the common coordinates, and where the annealing stands."""

    from_fixed: Float[Array, "d_fixed r"]
    from_moving: Float[Array, "d_moving r"]
    keep: Float[Array, ""]  # share of similarities that a matching sees
    best: Float[Array, ""]  # objective so far, at this share
    stalled: Int[Array, ""]  # steps since the last gain
    salt: Int[Array, ""]  # of the random drop


class Data(NamedTuple):
    """What the steps read: unit rows; rows `fixed_seeds` and `moving_seeds` are known pairs."""

    fixed: Float[Array, "n d_fixed"]
    moving: Float[Array, "m d_moving"]
    fixed_seeds: Int[Array, " s"]
    moving_seeds: Int[Array, " s"]


class Matches(NamedTuple):
    """Hubness-corrected nearest neighbours in both directions."""

    to_moving: Int[Array, " n"]
    to_fixed: Int[Array, " m"]
    mutual: Bool[Array, " n"]  # row i of `fixed` is the choice of its own choice
    objective: Float[Array, ""]  # mean best CSLS of both directions: high if the maps are right


@partial(jax.jit, static_argnames="neighbours")
def match(
    fixed: Float[Array, "n r"],
    moving: Float[Array, "m r"],
    *,
    neighbours: int = 10,
    keep: Float[Array, ""] | float = 1.0,
    salt: Int[Array, ""] | int = 0,
) -> Matches:
    """Matches unit rows by CSLS = 2 cos - r(fixed row) - r(moving row), in two streamed passes.

    Args:
      fixed: unit rows.
      moving: unit rows.
      neighbours: rows that r averages over (cut to the rows there are).
      keep: share of the similarities that may be chosen, the rest dropped at random.
      salt: changes which are dropped.
    """
    to_fixed, best_moving, fixed_hubness = _best(fixed, moving, neighbours, keep, salt)
    to_moving, best_fixed, moving_hubness = _best(moving, fixed, neighbours, keep, salt + 1)
    mutual = to_fixed[to_moving] == jnp.arange(fixed.shape[0])
    objective = (best_moving - moving_hubness).mean() + (best_fixed - fixed_hubness).mean()
    return Matches(to_moving, to_fixed, mutual, objective / 2)


def _best(rows, columns, neighbours, keep, salt):
    """For every column its best row under 2 s - r(row), that score, and r of the rows.

    r of a block's rows is known once the block is, so one pass gives hubness and choice together.
    """
    num_columns = columns.shape[0]
    neighbours = min(neighbours, num_columns)

    def step(carry, index, valid, block, columns):
        best, choice = carry
        similarity = products(block, columns)
        hubness = largest(similarity, neighbours)[0].mean(axis=1)
        penalty = jnp.where(valid, hubness, jnp.inf)[:, None]
        score = lax.cond(
            keep < 1,
            lambda s: jnp.where(_kept(index, num_columns, keep, salt), s, DROPPED),
            lambda s: s,
            2 * similarity - penalty,
        )
        winner = score.argmax(axis=0)
        value = jnp.take_along_axis(score, winner[None], axis=0)[0]
        better = value > best  # strict: ties stay with the lower row
        carry = jnp.where(better, value, best), jnp.where(better, index[winner], choice)
        return carry, hubness

    def merge(first, second):
        better = second[0] > first[0]
        return jax.tree.map(lambda a, b: jnp.where(better, b, a), first, second)

    init = jnp.full(num_columns, -jnp.inf), jnp.zeros(num_columns, jnp.int32)
    block = block_rows(num_columns)
    (best, choice), hubness = scan_rows(step, init, merge, rows, columns, block=block)
    return choice, best, hubness


def _kept(index, num_columns, keep, salt):
    """A hash of (row, column, salt) as the random draw: the same on any number of devices."""
    column = jnp.arange(num_columns, dtype=jnp.uint32)[None]
    h = index.astype(jnp.uint32)[:, None] * jnp.uint32(0x9E3779B1)
    h = h ^ (column * jnp.uint32(0x85EBCA77) + jnp.uint32(salt) * jnp.uint32(0xC2B2AE3D))
    h = (h ^ (h >> 15)) * jnp.uint32(0x2C1B3C6D)
    h = (h ^ (h >> 12)) * jnp.uint32(0x297A2D39)
    return (h ^ (h >> 15)).astype(jnp.float32) * 2.0**-32 < keep


def at(
    from_fixed: Float[Array, "d_fixed r"],
    from_moving: Float[Array, "d_moving r"],
    keep: float = 1.0,
    salt: int = 0,
) -> State:
    """The state at the start of a loop from the given maps.

    Args:
      from_fixed: map of the fixed space into the common coordinates.
      from_moving: that of the moving space.
      keep: share of similarities that the first matchings see; it doubles as the objective stalls.
      salt: changes what is dropped.
    """
    best = jnp.float32(ot.LOW)
    return State(from_fixed, from_moving, jnp.float32(keep), best, jnp.int32(0), jnp.int32(salt))


@jax.jit
def init(data: Data, keep: float = 1.0, salt: int = 0) -> State:
    """Whitened coordinates in the seeds: x -> x S' (S S')^(-1/2), S the seed rows of each space.

    Least squares on the seeds alone says nothing off their span; these coordinates leave it out
    (an orthogonal map fitted on the seeds fills it with an arbitrary rotation, and fails). Seeds
    that span a whole space leave nothing to fill: there it is the orthogonal map.
    """
    rank = min(data.fixed.shape[1], data.moving.shape[1])
    if len(data.fixed_seeds) > rank:
        seeds = data.fixed[data.fixed_seeds].T @ data.moving[data.moving_seeds]
        return at(*maps(seeds, 0.0), keep, salt)

    def coordinates(seeds):
        values, vectors = jnp.linalg.eigh(seeds @ seeds.T)
        # Seeds that repeat a direction add none: their eigenvalues are rounding error.
        scale = jnp.where(values > 1e-3 * values[-1], 1 / jnp.sqrt(jnp.abs(values)), 0.0)
        whitened = seeds.T @ (vectors * scale) @ vectors.T
        return jnp.pad(whitened, [(0, 0), (0, rank - len(seeds))])

    return at(
        coordinates(data.fixed[data.fixed_seeds]),
        coordinates(data.moving[data.moving_seeds]),
        keep,
        salt,
    )


@jax.jit
def coordinates(state: State, data: Data) -> tuple[Float[Array, "n r"], Float[Array, "m r"]]:
    """Both spaces in the common coordinates, unit rows."""
    return unit(data.fixed @ state.from_fixed), unit(data.moving @ state.from_moving)


@jax.jit
def maps(
    covariance: Float[Array, "d_fixed d_moving"], reweight: float
) -> tuple[Float[Array, "d_fixed r"], Float[Array, "d_moving r"]]:
    """Both spaces' maps into common coordinates: singular vectors, re-weighted by the values.

    Args:
      covariance: sum of x_i y_j' over matched rows.
      reweight: power of the singular values; 0: one orthogonal map between the spaces.
    """
    left, values, right = jnp.linalg.svd(covariance, full_matrices=False)
    scale = (values / values[0]) ** (reweight / 2)
    return left * scale, right.T * scale


def _remapped(covariance, data: Data, settings):
    """`maps` of the matches and the weighted seed pairs; Settings and Annealing both have both."""
    seeds = data.fixed[data.fixed_seeds].T @ data.moving[data.moving_seeds]
    return maps(covariance + settings.seed_weight * seeds, settings.reweight)


def matches(state: State, data: Data, neighbours: int, **drop) -> Matches:
    """`match` in the common coordinates; `drop` are its keep and salt."""
    return match(*coordinates(state, data), neighbours=neighbours, **drop)


def step(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """Matches in the common coordinates, then maps by one SVD of the matches' cross-covariance."""
    found = matches(state, data, settings.neighbours, keep=state.keep, salt=state.salt)
    del index
    # Matches of both directions, not the mutual ones alone: from weak starts those are few and
    # agree with the map that made them.
    covariance = data.fixed.T @ data.moving[found.to_moving]
    covariance += data.fixed[found.to_fixed].T @ data.moving
    from_fixed, from_moving = _remapped(covariance, data, settings)

    gained = found.objective > state.best + settings.tolerance
    stalled = jnp.where(gained, 0, state.stalled + 1)
    doubles = (stalled >= settings.patience) & (state.keep < 1)
    new = State(
        from_fixed,
        from_moving,
        jnp.where(doubles, jnp.minimum(1.0, 2 * state.keep), state.keep),
        # Objectives at different shares kept do not compare.
        jnp.where(doubles, ot.LOW, jnp.maximum(state.best, found.objective)),
        jnp.where(doubles, 0, stalled),
        state.salt + 2,  # a matching draws twice
    )
    metrics = {"objective": found.objective, "mutual": found.mutual.mean(), "keep": state.keep}
    return new, metrics


def soft_step(state: State, index, data: Data, settings: Annealing) -> tuple[State, dict]:
    """As `step`, but the matching is an entropic plan, epsilon by the step's number.

    Where few seeds leave the first coordinates too poor for hard matches, an average over many
    keeps what little they say (deterministic annealing; Grave et al. 2019 anneal the same plans).
    The plan is held: for some thousands of rows.
    """
    fixed, moving = coordinates(state, data)
    similarity = fixed @ moving.T
    epsilon = jnp.asarray(settings.epsilon)[index]
    plan = len(fixed) * ot.plan(1 - similarity, epsilon, iterations=settings.iterations)
    covariance = data.fixed.T @ (plan @ data.moving)
    from_fixed, from_moving = _remapped(covariance, data, settings)
    metrics = {"epsilon": epsilon, "similarity": jnp.sum(plan * similarity) / len(fixed)}
    return state._replace(from_fixed=from_fixed, from_moving=from_moving), metrics


def done(state: State, settings: Settings) -> bool:
    """Whether nothing is dropped and the objective has not gained for `patience` steps."""
    keep, stalled = jax.device_get((state.keep, state.stalled))
    return bool(keep >= 1 and stalled >= settings.patience)


@jax.jit
def whitening(x: Float[Array, "n d"], power: float) -> Float[Array, "d d"]:
    """C^(-power/2), C the second moment of the rows: power 0 does nothing, 1 whitens."""
    values, vectors = jnp.linalg.eigh(x.T @ x / x.shape[0])
    # Directions without variance would be blown up to noise.
    values = jnp.maximum(values, 1e-6 * values[-1])
    return (vectors * values ** (-power / 2)) @ vectors.T
