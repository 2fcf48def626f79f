"""Embeddings whose pairwise distances are fitted to given ones (Frogner et al. 2019, section 4.1).

An object is a vector (Euclidean space; hyperbolic space in the Poincare ball or in polar
coordinates; or the logits of a distribution under the KL divergence) or a cloud of M points in R^k
with uniform weights, compared by entropic transport with the Euclidean cost (p = 1). Every step of
Adam uses all pairs of all graphs.
"""

import dataclasses
import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from common.arrays import Leaf
from common.errors import UserError, check_choice, check_count
from common.ot import safe_sqrt
from common.parallel import mean_of_parts, on_parts
from common.run import train
from common.run.train import Metrics
from wasserstein_embed import cloud
from wasserstein_embed.cloud import Clouds, Distance, WarmStart, euclidean

# Most steps of Adam in one step of `common.run.train.run`, which logs one record.
UPDATES_PER_STEP = 10
MIN_SQUARE = 1e-12  # added to squared norms, whose root has no gradient at 0
MAX_NORM = 1 - 1e-5  # in the Poincare ball; closer to the boundary float32 has no resolution


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How objects are embedded and trained; static under jit."""

    geometry: str  # 'wasserstein' or a name of `VECTOR_DISTANCES`
    shape: tuple[int, ...]  # of one object, (d,) for a vector and (M, k) for a cloud
    init_range: tuple[float, float]  # of the uniform distribution of initial coordinates
    steps: int  # of Adam
    learning_rate: float  # of Adam
    schedule: str = "constant"  # or 'cosine', which decays the learning rate to zero
    # Regularisation (lambda in the paper) at the first and the last step, in the unit of the
    # distance; a geometric series in between.
    epsilon: tuple[float, float] = (1.0, 1.0)
    debiased: bool = False  # compares clouds by the Sinkhorn divergence, otherwise by <P, C>
    iterations: int = 20  # of Sinkhorn in each step
    warm_start: bool = False  # continues Sinkhorn from the potentials of the last step
    implicit: bool = True  # gradients at the optimum; otherwise through the iterations

    def __post_init__(self):
        """Raises a UserError for sizes below one, or regularisations without a geometric series."""
        for size in self.shape:
            check_count("A size of an embedded object", size)
        if min(self.epsilon) <= 0:
            first, last = self.epsilon
            raise UserError(
                f"The epsilon of clouds goes from {first:g} to {last:g} as a geometric series: "
                "give two positive numbers."
            )

    @property
    def updates_per_step(self) -> int:
        """Steps of Adam in one of `common.run.train.run`, a divisor of their number."""
        return math.gcd(self.steps, UPDATES_PER_STEP)

    def distance(self, epsilon: Leaf | float, iterations: int, implicit: bool) -> Distance:
        """How clouds are compared."""
        return Distance(
            epsilon=epsilon,
            iterations=iterations,
            value="sinkhorn_divergence" if self.debiased else "transport_cost",
            implicit_diff=implicit,
        )


class State(NamedTuple):
    """State of a training."""

    training: train.State  # the embedded objects, which are its parameters, and their optimiser
    warm_start: WarmStart | None  # from which the next step continues; None for cold starts

    @property
    def x(self) -> Float[Array, "n ..."]:
        """The embedded objects."""
        return self.training.parameters


class Data(NamedTuple):
    """Distances to fit; the objects of several graphs are numbered consecutively."""

    first: Int[Array, " b"]  # first object of each pair
    second: Int[Array, " b"]
    distance: Float[Array, " b"]  # of each pair, positive


def hyperbolic(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """Distance 2 arsinh(|x - y| / sqrt((1 - |x|^2)(1 - |y|^2))) in the Poincare ball.

    The usual formula by arcosh loses all digits between close points in float32.
    """
    conformal = (1 - jnp.sum(x**2, axis=-1)) * (1 - jnp.sum(y**2, axis=-1))
    return 2 * jnp.arcsinh(euclidean(x, y) / jnp.sqrt(conformal))


def polar_hyperbolic(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """The same distance between points at distance |x| from the origin in direction x, and |y|.

    The law of cosines without cancellation: with r = |x|, s = |y| and the angle t between them

      sinh(d / 2)^2 = sinh((r - s) / 2)^2 + sinh(r) sinh(s) (1 - cos t) / 2.

    These coordinates are those of the tangent space at the origin. They have no boundary, and Adam
    moves points far out in them, which in the ball it does not.
    """
    r, s = (jnp.sqrt(jnp.sum(z**2, axis=-1) + MIN_SQUARE) for z in (x, y))
    apart = jnp.sum((x / r[..., None] - y / s[..., None]) ** 2, axis=-1) / 2  # 1 - cos t
    squares = jnp.sinh((r - s) / 2) ** 2 + jnp.sinh(r) * jnp.sinh(s) * apart / 2
    return 2 * jnp.arcsinh(safe_sqrt(squares))


def kl(x: Float[Array, "*b d"], y: Float[Array, "*b d"]) -> Float[Array, " *b"]:
    """KL(softmax x | softmax y), in nats; not symmetric.

    The published code has another function: the mean of both directions, between positive vectors
    of unit Euclidean norm.
    """
    x, y = jax.nn.log_softmax(x), jax.nn.log_softmax(y)
    return jnp.sum(jnp.exp(x) * (x - y), axis=-1)


VECTOR_DISTANCES = {
    "euclidean": euclidean,
    "hyperbolic": hyperbolic,
    "polar_hyperbolic": polar_hyperbolic,
    "kl": kl,
}


class Rows(NamedTuple):
    """What a step splits between the devices."""

    pairs: Data
    objects: Int[Array, " n"]  # whose transport to themselves is solved
    warm_start: WarmStart | None


def pair_distances(
    x: Float[Array, "n ..."], rows: Rows, epsilon: Leaf | float, settings: Settings
) -> tuple[Float[Array, " b"], WarmStart | None]:
    """Distances of pairs of embedded objects as in training, and the next warm start."""
    first, second = rows.pairs.first, rows.pairs.second
    if settings.geometry != "wasserstein":
        return VECTOR_DISTANCES[settings.geometry](x[first], x[second]), rows.warm_start
    distance = settings.distance(epsilon, settings.iterations, settings.implicit)
    embedded, warm_start = cloud.continued_distances(
        Clouds(x), first, second, distance, rows.warm_start, rows.objects
    )
    return embedded, warm_start if settings.warm_start else None


def distortion(
    embedded: Float[Array, "*g b"], distance: Float[Array, "*g b"]
) -> Float[Array, " *g"]:
    """Mean over pairs of |embedded - distance| / distance (Frogner et al. 2019, section 4.1)."""
    return jnp.mean(jnp.abs(embedded - distance) / distance, axis=-1)


def init(settings: Settings, num_objects: int, keys: Array) -> State:
    """`num_objects` objects at random places for each of several graphs, one key per graph."""
    low, high = settings.init_range
    shape = (num_objects, *settings.shape)
    x = jax.vmap(lambda key: jax.random.uniform(key, shape, minval=low, maxval=high))(keys)
    x = x.reshape(-1, *settings.shape)
    if settings.geometry == "hyperbolic":
        x = _project_into_ball(x)
    warm_start = None
    if settings.geometry == "wasserstein" and settings.warm_start:
        num_pairs = len(keys) * num_objects * (num_objects - 1) // 2
        warm_start = WarmStart.zeros(num_pairs, len(x), settings.shape[0])
    return State(train.State.init(x, optimiser(settings)), warm_start)


def optimiser(settings: Settings) -> optax.GradientTransformation:
    """Adam, whose rate is constant or decays to zero by a cosine; UserError: another schedule."""
    check_choice("schedule", settings.schedule, ("constant", "cosine"))
    if settings.schedule == "constant":
        return optax.adam(settings.learning_rate)
    return optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.steps))


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, Metrics]:
    """`settings.updates_per_step` steps of Adam on the distortion, for `common.run.train.run`.

    No distance involves two graphs, and Adam is invariant to a factor of the loss, so training
    several graphs together equals training each alone. The pairs and their potentials are sharded
    over the devices, which send each other the gradient only.
    """

    def train_part(rows, training, counts):
        first = State(training, rows.warm_start)
        state, values = lax.scan(partial(_update, rows=rows, settings=settings), first, counts)
        return (state.training, values.mean()), state.warm_start

    rows = Rows(data, jnp.arange(len(state.x)), state.warm_start)
    counts = settings.updates_per_step * index + jnp.arange(settings.updates_per_step)
    (training, value), warm_start = on_parts(train_part, rows, state.training, counts)
    return State(training, warm_start), {"distortion": value}


def _update(state: State, count, *, rows: Rows, settings: Settings) -> tuple[State, Array]:
    """A step of Adam after `count` others, by the rows of one device, and the distortion."""
    first_epsilon, last_epsilon = settings.epsilon
    progress = jnp.minimum(1.0, count / settings.steps)
    epsilon = first_epsilon * (last_epsilon / first_epsilon) ** progress
    rows = rows._replace(warm_start=state.warm_start)
    loss_and_gradient = jax.value_and_grad(_loss, has_aux=True)
    (value, warm_start), gradient = loss_and_gradient(state.x, rows, epsilon, settings)
    value, gradient = mean_of_parts((value, gradient))
    training = state.training.update(gradient, optimiser(settings))
    if settings.geometry == "hyperbolic":
        training = training._replace(parameters=_project_into_ball(training.parameters))
    return State(training, warm_start), value


def _loss(x, rows: Rows, epsilon, settings: Settings) -> tuple[Array, WarmStart | None]:
    embedded, warm_start = pair_distances(x, rows, epsilon, settings)
    return distortion(embedded, rows.pairs.distance), warm_start


def _project_into_ball(x):
    norm = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return x * jnp.minimum(1.0, MAX_NORM / jnp.maximum(norm, MAX_NORM))
