"""Readings of Algorithm 1: what the paper prints in two ways, or leaves open."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from anchor_opt import sphere
from anchor_opt.methods import algorithm1
from anchor_opt.methods.algorithm1 import Data
from anchor_opt.problem import Problem, Result, Run
from anchor_opt.relative import relative
from common import ot
from common.arrays import WholeNumber
from common.errors import UserError, check_choice
from common.linear import unit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(algorithm1.Settings):
    """`permute` 'source' compares each target row with the source row that the plan gives it (eq.
    1), 'target' the other way round (line 6). With `plan` 'hard' that row is the argmax of the
    plan, with 'soft' the plan's weighted mean of all rows. At the paper's epsilon many entries of
    the plan are equally large in float32: with `ties` 'first' the first of these rows is taken,
    with 'random' one that depends on the step alone.
    """  # noqa: D205

    permute: str = "source"
    plan: str = "hard"
    freeze_pairs: bool = False  # whether the anchors in known pairs are held constant
    ties: str = "first"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading(algorithm1.Step):
    """Values of one step."""

    permute: str
    plan: str
    ties: str

    def matched(
        self, data: Data, anchors: Float[Array, "k d_target"], index: WholeNumber
    ) -> tuple[Float[Array, "r d_source"], Float[Array, "r d_target"]]:
        """Rows of the source, and the rows of the target matched with them.

        With a soft plan the rows of the permuted space are the plan's weighted means. UserError: an
        unknown value of `permute` or `plan`.
        """
        if self.ties == "random":
            data = shuffled(data, jax.random.key(index))
        source, target = data.source_relative, relative(data.target, anchors)
        rows, epsilon = (self.permute, self.plan) == ("target", "hard"), self.sinkhorn_epsilon
        matching = algorithm1.sinkhorn_matching(data, anchors, self, rows=rows)
        match self.permute, self.plan:
            case "source", "hard":
                return data.source[matching.to_x], data.target
            case "source", "soft":
                return ot.barycentric(target, source, matching.u, data.source, epsilon), data.target
            case "target", "hard":
                return data.source, data.target[matching.to_y]
            case "target", "soft":
                return data.source, ot.barycentric(source, target, matching.v, data.target, epsilon)
        raise UserError(
            f"algorithm1 permutes the '{self.permute}' with the plan '{self.plan}': choose "
            "permute 'source' or 'target', and plan 'hard' or 'soft'."
        )


def run(problem: Problem, run: Run) -> Result:
    """Algorithm 1 with the settings of the run, whose random anchors begin near zero."""
    settings = run.settings.algorithm1
    return algorithm1.solve(problem, run, settings, values_of(problem, settings))


def run_in_form(problem: Problem, run: Run, *, form: str) -> Result:
    """The same, with anchors in one of `FORMS` from the step `sphere_from` on."""
    settings = run.settings.algorithm1
    values, free = values_of(problem, settings), min(settings.steps, settings.sphere_from)
    begun = algorithm1.solve(problem, run, dataclasses.replace(settings, steps=free), values)
    anchors = unit(begun.anchors)
    state = algorithm1.State(anchors, through(form, optax.adam(0.0)).init(anchors))
    data = algorithm1.prepare(problem.source, problem.source_anchors, problem.target)
    options = {"stage": form, "num_steps": settings.steps - free, "chunk": 25}
    return Result(run.train(STEPS[form], state, data, values, **options).anchors)


def values_of(problem: Problem, settings: Settings) -> algorithm1.Step:
    """The values of a step, with what the settings read otherwise than the printed algorithm."""
    values = algorithm1.values_of(settings)
    reading = settings.permute, settings.plan, settings.ties
    check_choice("rule of ties", settings.ties, ("first", "random"))
    num_frozen = settings.freeze_pairs * len(problem.target_pairs)
    values = dataclasses.replace(values, num_frozen=num_frozen)
    if reading != ("source", "hard", "first"):
        choices = dict(zip(("permute", "plan", "ties"), reading, strict=True))
        values = Reading(**dataclasses.asdict(values), **choices)
    return values


def exponential(x: Float[Array, "k d"], base: Float[Array, "k d"]) -> Float[Array, "k d"]:
    """The exponential map at the base, of the part of x that is tangent there."""
    v = sphere.tangent(base, x)
    length = jnp.sqrt(jnp.sum(v**2, axis=-1, keepdims=True) + 1e-30)  # has a gradient at zero
    return jnp.cos(length) * base + jnp.sinc(length / jnp.pi) * v


def normalised(x: Float[Array, "k d"], base: Float[Array, "k d"]) -> Float[Array, "k d"]:
    """Parameters base + x of any length, divided by it."""
    return unit(base + x)


# Adam on x, zero at first, with anchors form(x, anchors at first): the two ways in which GeoTorch
# keeps rows on a sphere, `geotorch.sphere` and the same with `embedded=True`.
FORMS = {"exponential": exponential, "normalised": normalised}


def through(form: str, optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimiser on the parameters x of a form, by the chain rule."""

    def init(params):
        return jnp.zeros_like(params), jnp.copy(params), optimiser.init(params)

    def update(updates, state, params=None):
        x, base, moments = state
        _, pull = jax.vjp(lambda x: FORMS[form](x, base), x)
        (gradient,) = pull(updates)
        change, moments = optimiser.update(gradient, moments, x)
        x = jnp.asarray(optax.apply_updates(x, change))
        return FORMS[form](x, base) - jnp.asarray(params), (x, base, moments)

    return optax.GradientTransformation(init, update)


def form_step(state, index, data: Data, settings: algorithm1.Step, *, form: str):
    """Lines 4 to 8, with anchors in a form."""
    optimiser = through(form, optax.adam(settings.learning_rate))
    return algorithm1.descend(state, index, data, settings, optimiser)


STEPS = {form: partial(form_step, form=form) for form in FORMS}


def shuffled(data: Data, key: jax.Array) -> Data:
    """The rows of each space in a random order, so that their given order decides no tie."""
    spaces = data.source, data.target
    order, target_order = map(jax.random.permutation, jax.random.split(key), map(len, spaces))
    return data._replace(
        source=data.source[order],
        source_relative=data.source_relative[order],
        target=data.target[target_order],
    )
