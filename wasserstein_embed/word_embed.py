"""Words as clouds or vectors, trained on context windows with the contrastive loss.

The embedding of a word is its row of a [V, h] matrix times an [h, M k] matrix, a network
one-hot -> h -> M k without activation, which moves the points of a cloud from their places on a
circle.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from common.ot import Potentials
from common.parallel import value_and_gradient
from common.run.train import Metrics, State
from wasserstein_embed import cloud
from wasserstein_embed.cloud import Clouds

NEGATIVE_POWER = 0.75  # exponent of word frequencies in negative sampling (Mikolov et al. 2013)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How words are embedded and trained; static under jit."""

    geometry: str  # 'wasserstein', or 'euclidean' for vectors of M k numbers
    num_points: int  # M
    dimension: int  # k
    hidden_size: int  # h
    window: int  # number of words to either side that are context
    batch_size: int  # positive pairs of an update, and as many negative pairs
    updates_per_step: int  # of a step of `common.run.train.run`; each has another batch
    margin: float  # distance beyond which negative pairs have no loss
    epsilon: float  # regularisation (lambda in the paper), in the unit of the distance
    iterations: int  # of Sinkhorn
    spread: float  # radius of the circle of places, see `places`
    steps: int  # of `common.run.train.run`
    learning_rate: float  # of Adam; decays linearly to zero

    @property
    def size(self) -> int:
        """Numbers per word, M k."""
        return self.num_points * self.dimension

    @property
    def name(self) -> str:
        """Geometry and size, `wasserstein_r2` or `euclidean_20` for instance."""
        if self.geometry == "wasserstein":
            return f"wasserstein_r{self.dimension}"
        return f"{self.geometry}_{self.size}"


class Data(NamedTuple):
    """Texts."""

    # Word numbers in the order of the texts, with `window` times -1 around each text.
    tokens: Int[Array, " n"]
    cumulative: Float[Array, " V"]  # probabilities of negative words, cumulated
    key: Array  # random key of the batches


class Batch(NamedTuple):
    """Words, and a context word and a negative word for each.

    The weights, of the positive and of the negative pair, have a mean of 1 over the batch. They are
    0 where there is no pair: a sampled place may lie between two texts, and a context beyond the
    end of a text.
    """

    word: Int[Array, " b"]
    context: Int[Array, " b"]
    negative: Int[Array, " b"]
    weights: Float[Array, "b 2"]


class Parameters(NamedTuple):
    """The two factors of the embedding matrix."""

    words: Float[Array, "V h"]
    output: Float[Array, "h Mk"]


def init(settings: Settings, num_words: int, key: Array) -> State:
    """Random parameters: both factors are Gaussian with variance 1 / h."""
    first, second = jax.random.split(key)
    scale = settings.hidden_size**0.5
    parameters = Parameters(
        jax.random.normal(first, (num_words, settings.hidden_size)) / scale,
        jax.random.normal(second, (settings.hidden_size, settings.size)) / scale,
    )
    return State.init(parameters, optimiser(settings))


def optimiser(settings: Settings) -> optax.GradientTransformation:
    """Adam, whose learning rate decays linearly to zero."""
    updates = settings.steps * settings.updates_per_step
    return optax.adam(optax.linear_schedule(settings.learning_rate, 0.0, updates))


def embed(
    words: Float[Array, "n h"], output: Float[Array, "h Mk"], settings: Settings
) -> Float[Array, "n M k"]:
    """The clouds of words, given by their rows of the first factor: x_m = places_m + (w A)_m."""
    moved = (words @ output).reshape(-1, settings.num_points, settings.dimension)
    return moved + places(settings)


def places(settings: Settings) -> Float[np.ndarray, "M k"]:
    """Where the points of all clouds are before they move: evenly on a circle around the origin.

    The circle lies in the first two coordinates. If its radius is 0, all points are at the origin.
    With places far apart, the transport of least cost takes each point to the point of the same
    place, and a cloud becomes a vector of M parts.
    """
    angles = 2 * np.pi * np.arange(settings.num_points) / settings.num_points
    circle = np.zeros((settings.num_points, settings.dimension), np.float32)
    circle[:, 0] = settings.spread * np.cos(angles)
    circle[:, 1:2] = settings.spread * np.sin(angles)[:, None]
    return circle


def sample(data: Data, key: Array, settings: Settings) -> Batch:
    """Samples words, a context word of each, and a negative word for each.

    The place of a word is uniform over the texts, its context is uniform over the window, and
    negative words follow `data.cumulative`. Places between texts have word number -1.
    """
    of_places, of_offsets, of_signs, of_negatives = jax.random.split(key, 4)
    b, window = settings.batch_size, settings.window
    place = jax.random.randint(of_places, (b,), window, len(data.tokens) - window)
    offset = jax.random.randint(of_offsets, (b,), 1, window + 1)
    offset = jnp.where(jax.random.bernoulli(of_signs, shape=(b,)), offset, -offset)
    negative = jnp.searchsorted(data.cumulative, jax.random.uniform(of_negatives, (b,)))
    # In float32 the last cumulative probability may be less than 1.
    negative = jnp.minimum(negative, len(data.cumulative) - 1)
    word, context = data.tokens[place], data.tokens[place + offset]
    has_word, has_context = word >= 0, (word >= 0) & (context >= 0)
    is_pair = jnp.stack([has_context, has_word], axis=1)
    weights = is_pair.astype(jnp.float32) / jnp.maximum(is_pair.mean(axis=0), 1 / b)
    return Batch(word, context, negative, weights)


def batch_loss(
    parameters: Parameters, batch: Batch, settings: Settings
) -> tuple[Float[Array, ""], Metrics]:
    """Mean of the contrastive losses, and the mean distances of positive and of negative pairs."""
    rows = jnp.concatenate([batch.word, batch.word, batch.context, batch.negative])
    x, y = jnp.split(embed(parameters.words[rows], parameters.output, settings), 2)
    distances, weights = pair_distances(x, y, settings), batch.weights.T.ravel()
    positive = jnp.arange(len(distances)) < len(batch.word)
    losses = weights * cloud.contrastive_losses(distances, positive, settings.margin, 2.0)
    means = (weights * distances).reshape(2, -1).mean(axis=1)
    return jnp.mean(losses), {"positive": means[0], "negative": means[1]}


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, Metrics]:
    """`updates_per_step` updates of Adam, for `common.run.train.run`; metrics are means over them.

    Each batch is sharded over the devices.
    """
    loss_of = partial(batch_loss, settings=settings)

    def update(state, key):
        batch = sample(data, key, settings)
        (loss, means), gradient = value_and_gradient(loss_of, state.parameters, batch)
        return state.update(gradient, optimiser(settings)), {"loss": loss, **means}

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.updates_per_step)
    state, metrics = lax.scan(update, state, keys)
    return state, jax.tree.map(jnp.mean, metrics)


def pair_distances(
    x: Float[Array, "b M k"], y: Float[Array, "b M k"], settings: Settings
) -> Float[Array, " b"]:
    """<P, C> of entropic transport, or the Euclidean distance, between x_i and y_i."""
    if settings.geometry != "wasserstein":
        return cloud.euclidean(x.reshape(len(x), -1), y.reshape(len(y), -1))
    distance = cloud.Distance(
        epsilon=settings.epsilon,
        iterations=settings.iterations,
        value="transport_cost",
        implicit_diff=True,
    )
    potentials = Potentials.zeros(len(x), settings.num_points)  # always with the kernel
    return cloud.transports(Clouds(x), Clouds(y), distance, potentials).values
