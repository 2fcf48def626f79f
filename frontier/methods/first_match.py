"""How clear the first match of Algorithm 1 is, known before it runs: a law of when it succeeds.

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

from anchor_opt.problem import Problem
from anchor_opt.relative import relative
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

    Args:
      problem: of unit rows, with at least two known pairs.
      init_norm: the length s of the random anchors.
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


def true_signal(problem: Problem) -> Float[Array, ""]:
    """The signal as it is: the mean over true pairs that are not known."""
    return _true_signal(*_spaces(problem), *problem.pairs, problem.known_truth)


@jax.jit
def _true_signal(source, target, source_pairs, target_pairs, truth) -> Float[Array, ""]:
    x = relative(source, source[source_pairs])
    y = relative(target[truth], target[target_pairs])
    of_known = jnp.isin(jnp.arange(len(x)), source_pairs)
    return jnp.mean(jnp.sum(x * y, axis=1), where=~of_known)


def closed_form(problem: Problem, init_norm: float) -> Float[Array, ""]:
    """CKA p / sqrt(p + s^2 (k - p) D_y / d); the CKA reads the truth."""
    p, others = len(problem.target_pairs), len(problem.anchors) - len(problem.target_pairs)
    return _closed_form(*_spaces(problem), problem.known_truth, p, others, init_norm)


@jax.jit
def _closed_form(source, target, truth, p, others, init_norm) -> Float[Array, ""]:
    effective = len(target) ** 2 / jnp.sum((target.T @ target) ** 2)
    random = init_norm**2 * others * effective / target.shape[1]
    return linear_cka(source, target[truth]) * p / jnp.sqrt(p + random)


def _spaces(problem: Problem) -> tuple[Array, Array]:
    return jnp.asarray(problem.source), jnp.asarray(problem.target)
