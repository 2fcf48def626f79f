"""Starts of the bootstrap without known pairs: soft matchings from the two geometries alone.

Each start takes the most frequent rows of both spaces, in an order that does not tell which rows
belong together, and gives plans; the bootstrap tries them in the order of their Gromov-Wasserstein
cost. `gromov` works if the spaces are nearly isometric; the others are further methods of the
literature, compared with it by configs/anchor_opt/starts.py.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jaxtyping import Array, Float
from scipy.optimize import quadratic_assignment
from sklearn.cluster import KMeans

from common import ot
from common.errors import UserError
from common.linear import preprocess, procrustes, unit
from common.retrieval import csls_dictionary

Rows = Float[Array, "n d"]
Plans = Iterator[tuple[str, Float[Array, "n n"]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Values of the starts; "measured" is discussed in docs/results/anchor_opt.md."""

    name: str = "gromov"  # a key of STARTS
    rows: tuple[int, ...] = (600, 1_000)  # most frequent rows that are matched; measured
    max_candidates: int = 2  # plans that the bootstrap is run from, in the order of their cost
    # gromov: regularisation, as a fraction of the spread of the cost (measured), and the most
    # linearisations
    epsilon: tuple[float, ...] = (0.02, 0.025, 0.03)
    steps: int = 150
    # annealed and wasserstein_procrustes: falling regularisation, steps at each value
    anneal_epsilon: tuple[float, ...] = (0.06, 0.04, 0.03, 0.025, 0.02)
    cosine_epsilon: tuple[float, ...] = (0.1, 0.07, 0.05, 0.03)
    steps_per_epsilon: int = 15
    # faq and clusters
    num_draws: int = 2
    num_clusters: int = 20  # mini-vec2vec (Dar 2025): 20


class Candidate(NamedTuple):
    """A plan to start from.

    Attributes:
      name: of the start and its settings.
      covariance: [d_source, d_target] sum over i, j of plan_ij x_i y_j'.
      cost: Gromov-Wasserstein cost of the plan: 0 for an isometry, 1 for independent rows.
    """

    name: str
    covariance: Float[Array, "d_source d_target"]
    cost: float


def candidates(
    spaces: Iterable[tuple[Rows, Rows]], settings: Settings, random_seed: int
) -> list[Candidate]:
    """The plans of least cost, in increasing order of it.

    Args:
      spaces: unit rows of source and target to match, several choices of them.
      settings: of the start.
      random_seed: of starts that draw.

    Raises:
      UserError: an unknown start.
    """
    if settings.name not in STARTS:
        raise UserError(
            f"There is no start '{settings.name}': set start.name to one of {', '.join(STARTS)}."
        )
    found = []
    for source, target in spaces:
        for variant, plan in STARTS[settings.name](source, target, settings, random_seed):
            name = f"{settings.name}-{len(source)}{variant}"
            cost = float(ot.gromov_cost(source, target, plan))
            logging.info("Start %s: Gromov-Wasserstein cost %.3f", name, cost)
            found.append(Candidate(name, source.T @ plan @ target, cost))
    return sorted(found, key=lambda candidate: candidate.cost)[: settings.max_candidates]


def entropic(source: Rows, target: Rows, settings: Settings, random_seed: int) -> Plans:
    """Entropic Gromov-Wasserstein from the product of the marginals, at each epsilon."""
    for epsilon in settings.epsilon:
        yield f"-{epsilon:g}", ot.gromov_wasserstein(source, target, epsilon, steps=settings.steps)


def annealed(source: Rows, target: Rows, settings: Settings, random_seed: int) -> Plans:
    """The same with epsilon falling, each problem solved from the plan before."""
    plan, steps = None, settings.steps_per_epsilon
    for epsilon in sorted(settings.anneal_epsilon, reverse=True):
        plan = ot.gromov_wasserstein(source, target, epsilon, plan, steps=steps)
    yield "", plan


def profiles(source: Rows, target: Rows, settings: Settings, random_seed: int) -> Plans:
    """Nearest sorted similarities, of the square root of the Gram matrix (Artetxe et al. 2018).

    Half the mass of the plan goes to the matches of each direction.
    """

    def profile(x):
        left, values, _ = jnp.linalg.svd(x, full_matrices=False)
        return preprocess(jnp.sort((left * values) @ left.T, axis=1))

    found = csls_dictionary(profile(source), profile(target))
    eye = jnp.eye(len(source))
    yield "", (eye[found.to_target] + eye[found.to_source].T) / (2 * len(source))


def faq(source: Rows, target: Rows, settings: Settings, random_seed: int) -> Plans:
    """Frank-Wolfe on the quadratic assignment of similarities (Vogelstein et al. 2015)."""
    similar = [np.asarray(x @ x.T) for x in (source, target)]
    for draw in range(settings.num_draws):
        initial = "randomized" if draw else "barycenter"
        rng = np.random.default_rng([random_seed, draw])
        options = {"maximize": True, "P0": initial, "rng": rng}
        found = quadratic_assignment(*similar, method="faq", options=options)
        yield f"-{draw}", jnp.eye(len(source))[:, np.argsort(found.col_ind)] / len(source)


def wasserstein_procrustes(
    source: Rows, target: Rows, settings: Settings, random_seed: int
) -> Plans:
    """Transport and rotation in turn, epsilon falling (Grave et al. 2019), from principal axes.

    The axes of both spaces are paired by variance, their signs set so that each has positive
    skewness.
    """

    def axes(x):
        _, _, right = jnp.linalg.svd(x, full_matrices=False)
        scores = x @ right.T
        return right.T * jnp.sign(jnp.sum(scores**3, axis=0))

    rank = min(source.shape[1], target.shape[1])
    rotation = axes(source)[:, :rank] @ axes(target)[:, :rank].T
    for epsilon in sorted(settings.cosine_epsilon, reverse=True):
        for _ in range(settings.steps_per_epsilon):
            plan = ot.plan(1 - unit(source @ rotation) @ target.T, epsilon)
            rotation = procrustes(source, plan @ target)
    yield "", plan


def clusters(source: Rows, target: Rows, settings: Settings, random_seed: int) -> Plans:
    """Cluster centres matched by quadratic assignment, the best of 30 draws (mini-vec2vec).

    The plan spreads the mass of a row evenly over the rows of the matched cluster.
    """
    for draw in range(settings.num_draws):
        members, centres = [], []
        for x in (source, target):
            means = KMeans(settings.num_clusters, n_init=3, random_state=random_seed + draw).fit(x)
            members.append(jax.nn.one_hot(means.labels_, settings.num_clusters))
            centres.append(np.asarray(preprocess(jnp.asarray(means.cluster_centers_))))
        similar = [c @ c.T for c in centres]
        rng = np.random.default_rng([random_seed, draw])
        tries = [
            quadratic_assignment(*similar, method="2opt", options={"maximize": True, "rng": rng})
            for _ in range(30)
        ]
        chosen = max(tries, key=lambda found: found.fun).col_ind
        paired = members[0] @ members[1][:, chosen].T
        # exp(-20) outside of the matched clusters: next to nothing, yet the plan exists whatever
        # the sizes of the clusters.
        yield f"-{draw}", ot.plan(1 - paired, 0.05, iterations=20)


STARTS: dict[str, Callable[[Rows, Rows, Settings, int], Plans]] = {
    "gromov": entropic,
    "annealed": annealed,
    "profiles": profiles,
    "faq": faq,
    "wasserstein_procrustes": wasserstein_procrustes,
    "clusters": clusters,
}
