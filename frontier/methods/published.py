"""Published methods for few or no known pairs, beside which self-learning stands.

  mini_vec2vec   matched cluster centres, then nearest neighbours (Dar 2025, arXiv:2510.02348)
  rosetta        Unpaired Rosetta: matched cluster centres, then exact assignments (Schnaus et al.
                 2026, arXiv:2610.09411)
  goat           graph matching via optimal transport from known pairs (goat.py)

Each finds one map W with orthonormal rows or columns, of the source onto the target: x W. All rows
are unit rows in an order that does not tell which of them belong together. Where the papers leave
known pairs out, they are used as the docstring says.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from anchor_opt.problem import Problem, Result, Run
from common.arrays import AnyArray
from common.linear import procrustes, unit
from common.ot import assign
from common.retrieval import largest, products
from isthmus.search import clusters, goat
from isthmus.search.clusters import k_means, matched_centres

Pairs = tuple[Int[AnyArray, " p"], Int[AnyArray, " p"]]  # rows of source and target


@dataclasses.dataclass(frozen=True, kw_only=True)
class MiniVec2Vec:
    """Values of `mini_vec2vec`, those of the paper."""

    num_draws: int = 30  # samples of rows that are clustered
    draw_rows: int = 10_000  # rows in a sample, all rows if there are fewer
    num_clusters: int = 20
    num_restarts: int = 30  # of each quadratic assignment
    neighbours: int = 50
    steps: int = 100  # refinements by neighbours
    step_rows: int = 1_000
    last_clusters: int = 500  # cut to half of the rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rosetta:
    """Values of `rosetta`, those of the paper but for the solver of the quadratic assignment."""

    num_draws: int = 30  # samples of rows that are clustered
    draw_rows: int = 10_000  # rows in a sample and of a batch, at most those of either space
    num_clusters: int = 30
    num_restarts: int = 200  # ours: the paper's solver has none
    steps: int = 100  # at most; fewer if a batch is all rows and the assignment repeats


def _sampling(settings: MiniVec2Vec | Rosetta, draw_rows: int) -> clusters.Settings:
    names = "num_draws", "num_clusters", "num_restarts"
    options = {name: getattr(settings, name) for name in names}
    return clusters.Settings(draw_rows=draw_rows, **options)


def mini_vec2vec(
    source: Float[AnyArray, "n d"],
    target: Float[AnyArray, "m e"],
    pairs: Pairs,
    settings: MiniVec2Vec,
    random_seed: int,
) -> Float[Array, "d e"]:
    """mini-vec2vec: pseudo-pairs by matched centres, then two refinements (its Algorithms 1 to 4).

    Rows are described by their cosines with the matched centres of all samples; known pairs are
    further centres. A row's pseudo-partner is the mean of the target rows with the most similar
    descriptions, and W is fitted to these. Then, for `steps` random batches, W is averaged with the
    map onto the mean of the nearest target rows of x W; at the end it is fitted to the centres of
    k-means, which in the target starts from the mapped centres of the source.
    """
    keys = jax.random.split(jax.random.key(random_seed), 5)
    spaces = source, target
    centres = matched_centres(keys[:3], spaces, _sampling(settings, settings.draw_rows))
    descriptions = [
        _descriptions(x, c, rows) for x, c, rows in zip(spaces, centres, pairs, strict=True)
    ]
    count = min(settings.neighbours, len(target))
    matrix = procrustes(source, _neighbour_means(*descriptions, target, count))
    batch = min(settings.step_rows, len(source))

    def refine(matrix, key):
        rows = source[jax.random.permutation(key, len(source))[:batch]]
        new = procrustes(rows, _neighbour_means(rows @ matrix, target, target, count))
        return (matrix + new) / 2, None

    matrix, _ = lax.scan(refine, matrix, jax.random.split(keys[3], settings.steps))
    most = min(settings.last_clusters, min(map(len, spaces)) // 2)
    chosen = jax.random.permutation(keys[4], len(source))[:most]
    centres = k_means(source, jnp.take(source, chosen, axis=0))
    return procrustes(centres, k_means(target, unit(centres @ matrix)))


@jax.jit
def _descriptions(
    x: Float[Array, "n d"], centres: Float[Array, "s c d"], known: Int[AnyArray, " p"]
) -> Float[Array, "n f"]:
    """Cosines of the rows with all centres and with the known rows, scaled to unit length."""
    return unit(x @ unit(jnp.concatenate([centres.reshape(-1, x.shape[1]), x[known]])).T)


@partial(jax.jit, static_argnames="count")
def _neighbour_means(queries, keys, values, count):
    """Of each query the mean of the values of the `count` keys of largest inner product."""

    def mean(query):
        return values[largest(products(query[None], keys), count).index[0]].mean(axis=0)

    return lax.map(mean, queries, batch_size=256)


def rosetta(
    source: Float[AnyArray, "n d"],
    target: Float[AnyArray, "m e"],
    pairs: Pairs,
    settings: Rosetta,
    random_seed: int,
) -> Float[Array, "d e"]:
    """Unpaired Rosetta: the mean covariance of matched centres, then exact assignments.

    The centres A_s, B_s of each sample are matched by max Tr(K_A P K_B P') of centred kernels. The
    mean of A_s' P_s B_s scores all pairs of rows; W is fitted to the exact assignment of these
    scores, and then in turn to the assignment of x W y' on random batches. Known pairs enter the
    quadratic assignment as a linear term and the fits with as much weight as the matched rows.
    """
    spaces, rng = (source, target), np.random.default_rng(random_seed)
    size = min(settings.draw_rows, *map(len, spaces))
    known = source[pairs[0]], target[pairs[1]]
    centres = matched_centres(
        jax.random.split(jax.random.key(random_seed), 3),
        spaces,
        _sampling(settings, size),
        known,
    )
    matrix = jnp.einsum("scd,sce->de", *centres)
    whole, batch, before = size == len(source) == len(target), spaces, None
    for _ in range(settings.steps + 1):
        if not whole:
            batch = [x[rng.permutation(len(x))[:size]] for x in spaces]
        # `assign` expects rows of length one. A common factor does not change the assignment.
        rows = batch[0] @ matrix
        permutation = assign(rows / jnp.linalg.norm(rows, axis=1).mean(), batch[1])
        if whole and before is not None and np.array_equal(permutation, before):
            break
        before = permutation
        scale = jnp.sqrt(size / max(len(known[0]), 1))
        matrix = procrustes(
            jnp.concatenate([batch[0], scale * known[0]]),
            jnp.concatenate([batch[1][permutation], scale * known[1]]),
        )
    return matrix


def run_mini_vec2vec(problem: Problem, run: Run) -> Result:
    """The map of `mini_vec2vec`, applied to the anchors."""
    settings, spaces = run.settings.mini_vec2vec, (problem.source, problem.target)
    return Result.of_map(problem, mini_vec2vec(*spaces, problem.pairs, settings, run.random_seed))


def run_rosetta(problem: Problem, run: Run) -> Result:
    """The map of `rosetta`, applied to the anchors."""
    settings, spaces = run.settings.rosetta, (problem.source, problem.target)
    return Result.of_map(problem, rosetta(*spaces, problem.pairs, settings, run.random_seed))


def run_goat(problem: Problem, run: Run) -> Result:
    """The map of GOAT, applied to the anchors."""
    spaces = problem.source, problem.target
    return Result.of_map(problem, goat.solve(*spaces, problem.pairs, run.settings.goat))
