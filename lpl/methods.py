"""The rows of Table 1a: each method maps source and target into common coordinates.

A method is a frozen dataclass of its settings whose `fit` takes a `Problem` and returns both spaces
in common coordinates. `METHODS` has their names.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from common import csls, linear, multi_step
from common.errors import check_choice
from common.linear import normalise, whitening_on_span
from common.run.train import Metrics
from common.run.workdir import Workdir
from lpl import loss, training

Common = tuple[Float[Array, "n r"], Float[Array, "m r"]]


class Problem(NamedTuple):
    """Two spaces and their known pairs.

    Attributes:
      source: raw vectors of the source space.
      target: raw vectors of the target space.
      pairs: rows that correspond. Only the first `num_pairs` are known; the others give gradient
        methods arrays of one shape for all numbers of pairs.
      num_pairs: number of known pairs.
      key: random key of the run.
    """

    source: Float[Array, "n d_x"]
    target: Float[Array, "m d_z"]
    pairs: Int[Array, "k 2"]
    num_pairs: int
    key: Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class RidgeRegression:
    """Ridge regression from target to source (Shigeto et al. 2015).

    The target space is mapped: as regression shrinks the vectors that it maps, this makes fewer
    hubs among the candidates than mapping the source space.

    Attributes:
      normalise: steps of `linear.normalise` for each space.
      penalty: weight of |W|^2 beside the sum of squared errors.
    """

    normalise: tuple[str, ...]
    penalty: float

    def fit(self, problem: Problem, work: Workdir | None = None, part: str = "") -> Common:
        """Both spaces in common coordinates."""
        x, z = _normalised(problem, self.normalise)
        pairs = problem.pairs[: problem.num_pairs]
        return x, z @ linear.ridge(z[pairs[:, 1]], x[pairs[:, 0]], self.penalty)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiStep:
    """The framework of `common.multi_step`, steps S0 to S5 of Table 1b; S2 is always used.

    Attributes:
      normalise: S0, steps of `linear.normalise` for each space.
      whiten: S1, whether to whiten each space by its known vectors; undone by S4.
      reweight: S3, the powers of the cross-correlations by which the coordinates of the source and
        of the target are scaled.
      keep_fraction: S5, the fraction of the directions that is kept.
    """

    normalise: tuple[str, ...]
    whiten: bool = False
    reweight: tuple[float, float] = (0.0, 0.0)
    keep_fraction: float = 1.0

    def fit(self, problem: Problem, work: Workdir | None = None, part: str = "") -> Common:
        """Both spaces in common coordinates."""
        pairs = problem.pairs[: problem.num_pairs]
        return _multi_step(problem.source, problem.target, pairs, self)


@partial(jax.jit, static_argnames="settings")
def _multi_step(source, target, pairs, settings: MultiStep) -> Common:
    x, z = normalise(source, settings.normalise), normalise(target, settings.normalise)
    maps = multi_step.fit(
        x[pairs[:, 0]],
        z[pairs[:, 1]],
        whiten=whitening_on_span if settings.whiten else None,
        reweight=settings.reweight,
    )
    x, z = x @ maps.source, z @ maps.target
    kept = max(1, round(settings.keep_fraction * x.shape[1]))  # those of largest cross-correlation
    return x[:, :kept], z[:, :kept]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfLearning:
    """Self-learning from a small dictionary (Artetxe et al. 2017, 2018).

    In turn, an orthogonal map is fitted to the dictionary, and the dictionary is made again of the
    best partner by CSLS of each of the most frequent words in either space. At the end the whole
    framework `MultiStep` is fitted to the last dictionary. Unlike vecmap's code it makes a fixed
    number of iterations, and no similarities are left out at random.

    Attributes:
      normalise: S0, steps of `linear.normalise` for each space.
      iterations: number of dictionaries that are made.
      words: number of words in the dictionary, the most frequent of each space.
      neighbours: of CSLS.
      reweight: S3 of the last fit, which whitens as well.
    """

    normalise: tuple[str, ...]
    iterations: int
    words: int
    neighbours: int
    reweight: tuple[float, float]

    def fit(self, problem: Problem, work: Workdir | None = None, part: str = "") -> Common:
        """Both spaces in common coordinates."""
        pairs = problem.pairs[: problem.num_pairs]
        orthogonal = MultiStep(normalise=self.normalise)
        for _ in range(self.iterations):
            spaces = _multi_step(problem.source, problem.target, pairs, orthogonal)
            x, z = (linear.unit(space[: self.words]) for space in spaces)
            matches = csls.dictionary(x, z, neighbours=self.neighbours, frequent=self.words)
            forward = jnp.stack([jnp.arange(len(x)), matches.to_target], axis=1)
            backward = jnp.stack([matches.to_source, jnp.arange(len(z))], axis=1)
            pairs = jnp.concatenate([forward, backward])
        whole = MultiStep(normalise=self.normalise, whiten=True, reweight=self.reweight)
        return _multi_step(problem.source, problem.target, pairs, whole)


class Data(NamedTuple):
    """The vectors of pairs, and the neighbours of each source vector with their weights.

    Pairs are padded, so that all numbers `num_pairs` of known pairs share a compilation.
    """

    source: Float[Array, "n d_in"]
    targets: Float[Array, "n d_out"]
    neighbours: Float[Array, "n k d_in"]
    weights: Float[Array, "n k"]
    num_pairs: Int[Array, ""]
    key: Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientDescent(training.Training):
    """L_mse + beta L_lpl + L_ortho by gradient descent (equation 7); beta = 0 is MSE alone.

    L_ortho, with the weight `orthogonality`, is used if the map is linear. The config file
    configs/lpl/word_alignment.py explains all values.
    """

    normalise: tuple[str, ...]
    map: str
    hidden: int
    momentum: float
    orthogonality: float
    beta: float
    k: int
    weights: str
    regularisation: float

    def fit(self, problem: Problem, work: Workdir, part: str) -> Common:
        """The mapped source space, and the target space; UserError if the training diverges."""
        x, z = _normalised(problem, self.normalise)
        first, second = jax.random.split(problem.key)
        parameters, apply = training.init_map(self.map, x.shape[1], z.shape[1], self.hidden, first)
        rows = problem.pairs[:, 0]
        near, num_pairs = self._neighbours(x, rows), jnp.asarray(problem.num_pairs)
        targets = z[problem.pairs[:, 1]]
        data = Data(source=x[rows], targets=targets, num_pairs=num_pairs, key=second, **near)
        settings = dataclasses.replace(self, apply=apply)
        state = training.init_state(parameters, settings)
        state = training.run(training.step, state, data, settings, work=work, part=part)
        return apply(state.parameters, x), z

    def _neighbours(self, x, rows) -> dict[str, Array]:
        """First phase (equation 6): the neighbours of rows and their weights; k = 0 without LPL.

        The neighbours are among all words of the space, most of which have no known translation.
        """
        check_choice("kind of weights", self.weights, loss.WEIGHTS)
        if not self.beta:
            none = jnp.zeros((len(rows), 0, x.shape[1]))
            return {"neighbours": none, "weights": none[..., 0]}
        index, solve = loss.neighbours(x, rows, self.k), loss.WEIGHTS[self.weights]
        weights = loss.lle_weights(x, rows, index, self.regularisation, solve)
        if self.map == "linear":  # equal by linearity (see `loss.lpl`), and maps one vector, not k
            rebuilt = loss.combine(x[index], weights)
            return {"neighbours": rebuilt[:, None], "weights": jnp.ones((len(rows), 1))}
        return {"neighbours": x[index], "weights": weights}

    def optimiser(self, schedule: optax.Schedule) -> optax.GradientTransformation:
        """Stochastic gradient descent with momentum."""
        return optax.sgd(schedule, momentum=self.momentum)

    def objective(
        self, parameters: training.Parameters, data: Data, rows: Int[Array, " b"]
    ) -> tuple[Float[Array, ""], Metrics]:
        """L_mse + beta L_lpl + L_ortho of a batch (equation 7), and its terms."""
        apply_map = partial(self.apply, parameters)
        targets = data.targets[rows]
        terms = {"mse": loss.mse(apply_map(data.source[rows]), targets).mean()}
        total = terms["mse"]
        if self.beta:
            near = apply_map(data.neighbours[rows])
            terms["lpl"] = loss.lpl(near, data.weights[rows], targets).mean()
            total += self.beta * terms["lpl"]
        if self.apply is training.linear and self.orthogonality:
            terms["orthogonality"] = loss.orthogonality(parameters)
            total += self.orthogonality * terms["orthogonality"]
        return total, terms


def _normalised(problem: Problem, steps: tuple[str, ...]) -> tuple[Array, Array]:
    """Both spaces after S0."""
    return normalise(problem.source, steps), normalise(problem.target, steps)


METHODS = {
    "shigeto_2015": RidgeRegression,
    "artetxe_2016": MultiStep,
    "smith_2017": MultiStep,
    "artetxe_2018": MultiStep,
    "self_learning": SelfLearning,
    "mse_sgd": GradientDescent,
    "lpa_mse": GradientDescent,
}
