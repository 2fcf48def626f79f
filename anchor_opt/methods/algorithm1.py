"""Algorithm 1 of the paper: Sinkhorn, permute, one Adam step, repeat; and a better initialization.

The random anchors of line 1 have unit norm, and so the products of a row with the k - p random
anchors are noise about as large as its products with the p anchors of known pairs. The first match
then follows the noise. If the random anchors begin near zero (`init_norm`), the first match follows
the known pairs alone, and the steps fit the other anchors to it.

On few rows the matches of both directions can come to agree while most of them stay wrong: on two
layers of MiniLM, 1,000 words and 15 pairs, 56% are mutual at first and 87% at the end, 21% right.
If in the first `tied_steps` steps the anchors are images of the source anchors under one orthogonal
map, which is fitted to the matches, the same problem is solved. One likely reason, not tested by
itself, is that such a map has fewer degrees of freedom with which to fit wrong matches.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from anchor_opt.problem import Problem, Result, Run
from anchor_opt.relative import relative, unit_relative
from common import manifold, ot
from common.arrays import AnyArray, WholeNumber
from common.errors import UserError, check_choice
from common.linear import procrustes, unit
from common.retrieval import top_k


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the paper's Table 3, and what the paper leaves open.

    `permute` 'source' compares each target row with the source row that the permutation from target
    to source gives it (eq. 1), 'target' the other way round (line 6). With `plan` 'hard' that row
    is the argmax of the plan, with 'soft' the plan's weighted mean of all rows. At the paper's
    epsilon many entries of the plan are equally large in float32: with `ties` 'first' the first of
    these rows is taken, with 'random' one that depends on the step alone.
    """

    steps: int
    learning_rate: float  # of Adam
    sinkhorn_epsilon: float  # in the unit of the distance
    sinkhorn_iterations: int  # in each step
    permute: str
    plan: str
    freeze_pairs: bool  # whether the anchors in known pairs are held constant
    init_norm: float  # of the random anchors at first; as printed: 1
    tied_steps: int  # first steps, in which one orthogonal map moves all anchors; as printed: 0
    sphere_from: int  # the step from which all anchors are kept at unit norm; as printed: 0
    ties: str = "first"


def printed(settings: Settings) -> Settings:
    """The settings with the initialization and the constraints as they are printed in the paper."""
    return dataclasses.replace(settings, init_norm=1.0, tied_steps=0, sphere_from=0)


class State(NamedTuple):
    """Anchors of the target space, and the state of the optimiser."""

    anchors: Float[Array, "k d_target"]
    optimiser: optax.OptState


class Data(NamedTuple):
    """What the steps read; all rows are unit rows except those of `source_relative`.

    The last two are those of `Settings`. The algorithm and the printed one differ in them and share
    a compiled program, which reads them here.
    """

    source: Float[AnyArray, "n d_source"]
    source_anchors: Float[AnyArray, "k d_source"]
    source_relative: Float[Array, "n k"]
    target: Float[AnyArray, "m d_target"]
    num_pairs: WholeNumber
    tied_steps: WholeNumber
    sphere_from: WholeNumber


def optimiser(settings: Settings) -> optax.GradientTransformation:
    """Adam on a product of unit spheres (Table 3; the paper uses GeoTorch)."""
    return manifold.spheres(optax.adam(settings.learning_rate))


def init(
    key: jax.Array,
    target: Float[AnyArray, "m d_target"],
    target_pairs: Int[AnyArray, " p"],
    num_anchors: int,
    settings: Settings,
) -> State:
    """Line 1: the target rows of the known pairs; for the rest N(0, I), scaled to `init_norm`."""
    # With the same static settings for the printed algorithm, so that one program is compiled.
    norm = settings.init_norm
    return _init(key, target, target_pairs, norm, num_anchors, printed(settings))


@partial(jax.jit, static_argnames=("num_anchors", "settings"))
def _init(key, target, target_pairs, norm, num_anchors: int, settings: Settings) -> State:
    noise = jax.random.normal(key, (num_anchors - len(target_pairs), target.shape[1]))
    known = unit(target[jnp.asarray(target_pairs)])
    anchors = jnp.concatenate([known, norm * unit(noise)])
    return State(anchors, optimiser(settings).init(anchors))


def prepare(
    source: Float[AnyArray, "n d_source"],
    source_anchors: Float[AnyArray, "k d_source"],
    target: Float[AnyArray, "m d_target"],
    num_pairs: int,
    settings: Settings,
) -> Data:
    """What the steps read of two spaces, of the anchors of the source space and of the settings."""
    return Data(
        source=source,
        source_anchors=source_anchors,
        source_relative=_relative(source, source_anchors),
        target=target,
        num_pairs=np.int32(num_pairs),
        tied_steps=np.int32(settings.tied_steps),
        sphere_from=np.int32(settings.sphere_from),
    )


_relative = jax.jit(relative)


def shuffled(data: Data, key: jax.Array) -> Data:
    """The rows of each space in a random order, so that their given order decides no tie."""
    spaces = data.source, data.target
    order, target_order = map(jax.random.permutation, jax.random.split(key), map(len, spaces))
    return data._replace(
        source=data.source[order],
        source_relative=data.source_relative[order],
        target=data.target[target_order],
    )


