"""Points, distributions and point clouds whose pairwise distances are fitted to given ones.

An object is a vector (Euclidean, Poincare ball, logits of a distribution under KL) or a cloud of M
points in R^k of equal weights, compared by entropic transport with the Euclidean cost (p = 1).
All pairs are in every step, all graphs are trained at once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from common.sinkhorn import root
from wasserstein_embed import fixed_point

UPDATES = 10  # steps of Adam in a step of the loop: one record of the log
BALL = 1 - 1e-5  # largest norm in the Poincare ball: float32 has little beyond


class Settings(NamedTuple):
    """How objects are embedded and trained.

    Attributes:
      geometry: 'wasserstein' or a name of `VECTORS`.
      shape: of one object: (d,), or (M, k) of a cloud.
      init: bounds of the uniform distribution that coordinates start from.
      steps: of Adam, each on all pairs; tens.
      learning_rate: of Adam.
      schedule: 'constant' or 'cosine' (to zero).
      epsilon: the paper's lambda, in the unit of the distance: at the first and the last step, a
        geometric series between.
      debiased: the Sinkhorn divergence of the regularised cost; else <P, C>.
      iterations: of Sinkhorn in each step.
      carry: potentials go on from those of the last step; else from zero.
    """

    geometry: str
    shape: tuple[int, ...]
    init: tuple[float, float]
    steps: int
    learning_rate: float
    schedule: str = "constant"
    epsilon: tuple[float, float] = (1.0, 1.0)
    debiased: bool = False
    iterations: int = 20
    carry: bool = False


class Carried(NamedTuple):
    """Potentials kept from step to step: of each pair, and of each cloud against itself."""

    pairs: fixed_point.Potentials
    own: Float[Array, "n M"]


class State(NamedTuple):
    """A training: embedded objects, the optimiser's state, what is carried."""

    x: Float[Array, "n ..."]
    optimiser: Any
    carried: Carried | None


class Data(NamedTuple):
    """Distances to fit; objects of several graphs stand one after the other.

    Attributes:
      first: index of the first object of each pair.
      second: of the second.
      target: distance of each pair, positive.
    """

    first: Int[Array, " b"]
    second: Int[Array, " b"]
    target: Float[Array, " b"]


def euclidean(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """|x - y|, with gradient 0 between equal points."""
    return root(jnp.sum((x - y) ** 2, axis=-1))


def hyperbolic(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """Distance in the Poincare ball of curvature -1, by arsinh: exact between near points too."""
    conformal = (1 - jnp.sum(x**2, axis=-1)) * (1 - jnp.sum(y**2, axis=-1))
    return 2 * jnp.arcsinh(euclidean(x, y) / jnp.sqrt(conformal))


def kl(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """KL(softmax x | softmax y)."""
    x, y = jax.nn.log_softmax(x), jax.nn.log_softmax(y)
    return jnp.sum(jnp.exp(x) * (x - y), axis=-1)


VECTORS = {"euclidean": euclidean, "hyperbolic": hyperbolic, "kl": kl}


def distances(
    x: Float[Array, "n ..."],
    first: Int[Array, " b"],
    second: Int[Array, " b"],
    carried: Carried | None,
    epsilon: Float[Array, ""] | float,
    settings: Settings,
) -> tuple[Float[Array, " b"], Carried | None]:
    """Distances of pairs of embedded objects as in training, and what is carried on."""
    if settings.geometry == "wasserstein":
        return _wasserstein(x, first, second, carried, epsilon, settings)
    return VECTORS[settings.geometry](x[first], x[second]), carried


def distortion(distance: Float[Array, "*g b"], target: Float[Array, "*g b"]) -> Float[Array, " *g"]:
    """Mean of |distance - target| / target over pairs (Frogner et al. 2019, section 4.1)."""
    return jnp.mean(jnp.abs(distance - target) / target, axis=-1)


def init(settings: Settings, keys: Array, num_objects: int) -> State:
    """Objects of several graphs at random places.

    Args:
      settings: geometry, shape, init.
      keys: [g] a random key for each graph.
      num_objects: of each graph.
    """
    low, high = settings.init
    shape = (num_objects, *settings.shape)
    x = jax.vmap(lambda key: jax.random.uniform(key, shape, minval=low, maxval=high))(keys)
    x = x.reshape(-1, *settings.shape)
    if settings.geometry == "hyperbolic":
        x = _inside_ball(x)
    carried = None
    if settings.geometry == "wasserstein":
        pairs = len(keys) * num_objects * (num_objects - 1) // 2
        carried = Carried(
            fixed_point.Potentials.zeros(pairs, settings.shape[0]), jnp.zeros(x.shape[:2])
        )
    return State(x, _optimiser(settings).init(x), carried)


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`UPDATES` steps of Adam on all pairs of all graphs, for `common.train.run`; the mean loss.

    Graphs do not touch each other: Adam is the same to a factor of the loss.
    """
    start, end = settings.epsilon

    def update(state, count):
        epsilon = start * (end / start) ** jnp.minimum(1.0, count / settings.steps)

        def loss(x):
            distance, carried = distances(
                x, data.first, data.second, state.carried, epsilon, settings
            )
            return distortion(distance, data.target), carried

        (value, carried), gradient = jax.value_and_grad(loss, has_aux=True)(state.x)
        change, optimiser = _optimiser(settings).update(gradient, state.optimiser)
        x = optax.apply_updates(state.x, change)
        if settings.geometry == "hyperbolic":
            x = _inside_ball(x)
        return State(x, optimiser, carried), value

    state, values = lax.scan(update, state, UPDATES * index + jnp.arange(UPDATES))
    return state, {"distortion": values.mean()}


def _inside_ball(x):
    length = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return x * jnp.minimum(1.0, BALL / jnp.maximum(length, BALL))


def _wasserstein(x, first, second, carried, epsilon, settings):
    old = carried if settings.carry else jax.tree.map(jnp.zeros_like, carried)
    solver = {"epsilon": epsilon, "iterations": settings.iterations}
    distance, pairs = fixed_point.of_pairs(
        x[first], x[second], old.pairs, **solver, regularised=settings.debiased
    )
    if not settings.debiased:
        return distance, Carried(pairs, old.own)
    values, own = fixed_point.of_own(x, old.own, **solver)
    return distance - (values[first] + values[second]) / 2, Carried(pairs, own)


def _optimiser(settings: Settings) -> optax.GradientTransformation:
    rate = settings.learning_rate
    if settings.schedule == "cosine":
        rate = optax.cosine_decay_schedule(rate, settings.steps)
    return optax.adam(rate)
