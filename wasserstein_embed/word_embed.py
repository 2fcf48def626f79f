"""Words as clouds or vectors, trained on context windows with the contrastive loss.

A word is a row of a [V, h] matrix times an [h, M k] matrix: one-hot -> h -> M k without activation.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from wasserstein_embed import cloud, fixed_point

NEGATIVE_POWER = 0.75  # of a word's share, in draws of negatives (Mikolov et al. 2013)


class Settings(NamedTuple):
    """How words are embedded and trained; the values of the config by the same names.

    Attributes:
      geometry: 'wasserstein', or 'euclidean' on the M k numbers as a vector.
      points: M.
      dimension: k.
      hidden: h.
      window: words to either side that are context.
      batch: positive pairs of an update; as many negative ones.
      updates: in one step, each on a batch of its own.
      margin: distance beyond which negative pairs are left alone.
      epsilon: the paper's lambda.
      iterations: of Sinkhorn.
      learning_rate: of Adam.
    """

    geometry: str
    points: int
    dimension: int
    hidden: int
    window: int
    batch: int
    updates: int
    margin: float
    epsilon: float
    iterations: int
    learning_rate: float


class Data(NamedTuple):
    """A corpus: word numbers, `window` times -1 between texts and at both ends.

    Attributes:
      tokens: the words in the order of the texts.
      share: cumulative probability of the vocabulary in draws of negatives.
      key: of the draws.
    """

    tokens: Int[Array, " n"]
    share: Float[Array, " V"]
    key: Array


class Parameters(NamedTuple):
    """The two factors."""

    words: Float[Array, "V h"]
    output: Float[Array, "h Mk"]


class State(NamedTuple):
    """A training: parameters and the optimiser's state."""

    parameters: Parameters
    optimiser: Any


def init(settings: Settings, num_words: int, key: Array) -> State:
    """Words at random places: coordinates of variance 1 / h, each word's of its own."""
    first, second = jax.random.split(key)
    size = settings.points * settings.dimension
    parameters = Parameters(
        jax.random.normal(first, (num_words, settings.hidden)) / settings.hidden**0.5,
        jax.random.normal(second, (settings.hidden, size)) / settings.hidden**0.5,
    )
    return State(parameters, optax.adam(settings.learning_rate).init(parameters))


def clouds(parameters: Parameters, settings: Settings) -> Float[Array, "V M k"]:
    """All words."""
    return _clouds(parameters.words, parameters.output, settings)


def contrastive(
    positive: Float[Array, " b"], negative: Float[Array, " b"], margin: float
) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """d^2 of each positive pair, max(0, margin - d)^2 of each negative (report, section 3)."""
    return positive**2, jnp.maximum(0.0, margin - negative) ** 2


def draw(
    data: Data, key: Array, settings: Settings
) -> tuple[Int[Array, " b"], Int[Array, " b"], Int[Array, " b"]]:
    """Words, a word near each in the text, and a random word for each; -1 where there is none."""
    places, offsets, signs, negatives = jax.random.split(key, 4)
    b, window = settings.batch, settings.window
    place = jax.random.randint(places, (b,), window, len(data.tokens) - window)
    offset = jax.random.randint(offsets, (b,), 1, window + 1)
    offset = jnp.where(jax.random.bernoulli(signs, shape=(b,)), offset, -offset)
    other = jnp.searchsorted(data.share, jax.random.uniform(negatives, (b,)))
    other = jnp.minimum(other, len(data.share) - 1)  # the last share may round to less than 1
    return data.tokens[place], data.tokens[place + offset], other


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`settings.updates` updates of Adam, for `common.train.run`; metrics are their means."""

    def update(state, key):
        word, near, other = draw(data, key, settings)

        def loss(parameters):
            rows = jnp.concatenate([word, word, near, other])
            x, y = jnp.split(_clouds(parameters.words[rows], parameters.output, settings), 2)
            positive, negative = jnp.split(distances(x, y, settings), 2)
            pull, push = contrastive(positive, negative, settings.margin)
            # Places between texts have no word (-1), nor have words at an end all neighbours.
            alone, both = word >= 0, (word >= 0) & (near >= 0)
            total = (_mean(pull, both) + _mean(push, alone)) / 2
            means = {"positive": _mean(positive, both), "negative": _mean(negative, alone)}
            return total, means

        (value, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(state.parameters)
        change, optimiser = optax.adam(settings.learning_rate).update(gradient, state.optimiser)
        state = State(optax.apply_updates(state.parameters, change), optimiser)
        return state, {"loss": value, **metrics}

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.updates)
    state, metrics = lax.scan(update, state, keys)
    return state, jax.tree.map(jnp.mean, metrics)


def distances(
    x: Float[Array, "b M k"], y: Float[Array, "b M k"], settings: Settings
) -> Float[Array, " b"]:
    """<P, C> of entropic transport, or the Euclidean distance, between x_i and y_i."""
    if settings.geometry == "euclidean":
        both = cloud.Clouds(jnp.concatenate([x, y]))
        return cloud.euclidean(both, jnp.arange(len(x)), len(x) + jnp.arange(len(x)))
    start = fixed_point.Potentials.zeros(len(x), settings.points)
    solver = {"epsilon": settings.epsilon, "iterations": settings.iterations}
    return fixed_point.of_pairs(x, y, start, **solver, regularised=False)[0]


@partial(jax.jit, static_argnames="settings")
def between(
    x: Float[Array, "V M k"],
    first: Int[Array, " b"],
    second: Int[Array, " b"],
    settings: Settings,
) -> Float[Array, " b"]:
    """As `distances`, of words by their numbers."""
    return distances(x[first], x[second], settings)


def _clouds(words, output, settings):
    return (words @ output).reshape(-1, settings.points, settings.dimension)


def _mean(values, valid):
    return jnp.sum(values * valid) / jnp.maximum(1, jnp.sum(valid))
