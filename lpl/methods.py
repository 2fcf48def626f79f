"""The rows of Table 1a by name: each maps two spaces into common coordinates from known pairs."""

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from common import cli, train
from common.errors import UserError
from common.workdir import Workdir
from lpl import baselines, loss, maps, training, transforms
from lpl.baselines import Common

WEIGHTS = {"closed": loss.lle_weights, "gradient": loss.lle_weights_by_gradient}
STEPS = 10  # compiled at once; as many records and two checkpoints are left of a training


class Problem(NamedTuple):
    """Two spaces and the pairs that are known.

    Attributes:
      source: raw vectors.
      target: raw vectors.
      pairs: rows that correspond; those after the first `count` are not to be used, they give
        gradient methods one shape over all numbers of pairs.
      count: of known pairs.
      key: of the random seed.
    """

    source: Float[Array, "n d_x"]
    target: Float[Array, "m d_z"]
    pairs: Int[Array, "k 2"]
    count: int
    key: Array


def closed(fit, problem: Problem, config: ConfigDict, work: Workdir, part: str) -> Common:
    """A method without a loop; the settings but `retrieval` are arguments of `fit`."""
    del work, part
    settings = {name: value for name, value in config.items() if name != "retrieval"}
    return fit(problem.source, problem.target, problem.pairs[: problem.count], **settings)


def descent(problem: Problem, config: ConfigDict, work: Workdir, part: str) -> Common:
    """L_mse + beta L_lpl + L_ortho by gradient descent (eq. 7); without LPL for beta = 0.

    Args:
      problem: the task.
      config: of the method.
      work: the run's folder, for checkpoints and records.
      part: their name.

    Raises:
      UserError: more neighbours than there are words, or a training that diverged.
    """
    if config.k >= (words := len(problem.source)):
        raise UserError(f"k is {config.k}: of {words} words each has {words - 1} neighbours.")
    x = transforms.normalise(problem.source, config.normalise)
    z = transforms.normalise(problem.target, config.normalise)
    start, draws = jax.random.split(problem.key)
    parameters, apply = maps.init(config.map, x.shape[1], z.shape[1], config.hidden, start)
    near, weights = _neighbourhoods(x, problem.pairs[:, 0], config)
    data = training.Data(
        x[problem.pairs[:, 0]],
        z[problem.pairs[:, 1]],
        near,
        weights,
        jnp.asarray(problem.count),
        draws,
    )
    settings = training.Settings(
        apply=apply,
        learning_rate=config.learning_rate,
        momentum=config.momentum,
        batch=config.batch,
        updates=config.updates,
        updates_per_step=config.updates // STEPS,
        beta=config.beta,
        orthogonality=config.orthogonality,
    )
    began = time.perf_counter()
    state = train.run(
        training.step,
        training.init(parameters, settings),
        data,
        settings,
        num_steps=STEPS,
        chunk=STEPS // 2,
        work=work,
        part=part,
    )
    jax.block_until_ready(state)
    rate = config.updates * config.batch / (time.perf_counter() - began)
    work.log(f"{part}/throughput", 0, {"pairs_per_second": rate})
    mapped = apply(state.parameters, x)
    if not bool(jnp.isfinite(mapped).all()):
        raise UserError(
            f"The training of {part} diverged: lower its learning_rate ({config.learning_rate})."
        )
    train.forget_checkpoints(work, part)
    return mapped, z


def _neighbourhoods(x, rows, config) -> tuple[Float[Array, "n k d"], Float[Array, "n k"]]:
    """First phase (eq. 6): each unit's neighbours and their weights, none without LPL."""
    if not config.beta:
        return jnp.zeros((len(rows), 0, x.shape[1])), jnp.zeros((len(rows), 0))
    index = loss.neighbours(x, rows, config.k)
    return x[index], WEIGHTS[config.weights](x, rows, index, config.regularisation)


def check(config: ConfigDict, method: str) -> None:
    """Refuses the values of a method that can't be meant.

    Args:
      config: of the experiment.
      method: name of the method, and of the part of the config with its values.

    Raises:
      UserError: a value out of its range.
    """
    own = config[method]
    for step in own.normalise:
        cli.choose(transforms.NORMALISATIONS, step, f"step of {method}.normalise")
    if "keep" in own:
        cli.positive(config, f"{method}.keep")
    if "map" not in own:
        return
    cli.choose(maps.MAPS, own.map, f"{method}.map")
    cli.choose(WEIGHTS, own.weights, f"{method}.weights")
    names = ("hidden", "learning_rate", "batch", "updates", "k")
    cli.positive(config, *(f"{method}.{name}" for name in names))
    cli.multiple(config, STEPS, f"{method}.updates")


METHODS = {
    "shigeto_2015": partial(closed, baselines.shigeto_2015),
    "artetxe_2016": partial(closed, baselines.multi_step),
    "smith_2017": partial(closed, baselines.multi_step),
    "artetxe_2018": partial(closed, baselines.multi_step),
    "mse_sgd": descent,
    "lpa_mse": descent,
}
