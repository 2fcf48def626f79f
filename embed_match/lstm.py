"""A sentiment classifier whose word vectors are fine-tuned: embedding, LSTM, one logit."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Int


class Settings(NamedTuple):
    """Static choices of a training; the values of the config by the same names.

    Attributes:
      hidden: numbers of the LSTM's state.
      batch: texts of an update.
      updates: of a step.
      learning_rate: of Adam.
    """

    hidden: int
    batch: int
    updates: int
    learning_rate: float


class Data(NamedTuple):
    """What the steps read.

    Attributes:
      words: the last words of each text, -1 before those of a short one.
      labels: 0 or 1.
      key: of the draws.
    """

    words: Int[Array, "n l"]
    labels: Int[Array, " n"]
    key: Array


class State(NamedTuple):
    """Parameters and the state of the optimiser."""

    parameters: nnx.State
    optimiser: optax.OptState


class Classifier(nnx.Module):
    """The LSTM's last state as one logit."""

    def __init__(self, table: Float[Array, "V d"], hidden: int, rngs: nnx.Rngs):
        self.table = nnx.Param(table)
        self.cell = nnx.OptimizedLSTMCell(table.shape[1], hidden, rngs=rngs)
        self.head = nnx.Linear(hidden, 1, rngs=rngs)

    def __call__(self, words: Int[Array, "b l"]) -> Float[Array, " b"]:
        vectors = jnp.where((words >= 0)[:, :, None], self.table[...][words], 0.0)
        zeros = jnp.zeros((len(words), self.cell.hidden_features))
        (_, last), _ = lax.scan(self._read, (zeros, zeros), vectors.swapaxes(0, 1))
        return self.head(last)[:, 0]

    def _read(self, carry, vectors):
        return self.cell(carry, vectors)[0], None


@partial(jax.jit, static_argnames="settings")
def init(settings: Settings, table: Float[Array, "V d"], key: Array) -> State:
    """A random network on a copy of the given word vectors."""
    parameters = nnx.state(Classifier(jnp.array(table), settings.hidden, nnx.Rngs(key)))
    return State(parameters, optax.adam(settings.learning_rate).init(parameters))


def logits(parameters: nnx.State, words: Int[Array, "b l"]) -> Float[Array, " b"]:
    """Of the class 1."""
    (size, hidden) = parameters.table[...].shape[1], parameters.head.kernel[...].shape[0]
    graph = nnx.graphdef(
        nnx.eval_shape(lambda: Classifier(jnp.zeros((1, size)), hidden, nnx.Rngs(0)))
    )
    return nnx.merge(graph, parameters)(words)


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`updates` updates of Adam on random batches, for `common.train.run`."""

    def update(state, key):
        rows = jax.random.randint(key, (settings.batch,), 0, len(data.labels))
        words, labels = data.words[rows], data.labels[rows]

        def loss(parameters):
            found = logits(parameters, words)
            value = optax.sigmoid_binary_cross_entropy(found, labels).mean()
            return value, ((found > 0) == (labels > 0)).mean()

        (value, accuracy), gradient = jax.value_and_grad(loss, has_aux=True)(state.parameters)
        change, optimiser = optax.adam(settings.learning_rate).update(gradient, state.optimiser)
        new = State(optax.apply_updates(state.parameters, change), optimiser)
        return new, {"loss": value, "accuracy": accuracy}

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.updates)
    state, metrics = lax.scan(update, state, keys)
    return state, jax.tree.map(jnp.mean, metrics)


@partial(jax.jit, static_argnames="settings")
def accuracy(parameters: nnx.State, data: Data, settings: Settings) -> Float[Array, ""]:
    """Share of texts that are classified right, a batch of them at a time."""
    found = lax.map(
        lambda words: logits(parameters, words[None])[0], data.words, batch_size=settings.batch
    )
    return jnp.mean((found > 0) == (data.labels > 0))


def last_words(
    text: Int[np.ndarray, " m"], word: Int[np.ndarray, " m"], number: int, length: int
) -> Int[np.ndarray, "n l"]:
    """The last `length` words of each text, flush right, -1 before.

    Args:
      text: of each word, ascending.
      word: its number.
      number: of texts, n.
      length: l.
    """
    ends = np.cumsum(np.bincount(text, minlength=number))
    back = ends[text] - np.arange(len(text))  # 1 for the last word of a text
    kept = back <= length
    found = np.full((number, length), -1, np.int32)
    found[text[kept], length - back[kept]] = word[kept]
    return found
