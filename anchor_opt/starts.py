"""Starts of the bootstrap without known pairs: soft matchings from the two geometries alone.

Each takes the most frequent rows of both spaces, in orders that say nothing about each other, and
gives plans; the bootstrap tries them in the order of their Gromov-Wasserstein cost. `gromov` works
where the spaces are near to isometric; the others are what else the literature tries, kept for the
table that compares them (configs/anchor_opt/starts.py). SciPy and scikit-learn, a second to import,
are imported where these use them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, Float
from ml_collections import ConfigDict

from anchor_opt.bootstrap import Matches, match
from anchor_opt.problem import Problem
from anchor_opt.relative import preprocess, unit
from common import gromov, ot
from common.alignment import procrustes

Rows = Float[Array, "n d"]
Plans = Iterator[tuple[str, Float[Array, "n n"]]]


class Candidate(NamedTuple):
    """A place to start from.

    Attributes:
      name: of the start and its settings.
      covariance: [d_fixed, d_moving] sum over i, j of plan_ij x_i y_j'.
      cost: Gromov-Wasserstein cost of the plan; 0 for an isometry, 1 for knowing nothing.
    """

    name: str
    covariance: Float[Array, "d_fixed d_moving"]
    cost: float


def candidates(problem: Problem, config: ConfigDict, random_seed: int) -> list[Candidate]:
    """The cheapest candidates of config.name, the cheapest first.

    Args:
      problem: only its rows, and which of them are frequent, are looked at.
      config: config.start.
      random_seed: of starts that draw.
    """
    found = []
    for words in dict.fromkeys(min(words, problem.most_rows) for words in config.words):
        rows, moving_rows = problem.frequent(words)
        fixed, moving = problem.fixed[rows], problem.moving[moving_rows]
        for setting, plan in STARTS[config.name](fixed, moving, config, random_seed):
            name = f"{config.name}-{words}{setting}"
            cost = float(gromov.cost(fixed, moving, plan))
            logging.info("Start %s: Gromov-Wasserstein cost %.3f", name, cost)
            found.append(Candidate(name, fixed.T @ plan @ moving, cost))
    return sorted(found, key=lambda candidate: candidate.cost)[: config.tries]


def entropic(fixed: Rows, moving: Rows, config: ConfigDict, random_seed: int) -> Plans:
    """Entropic Gromov-Wasserstein from the product of the marginals, at each epsilon."""
    del random_seed
    for epsilon in config.epsilon:
        yield f"-{epsilon:g}", gromov.match(fixed, moving, epsilon, steps=config.steps).plan


def annealed(fixed: Rows, moving: Rows, config: ConfigDict, random_seed: int) -> Plans:
    """The same with epsilon falling, each solved from the plan before."""
    del random_seed
    plan = None
    for epsilon in sorted(config.anneal, reverse=True):
        plan = gromov.match(fixed, moving, epsilon, plan, steps=config.anneal_steps).plan
    yield "", plan


def profiles(fixed: Rows, moving: Rows, config: ConfigDict, random_seed: int) -> Plans:
    """Nearest sorted similarities, of the square root of the Gram matrix (Artetxe et al. 2018)."""
    del config, random_seed

    def profile(x):
        left, values, _ = jnp.linalg.svd(x, full_matrices=False)
        return preprocess(jnp.sort((left * values) @ left.T, axis=1))

    yield "", _plan(match(profile(fixed), profile(moving)))


def faq(fixed: Rows, moving: Rows, config: ConfigDict, random_seed: int) -> Plans:
    """Frank-Wolfe on the quadratic assignment of similarities (Vogelstein et al. 2015)."""
    from scipy.optimize import quadratic_assignment

    similar = [np.asarray(x @ x.T) for x in (fixed, moving)]
    for start in range(config.draws):
        initial = "randomized" if start else "barycenter"
        rng = np.random.default_rng([random_seed, start])
        options = {"maximize": True, "P0": initial, "rng": rng}
        found = quadratic_assignment(*similar, method="faq", options=options)
        yield f"-{start}", jnp.eye(len(fixed))[:, np.argsort(found.col_ind)] / len(fixed)


def wasserstein_procrustes(
    fixed: Rows, moving: Rows, config: ConfigDict, random_seed: int
) -> Plans:
    """Transport and rotation in turn, epsilon falling (Grave et al. 2019), from principal axes.

    The axes of both spaces are paired by variance, their signs set so that each is skewed upwards.
    """
    del random_seed

    def axes(x):
        _, _, right = jnp.linalg.svd(x, full_matrices=False)
        scores = x @ right.T
        return right.T * jnp.sign(jnp.sum(scores**3, axis=0))

    rank = min(fixed.shape[1], moving.shape[1])
    rotation = axes(fixed)[:, :rank] @ axes(moving)[:, :rank].T
    for epsilon in sorted(config.anneal_cosine, reverse=True):
        for _ in range(config.anneal_steps):
            plan = ot.plan(1 - unit(fixed @ rotation) @ moving.T, epsilon)
            rotation = procrustes(fixed, plan @ moving)
    yield "", plan


def clusters(fixed: Rows, moving: Rows, config: ConfigDict, random_seed: int) -> Plans:
    """Cluster centroids matched by quadratic assignment, the best of many draws (mini-vec2vec)."""
    from scipy.optimize import quadratic_assignment
    from sklearn.cluster import KMeans

    for draw in range(config.draws):
        members, centres = [], []
        for x in (fixed, moving):
            means = KMeans(config.clusters, n_init=3, random_state=random_seed + draw).fit(x)
            members.append(jax.nn.one_hot(means.labels_, config.clusters))
            centres.append(np.asarray(preprocess(jnp.asarray(means.cluster_centers_))))
        similar = [c @ c.T for c in centres]
        rng = np.random.default_rng([random_seed, draw])
        tries = [
            quadratic_assignment(*similar, method="2opt", options={"maximize": True, "rng": rng})
            for _ in range(30)
        ]
        chosen = max(tries, key=lambda found: found.fun).col_ind
        paired = members[0] @ members[1][:, chosen].T
        for _ in range(20):  # rows and columns of one mass
            paired /= jnp.maximum(paired.sum(axis=1, keepdims=True), 1e-9)
            paired /= jnp.maximum(paired.sum(axis=0, keepdims=True), 1e-9)
        yield f"-{draw}", paired / paired.sum()


def _plan(found: Matches) -> Float[Array, "n n"]:
    """Half the mass to each direction of the matches."""
    n = len(found.to_moving)
    eye = jnp.eye(n)
    return (eye[found.to_moving] + eye[found.to_fixed].T) / (2 * n)


STARTS: dict[str, Callable[[Rows, Rows, ConfigDict, int], Plans]] = {
    "gromov": entropic,
    "annealed": annealed,
    "profiles": profiles,
    "faq": faq,
    "wasserstein_procrustes": wasserstein_procrustes,
    "clusters": clusters,
}
