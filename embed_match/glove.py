"""GloVe: weighted least squares on the logarithms of co-occurrence counts (Pennington et al. 2014).

The counts stay sparse. The words are divided into blocks, and an update takes one block of words
against all contexts. This is a matrix product that also computes the pairs without a count (four of
five pairs among 5,000 words), which costs less than reading and writing two vectors for each pair
that has a count.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse
from jax import lax
from jaxtyping import Array, Float, Int

from common.train import Metrics, State

BLOCK_TOKENS = 1 << 20  # tokens that are counted at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Hyper-parameters of GloVe."""

    dim: int  # dimensions of a word vector
    window: int  # largest distance at which two words are counted
    x_max: float  # count from which a pair has weight 1 (equation 9)
    power: float  # exponent of the weight below x_max, alpha in equation 9
    learning_rate: float  # of AdaGrad, on the sum over a block
    blocks: int  # number of blocks that the words are divided into
    epochs_per_step: int  # passes through all counts in a step of the training loop
    steps: int  # of the training loop


class Data(NamedTuple):
    """The positive counts by block of words, padded with weight 0."""

    word: Int[Array, "blocks n"]  # row in the block; row i of block b is word i * blocks + b
    context: Int[Array, "blocks n"]  # id of the context word
    log_count: Float[Array, "blocks n"]
    weight: Float[Array, "blocks n"]  # f(count), equation 9
    key: Array  # of the order of the blocks


class Parameters(NamedTuple):
    """Vectors and biases of words, arranged in blocks, and of context words."""

    words: Float[Array, "blocks v d"]
    contexts: Float[Array, "V d"]
    word_bias: Float[Array, "blocks v"]
    context_bias: Float[Array, " V"]


def cooccurrence(
    tokens: Int[np.ndarray, " n"], num_words: int, window: int
) -> scipy.sparse.csr_array:
    """Sums 1 / distance over all pairs of tokens that are at most `window` positions apart.

    Args:
      tokens: word ids in the order of the text; -1 where there is no word.
      num_words: V.
      window: the largest distance.

    Returns:
      [V, V], symmetric.
    """
    total = scipy.sparse.csr_array((num_words, num_words))
    for start in range(0, len(tokens), BLOCK_TOKENS):
        part = tokens[start : start + BLOCK_TOKENS + window]
        for distance in range(1, window + 1):
            first, second = part[: min(BLOCK_TOKENS, len(part) - distance)], part[distance:]
            second = second[: len(first)]
            both = (first >= 0) & (second >= 0)
            values = np.full(np.sum(both), 1 / distance)
            pairs = values, (first[both], second[both])
            total += scipy.sparse.coo_array(pairs, shape=total.shape).tocsr()
    return total + total.T


def data(counts: scipy.sparse.csr_array, settings: Settings, key: Array) -> Data:
    """Divides the counts [V, V] into blocks, with the weights f(x) = min(1, x / x_max)^power."""
    found = counts.tocoo()
    order = np.argsort(found.row % settings.blocks, kind="stable")
    row, context, count = found.row[order], found.col[order], found.data[order]
    ends = np.cumsum(np.bincount(row % settings.blocks, minlength=settings.blocks))[:-1]

    def padded(values, dtype):
        parts = np.split(values, ends)
        longest = max(map(len, parts))
        return jnp.asarray([np.pad(part, (0, longest - len(part))) for part in parts], dtype)

    return Data(
        word=padded(row // settings.blocks, jnp.int32),
        context=padded(context, jnp.int32),
        log_count=padded(np.log(count), jnp.float32),
        weight=padded(np.minimum(1, count / settings.x_max) ** settings.power, jnp.float32),
        key=key,
    )


def adagrad(settings: Settings) -> optax.GradientTransformation:
    """AdaGrad with sums of squares that begin at 1, as in the public GloVe code."""
    return optax.adagrad(settings.learning_rate, initial_accumulator_value=1.0, eps=0.0)


def init(settings: Settings, num_words: int, key: Array) -> State:
    """Vectors and biases uniform in [-1 / 2d, 1 / 2d], as in the public GloVe code."""
    rows, dim = -(-num_words // settings.blocks), settings.dim
    shapes = (settings.blocks, rows, dim), (num_words, dim), (settings.blocks, rows), (num_words,)
    drawn = [
        jax.random.uniform(key, shape, minval=-0.5, maxval=0.5) / dim
        for key, shape in zip(jax.random.split(key, 4), shapes, strict=True)
    ]
    return State.init(Parameters(*drawn), adagrad(settings))


def vectors(parameters: Parameters) -> Float[Array, "V d"]:
    """The embedding: the sum of the two vectors of each word (section 4.2)."""
    words = parameters.words.swapaxes(0, 1).reshape(-1, parameters.words.shape[-1])
    return words[: len(parameters.contexts)] + parameters.contexts


def loss(block: Parameters, data: Data) -> Float[Array, ""]:
    """Half of equation 8, summed over one block.

    Args:
      block: parameters of the words of the block, without the axis `blocks`, and of all contexts.
      data: counts of the block, likewise.
    """
    products = (block.words @ block.contexts.T)[data.word, data.context]
    predicted = products + block.word_bias[data.word] + block.context_bias[data.context]
    return jnp.sum(data.weight * (predicted - data.log_count) ** 2) / 2


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, Metrics]:
    """`epochs_per_step` passes through all blocks, each in a new random order."""

    def update(state, b):
        block = select_block(state, b)
        counts = Data(*(x[b] for x in data[:4]), data.key)
        value, gradient = jax.value_and_grad(loss)(block.parameters, counts)
        return _replace_block(state, b, block.update(gradient, adagrad(settings))), value

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.epochs_per_step)
    order = jax.vmap(lambda key: jax.random.permutation(key, settings.blocks))(keys).ravel()
    state, values = lax.scan(update, state, order)
    return state, {"loss": values.sum() / settings.epochs_per_step / data.weight.sum()}


def select_block(state: State, b: Int[Array, ""]) -> State:
    """The part of block b of the parameters and of AdaGrad's sums of squares; all contexts."""
    return _map(lambda x: x._replace(words=x.words[b], word_bias=x.word_bias[b]), state)


def _replace_block(state: State, b: Int[Array, ""], block: State) -> State:
    """The inverse of `select_block`."""

    def replace(old, new):
        words, bias = old.words.at[b].set(new.words), old.word_bias.at[b].set(new.word_bias)
        return new._replace(words=words, word_bias=bias)

    return _map(replace, state, block)


def _map(change, *states):
    return jax.tree.map(change, *states, is_leaf=lambda x: isinstance(x, Parameters))