def sinkhorn_matching(
    data: Data, anchors: Float[Array, "k d_target"], epsilon: float, **options: Any
) -> ot.Matching:
    """Line 5: the matching of the relative spaces; x is the source.

    Distances need the products R_X R_Y' of the relative rows R_X = X A_X' and R_Y = Y A_Y', which
    have k columns. If a space has fewer than k dimensions, the same products are computed with its
    own rows on one side, X (R_Y A_X)' for instance, which is cheaper.

    Args:
      data: both spaces.
      anchors: of the target.
      epsilon: regularisation of the plan.
      **options: of `common.ot.match`.
    """
    target = relative(data.target, anchors)
    k, (d_source, d_target) = len(anchors), (x.shape[1] for x in (data.source, data.target))
    factors = None
    if d_source < min(k, d_target):
        factors = data.source, target @ data.source_anchors
    elif d_target < k:
        factors = data.source_relative @ anchors, data.target
    return ot.match(data.source_relative, target, epsilon, factors=factors, **options)


def matched_rows(
    data: Data, anchors: Float[Array, "k d_target"], settings: Settings
) -> tuple[Float[AnyArray, "r d_source"], Float[AnyArray, "r d_target"]]:
    """Line 5 and the permutation: rows of the source, and the rows of the target matched with them.

    With a soft plan the rows of the permuted space are the plan's weighted means.

    Raises:
      UserError: an unknown value of `permute` or `plan`.
    """
    source, target = data.source_relative, relative(data.target, anchors)
    epsilon = settings.sinkhorn_epsilon
    rows = settings.permute == "target" and settings.plan == "hard"
    options = {"iterations": settings.sinkhorn_iterations, "rows": rows}
    matching = sinkhorn_matching(data, anchors, epsilon, **options)
    match settings.permute, settings.plan:
        case "source", "hard":
            return data.source[matching.to_x], data.target
        case "source", "soft":
            return ot.barycentric(target, source, matching.u, data.source, epsilon), data.target
        case "target", "hard":
            return data.source, data.target[matching.to_y]
        case "target", "soft":
            return data.source, ot.barycentric(source, target, matching.v, data.target, epsilon)
        case other:
            raise UserError(
                f"algorithm1 permutes the '{other[0]}' with the plan '{other[1]}': choose "
                "permute 'source' or 'target', and plan 'hard' or 'soft'."
            )


def step(state: State, index, data: Data, settings: Settings) -> tuple[State, dict]:
    """Lines 4 to 8: one estimate of the permutation, one optimiser step or one orthogonal map."""
    on_sphere = index >= data.sphere_from
    anchors = jnp.where(on_sphere, unit(state.anchors), state.anchors)
    if settings.ties != "first":
        check_choice("rule of ties", settings.ties, ("first", "random"))
        data = shuffled(data, jax.random.key(index))
    x, y = matched_rows(data, anchors, settings)
    wanted = relative(x, data.source_anchors)

    def mse(anchors):
        return jnp.mean((wanted - relative(y, anchors)) ** 2)

    loss, gradient = jax.value_and_grad(mse)(anchors)

    def tied(optimiser_state):
        return data.source_anchors @ procrustes(x, y) - anchors, optimiser_state

    def free(optimiser_state):
        return optax.adam(settings.learning_rate).update(gradient, optimiser_state, anchors)

    def held(optimiser_state):
        return optimiser(settings).update(gradient, optimiser_state, anchors)

    frozen = jnp.arange(len(anchors))[:, None] < settings.freeze_pairs * data.num_pairs
    branch = jnp.where(index < data.tied_steps, 0, jnp.where(on_sphere, 2, 1))
    updates, optimiser_state = jax.lax.switch(branch, [tied, free, held], state.optimiser)
    updates = jnp.where(frozen, 0.0, updates)
    moved = optax.apply_updates(anchors, updates)
    # Optax annotates any tree, where the result is one like the argument.
    return State(moved, optimiser_state), {"loss": loss}  # pyright: ignore[reportArgumentType]


@jax.jit
def discretise(anchors: Float[Array, "k d"], vectors: Float[Array, "n d"]) -> Int[Array, " k"]:
    """Line 10: the row of `vectors` (unit) nearest to each anchor in cosine."""
    return top_k(unit(anchors), vectors, 1).index[:, 0]


def matched(problem: Problem, anchors: Float[Array, "k d_target"]) -> Int[np.ndarray, " k"]:
    """The target rows that the best one-to-one match of all relative rows gives the anchors."""
    source = unit_relative(problem.source, problem.source_anchors)
    return ot.assign(source, unit_relative(problem.target, anchors))[problem.anchors]


def run(problem: Problem, run: Run) -> Result:
    """Algorithm 1 with the settings of the run, whose random anchors begin near zero."""
    return _run(problem, run, run.settings.algorithm1)


def run_as_printed(problem: Problem, run: Run) -> Result:
    """Algorithm 1 as printed in the paper."""
    return _run(problem, run, printed(run.settings.algorithm1))


def _run(problem: Problem, run: Run, settings: Settings) -> Result:
    anchors = problem.source_anchors
    key = jax.random.key(run.random_seed)
    state = run.train(
        step,
        init(key, problem.target, problem.target_pairs, len(anchors), settings),
        prepare(problem.source, anchors, problem.target, len(problem.target_pairs), settings),
        printed(settings),  # static; what differs from them is in the data
        num_steps=settings.steps,
        chunk=25,
    )
    return Result(state.anchors)
