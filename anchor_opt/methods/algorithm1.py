"""Algorithm 1 of the paper: Sinkhorn, permute, one Adam step on the sphere, repeat; and a start.

The random anchors of line 1 have unit norm, and so the products of a row with the k - p random
anchors are noise about as large as its products with the p anchors of known pairs. The first match
then follows the noise. If the random anchors begin near zero (`init_norm`), the first match follows
the known pairs alone, and the steps fit the other anchors to it, at first without the sphere.

Where matches stay wrong on few rows, `tied_steps` move all anchors by one orthogonal map first.
What the paper leaves open is read in other ways in readings.py.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from anchor_opt import sphere
from anchor_opt.problem import Problem, Result, Run
from anchor_opt.relative import relative, unit_relative
from common import ot
from common.arrays import AnyArray, RealNumber, WholeNumber
from common.linear import procrustes, unit
from common.retrieval import top_k


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """Values of one step, those of Table 3."""

    learning_rate: float  # of Adam
    sinkhorn_epsilon: float  # in the unit of the distance
    sinkhorn_iterations: int
    num_frozen: int = 0  # first anchors that are held constant

    def matched(
        self, data: "Data", anchors: Float[Array, "k d_target"], index: WholeNumber
    ) -> tuple[Float[Array, "r d_source"], Float[Array, "r d_target"]]:
        """Lines 5 and 6: the source row that the plan gives each target row (eq. 1), and these."""
        return data.source[sinkhorn_matching(data, anchors, self).to_x], data.target


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(Step):
    """Values of the algorithm."""

    steps: int
    init_norm: float  # of the random anchors at first; as printed: 1
    tied_steps: int  # first steps, in which one orthogonal map moves all anchors; as printed: 0
    sphere_from: int  # the step from which all anchors are kept at unit norm; as printed: 0


class State(NamedTuple):
    """Anchors of the target space, and the state of Adam."""

    anchors: Float[Array, "k d_target"]
    optimiser: optax.OptState


class Data(NamedTuple):
    """What the steps read; all rows are unit rows except those of `source_relative`."""

    source: Float[Array, "n d_source"]
    source_anchors: Float[Array, "k d_source"]
    source_relative: Float[Array, "n k"]
    target: Float[Array, "m d_target"]


def as_printed(settings: Settings) -> Settings:
    """The settings with the printed start and constraint."""
    return dataclasses.replace(settings, init_norm=1.0, tied_steps=0, sphere_from=0)


@partial(jax.jit, static_argnames="num_anchors")
def init(
    key: jax.Array,
    target: Float[AnyArray, "m d_target"],
    target_pairs: Int[AnyArray, " p"],
    num_anchors: int,
    init_norm: RealNumber,
) -> State:
    """Line 1: the target rows of the known pairs; for the rest N(0, I), scaled to `init_norm`."""
    noise = jax.random.normal(key, (num_anchors - len(target_pairs), target.shape[1]))
    known = unit(target[jnp.asarray(target_pairs)])
    anchors = jnp.concatenate([known, init_norm * unit(noise)])
    return State(anchors, optax.adam(0.0).init(anchors))


@jax.jit
def prepare(
    source: Float[AnyArray, "n d_source"],
    source_anchors: Float[AnyArray, "k d_source"],
    target: Float[AnyArray, "m d_target"],
) -> Data:
    """What the steps read of two spaces and of the anchors of the source space."""
    x, anchors, y = map(jnp.asarray, (source, source_anchors, target))
    return Data(x, anchors, relative(x, anchors), y)


def sinkhorn_matching(
    data: Data, anchors: Float[Array, "k d_target"], settings: Step, **options: Any
) -> ot.Matching:
    """Line 5: the matching of the relative spaces; x is the source.

    Distances need the products R_X R_Y' of the relative rows R_X = X A_X' and R_Y = Y A_Y', which
    have k columns. If a space has fewer than k dimensions, the same products are computed with its
    own rows on one side, X (R_Y A_X)' for instance, which is cheaper.
    """
    target = relative(data.target, anchors)
    k, (d_source, d_target) = len(anchors), (x.shape[1] for x in (data.source, data.target))
    factors = None
    if d_source < min(k, d_target):
        factors = data.source, target @ data.source_anchors
    elif d_target < k:
        factors = data.source_relative @ anchors, data.target
    options |= {"iterations": settings.sinkhorn_iterations, "factors": factors}
    return ot.match(data.source_relative, target, settings.sinkhorn_epsilon, **options)


def descend(
    state: State,
    index: WholeNumber,
    data: Data,
    settings: Step,
    optimiser: optax.GradientTransformation,
) -> tuple[State, dict]:
    """Lines 5 to 8: a step that lessens the error of the relative rows of matched rows x and y."""
    x, y = settings.matched(data, state.anchors, index)
    wanted = relative(x, data.source_anchors)

    def mse(anchors):
        return jnp.mean((wanted - relative(y, anchors)) ** 2)

    loss, gradient = jax.value_and_grad(mse)(state.anchors)
    gradient = gradient.at[: settings.num_frozen].set(0)
    updates, moments = optimiser.update(gradient, state.optimiser, state.anchors)
    # Optax annotates any tree, where the result is one like the argument.
    anchors: Any = optax.apply_updates(state.anchors, updates)
    return State(anchors, moments), {"loss": loss}


def sphere_step(state: State, index, data: Data, settings: Step) -> tuple[State, dict]:
    """Lines 4 to 8 as printed: Adam on a product of unit spheres."""
    state = state._replace(anchors=unit(state.anchors))
    optimiser = sphere.spheres(optax.adam(settings.learning_rate))
    return descend(state, index, data, settings, optimiser)


def free_step(state: State, index, data: Data, settings: Step) -> tuple[State, dict]:
    """The same for anchors of any length."""
    return descend(state, index, data, settings, optax.adam(settings.learning_rate))


def tied_step(state: State, index, data: Data, settings: Step) -> tuple[State, dict]:
    """Anchors that are images of the source's under the orthogonal map fitted to the matches."""
    x, y = settings.matched(data, state.anchors, index)
    return state._replace(anchors=data.source_anchors @ procrustes(x, y)), {}


