"""The first match of Algorithm 1, and a law of when the algorithm succeeds, known before it runs.

The first match compares x and y by x M y', where M = P + N. P is the sum of a_j' b_j over the p
known pairs (a_j, b_j), and N that of a_j' n_j over the k - p other anchors, whose partners n_j are
random directions of length s in the d dimensions of the target. Over all pairs of unit rows

  signal    mean of x P y over true pairs; r sum_j sqrt(E[(x a_j)^2] E[(y b_j)^2]), where r is the
            correlation of x a and y b, as it is between the known pairs (a, b) themselves
  spread^2  mean of (x P y)^2 over all pairs of rows
  noise^2   mean of (x N y)^2 over all pairs of rows and draws of N: s^2 sum E[(x a_j)^2] / d

The ratio signal / sqrt(spread^2 + noise^2) is by how many standard deviations a true partner is
ahead of other rows. Of centred spaces r is the CKA, and the signal p CKA / sqrt(D_x D_y). D is the
effective number of dimensions: 1 / D is the mean squared cosine of two rows, which columns of zeros
do not change. Of few known pairs spread^2 is near p / (D_x D_y), and the ratio near

  CKA p / sqrt(p + s^2 (k - p) D_y / d)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anchor_opt.methods import algorithm1
from anchor_opt.problem import Problem
from anchor_opt.relative import relative
from common import ot
from common.arrays import AnyArray
from common.metrics import linear_cka


class Similarities(NamedTuple):
    """What the first match sees of a true pair, and the two parts of what it sees of others."""

    signal: Float[Array, ""]
    spread: Float[Array, ""]
    noise: Float[Array, ""]

    @property
    def ratio(self) -> float:
        """Signal over standard deviation."""
        return float(self.signal / jnp.hypot(self.spread, self.noise))


def expected(problem: Problem, init_norm: float) -> Similarities:
    """The similarities of the first match, as the known pairs and both spaces tell without a truth.

    The rows are unit rows, and there are two known pairs at least; s is `init_norm`.
    """
    return _expected(*_spaces(problem), problem.anchors, *problem.pairs, init_norm)


@jax.jit
def _expected(source, target, anchors, source_pairs, target_pairs, init_norm) -> Similarities:
    p = len(target_pairs)
    x, y = relative(source, source[anchors]), relative(target, target[target_pairs])
    other = ~np.eye(p, dtype=bool)
    of_x, of_y = x[source_pairs, :p][other], y[target_pairs][other]
    correlation = of_x @ of_y / (jnp.linalg.norm(of_x) * jnp.linalg.norm(of_y))
    lengths = jnp.sqrt(jnp.mean(x[:, :p] ** 2, axis=0) * jnp.mean(y**2, axis=0))
    moments = (x[:, :p].T @ x[:, :p] / len(x)) * (y.T @ y / len(y))
    noise = init_norm**2 * jnp.mean(jnp.sum(x[:, p:] ** 2, axis=1)) / target.shape[1]
    return Similarities(correlation * jnp.sum(lengths), jnp.sqrt(jnp.sum(moments)), jnp.sqrt(noise))


def true_similarities(problem: Problem) -> Float[np.ndarray, " n"]:
    """The similarity x P y of each source row and its true partner: its mean is the signal."""
    source, target = _spaces(problem)
    rows, partners = problem.pairs
    x, y = relative(source, source[rows]), relative(target, target[partners])
    return np.asarray(jnp.sum(x * y[problem.known_truth], axis=1))


def closed_form(problem: Problem, init_norm: float) -> Float[Array, ""]:
    """CKA p / sqrt(p + s^2 (k - p) D_y / d); the CKA reads the truth."""
    p, others = len(problem.target_pairs), len(problem.anchors) - len(problem.target_pairs)
    source, target = _spaces(problem)
    effective = len(target) ** 2 / jnp.sum((target.T @ target) ** 2)
    random = init_norm**2 * others * effective / target.shape[1]
    return linear_cka(source, target[problem.known_truth]) * p / jnp.sqrt(p + random)


def begun(
    problem: Problem, settings: algorithm1.Settings, random_seed: int
) -> tuple[Float[AnyArray, "n k"], Float[AnyArray, "m k"], Float[Array, "k d_target"]]:
    """What the first match compares: relative rows of both spaces; and the target's anchors."""
    key, k = jax.random.key(random_seed), len(problem.anchors)
    state = algorithm1.init(key, problem.target, problem.target_pairs, k, settings.init_norm)
    x = relative(problem.source, problem.source_anchors)
    return x, relative(problem.target, state.anchors), state.anchors


def right(
    problem: Problem,
    x: Float[AnyArray, "n c"],
    y: Float[AnyArray, "m c"],
    settings: algorithm1.Settings,
) -> float:
    """The fraction of target rows that are matched with their source row by relative rows."""
    matches = ot.match(x, y, settings.sinkhorn_epsilon, iterations=settings.sinkhorn_iterations)
    return float(np.mean(problem.known_truth[matches.to_x] == np.arange(len(y))))


def taken_apart(
    problem: Problem, settings: algorithm1.Settings, random_seed: int
) -> dict[str, float]:
    """The first match, and what the columns of known pairs and of random anchors add to it.

    Fractions of target rows whose match is the right source row: `first_match`; `_known`, by the
    known pairs' columns alone; `_noise`, with random columns of the target's relative rows replaced
    by independent normal numbers of deviation s / sqrt(d). `signal_to_noise`: mean squared length
    of these rows over the known columns, divided by that over the random ones. `signal`: mean
    similarity of all true pairs over the known columns; `noise`: similarity of all pairs over the
    random ones, root mean square of its deviation over the target's rows; `estimated_noise`: that
    of `expected`.
    """
    p, dimensions = len(problem.target_pairs), problem.target.shape[1]
    x, y, anchors = begun(problem, settings, random_seed)
    normal = jax.random.normal(jax.random.key(random_seed + 1), y[:, p:].shape)
    normal *= settings.init_norm / np.sqrt(dimensions)
    directions = x[:, p:] @ anchors[p:]
    covariance = jnp.cov(problem.target, rowvar=False, bias=True)
    variance = jnp.sum(directions @ covariance * directions, axis=1)
    values = {
        "first_match": right(problem, x, y, settings),
        "first_match_known": right(problem, x[:, :p], y[:, :p], settings),
        "first_match_noise": right(problem, x, jnp.hstack([y[:, :p], normal]), settings),
        "signal_to_noise": jnp.sum(y[:, :p] ** 2) / jnp.sum(y[:, p:] ** 2),
        "signal": true_similarities(problem).mean(),
        "noise": jnp.sqrt(variance.mean()),
        "estimated_noise": expected(problem, settings.init_norm).noise,
    }
    return {name: float(value) for name, value in values.items()}


def _spaces(problem: Problem) -> tuple[Array, Array]:
    return jnp.asarray(problem.source), jnp.asarray(problem.target)
