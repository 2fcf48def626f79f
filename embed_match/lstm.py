"""A sentiment classifier that fine-tunes word vectors: embedding, LSTM, one logit."""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Int

from common.parallel import value_and_gradient
from common.run.train import Metrics, State


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Hyper-parameters of the classifier."""

    unit_norm: bool  # whether fine-tuning begins from word vectors scaled to unit norm
    max_length: int  # words that are read of each text, the last ones
    hidden_size: int  # units of the LSTM
    batch_size: int  # texts in a batch
    updates_per_step: int  # updates in a step of the training loop
    steps: int  # of the training loop
    learning_rate: float  # of Adam


class Data(NamedTuple):
    """Input of the training steps."""

    words: Int[Array, "n l"]  # the last words of each text, padded on the left with -1
    labels: Int[Array, " n"]  # 0 or 1
    key: Array  # of the random batches


class Classifier(nnx.Module):
    """A linear layer on the last hidden state of an LSTM; padding is read as zero vectors."""

    def __init__(self, table: Float[Array, "V d"], hidden_size: int, rngs: nnx.Rngs):
        self.table = nnx.Param(table)
        self.cell = nnx.OptimizedLSTMCell(table.shape[1], hidden_size, rngs=rngs)
        self.head = nnx.Linear(hidden_size, 1, rngs=rngs)

    def __call__(self, words: Int[Array, "b l"]) -> Float[Array, " b"]:
        vectors = jnp.where((words >= 0)[:, :, None], self.table[...][words], 0.0)
        zeros = jnp.zeros((len(words), self.cell.hidden_features))
        (_, last), _ = lax.scan(self._read, (zeros, zeros), vectors.swapaxes(0, 1))
        return self.head(last)[:, 0]

    def _read(self, carry, vectors):
        return self.cell(carry, vectors)[0], None


@partial(jax.jit, static_argnames="settings")
def init(settings: Settings, table: Float[Array, "V d"], key: Array) -> State:
    """A randomly initialised network on a copy of the given word vectors."""
    parameters = nnx.state(Classifier(jnp.array(table), settings.hidden_size, nnx.Rngs(key)))
    return State.init(parameters, optax.adam(settings.learning_rate))


def logits(parameters: nnx.State, words: Int[Array, "b l"]) -> Float[Array, " b"]:
    """The logits of class 1."""
    dim, hidden_size = parameters.table[...].shape[1], parameters.head.kernel[...].shape[0]
    size: Any = hidden_size  # Flax does not say that an item of a state is an array
    model = nnx.eval_shape(lambda: Classifier(jnp.zeros((1, dim)), size, nnx.Rngs(0)))
    return nnx.merge(nnx.graphdef(model), parameters)(words)


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, Metrics]:
    """`updates_per_step` updates by Adam on random batches; a step of `common.run.train.run`.

    Each batch is sharded over the devices.
    """

    def update(state, key):
        rows = jax.random.randint(key, (settings.batch_size,), 0, len(data.labels))
        batch = data.words[rows], data.labels[rows]
        (value, accuracy), gradient = value_and_gradient(_loss, state.parameters, batch)
        state = state.update(gradient, optax.adam(settings.learning_rate))
        return state, {"loss": value, "accuracy": accuracy}

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.updates_per_step)
    state, metrics = lax.scan(update, state, keys)
    return state, jax.tree.map(jnp.mean, metrics)


def _loss(parameters, batch):
    """Cross-entropy and accuracy of texts and labels."""
    words, labels = batch
    scores = logits(parameters, words)
    value = optax.sigmoid_binary_cross_entropy(scores, labels).mean()
    return value, ((scores > 0) == (labels > 0)).mean()


@partial(jax.jit, static_argnames="settings")
def accuracy(parameters: nnx.State, data: Data, settings: Settings) -> Float[Array, ""]:
    """Fraction of texts that are classified correctly, computed in batches."""
    size = settings.batch_size
    scores = lax.map(lambda row: logits(parameters, row[None])[0], data.words, batch_size=size)
    return jnp.mean((scores > 0) == (data.labels > 0))


def last_words(
    text: Int[np.ndarray, " m"], word: Int[np.ndarray, " m"], num_texts: int, max_length: int
) -> Int[np.ndarray, "n l"]:
    """The last `max_length` words of each text, padded on the left with -1.

    Args:
      text: the index of the text of each word, ascending.
      word: the id of the word.
      num_texts: n.
      max_length: l.
    """
    ends = np.cumsum(np.bincount(text, minlength=num_texts))
    from_end = ends[text] - np.arange(len(text))  # 1 for the last word of a text
    kept = from_end <= max_length
    last = np.full((num_texts, max_length), -1, np.int32)
    last[text[kept], max_length - from_end[kept]] = word[kept]
    return last