STEPS = {"tied": tied_step, "free": free_step, "sphere": sphere_step}


def solve(problem: Problem, run: Run, settings: Settings, values: Step) -> Result:
    """Lines 1 to 9, with the start and the numbers of steps of `settings`.

    The `values` of a step are apart from these, so that runs with other starts share a program.
    """
    anchors, key = problem.source_anchors, jax.random.key(run.random_seed)
    pairs, norm = problem.target_pairs, settings.init_norm
    state = init(key, problem.target, pairs, len(anchors), norm)
    data = prepare(problem.source, anchors, problem.target)
    ends = {"tied": settings.tied_steps, "free": settings.sphere_from, "sphere": settings.steps}
    done = 0
    for stage, end in ends.items():
        if (count := min(end, settings.steps) - done) > 0:
            options = {"stage": stage, "num_steps": count, "chunk": 25}
            state = run.train(STEPS[stage], state, data, values, **options)
            done += count
    return Result(state.anchors)


def values_of(settings: Settings) -> Step:
    """The values of a step among those of the algorithm."""
    return Step(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(Step)})


def run_as_printed(problem: Problem, run: Run) -> Result:
    """Algorithm 1 as printed in the paper, without line 10."""
    settings = run.settings.algorithm1
    return solve(problem, run, as_printed(settings), values_of(settings))


@jax.jit
def discretise(anchors: Float[Array, "k d"], vectors: Float[Array, "n d"]) -> Int[Array, " k"]:
    """Line 10: the row of `vectors` (unit) nearest to each anchor in cosine."""
    return top_k(unit(anchors), vectors, 1).index[:, 0]


def matched(problem: Problem, anchors: Float[Array, "k d_target"]) -> Int[np.ndarray, " k"]:
    """The target rows that the best one-to-one match of all relative rows gives the anchors."""
    source = unit_relative(problem.source, problem.source_anchors)
    return ot.assign(source, unit_relative(problem.target, anchors))[problem.anchors]
