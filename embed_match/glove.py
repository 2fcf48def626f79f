"""GloVe: weighted least squares on the logarithms of co-occurrence counts (Pennington et al. 2014).

Counts stay sparse. The words are dealt into blocks, and an update is one block of words against all
contexts: a matrix product that also computes pairs without a count, four of five among 5,000 words,
costs less than reading and writing a vector for each pair that has one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import lax
from jaxtyping import Array, Float, Int

AT_ONCE = 1 << 20  # places counted at once


class Settings(NamedTuple):
    """Static choices of a training; the values of the config by the same names.

    Attributes:
      dim: numbers a word.
      learning_rate: of AdaGrad.
      epochs: passes through all counts in a step.
    """

    dim: int
    learning_rate: float
    epochs: int


class Data(NamedTuple):
    """The counts that are not zero, by block of words, padded with weight 0.

    Attributes:
      word: number within the block; word i of block b is the vocabulary's i * blocks + b.
      context: number in the vocabulary.
      log: logarithm of the count.
      weight: f of the count, eq. 9.
      key: of the order of the blocks.
    """

    word: Int[Array, "blocks n"]
    context: Int[Array, "blocks n"]
    log: Float[Array, "blocks n"]
    weight: Float[Array, "blocks n"]
    key: Array


class Parameters(NamedTuple):
    """Vectors and biases, of words in their blocks and of contexts."""

    words: Float[Array, "blocks v d"]
    contexts: Float[Array, "V d"]
    word_bias: Float[Array, "blocks v"]
    context_bias: Float[Array, " V"]


class State(NamedTuple):
    """A training: parameters, and AdaGrad's sums of squares, from 1 on as in the public code."""

    parameters: Parameters
    squares: Parameters


def cooccurrence(
    tokens: Int[np.ndarray, " n"], num_words: int, window: int
) -> scipy.sparse.csr_array:
    """The sum of 1 / distance over all pairs of places at most `window` apart, both ways.

    Args:
      tokens: word numbers in the order of the text; -1 where there is none.
      num_words: V.
      window: the largest distance.

    Returns:
      [V, V], symmetric.
    """
    total = scipy.sparse.csr_array((num_words, num_words))
    for start in range(0, len(tokens), AT_ONCE):
        part = tokens[start : start + AT_ONCE + window]
        for distance in range(1, window + 1):
            first, second = part[: min(AT_ONCE, len(part) - distance)], part[distance:]
            second = second[: len(first)]
            both = (first >= 0) & (second >= 0)
            values = np.full(np.sum(both), 1 / distance)
            pairs = values, (first[both], second[both])
            total += scipy.sparse.coo_array(pairs, shape=total.shape).tocsr()
    return total + total.T


def blocks(
    counts: scipy.sparse.csr_array, number: int, x_max: float, power: float, key: Array
) -> Data:
    """Deals the words into blocks; f(x) = min(1, x / x_max)^power.

    Args:
      counts: [V, V].
      number: of blocks.
      x_max: count from which the weight is 1.
      power: of the weight below.
      key: of the order of the blocks.
    """
    found = counts.tocoo()
    order = np.argsort(found.row % number, kind="stable")
    row, context, count = found.row[order], found.col[order], found.data[order]
    ends = np.cumsum(np.bincount(row % number, minlength=number))[:-1]
    word, context, log, weight = (
        _padded(np.split(values, ends))
        for values in (row // number, context, np.log(count), np.minimum(1, count / x_max) ** power)
    )
    return Data(
        jnp.asarray(word, jnp.int32),
        jnp.asarray(context, jnp.int32),
        jnp.asarray(log, jnp.float32),
        jnp.asarray(weight, jnp.float32),
        key,
    )


def init(settings: Settings, num_words: int, number: int, key: Array) -> State:
    """Vectors and biases uniform within 1 / 2d, as in the public code.

    Args:
      settings: of the training.
      num_words: V.
      number: of blocks.
      key: of the draws.
    """
    v = -(-num_words // number)
    shapes = Parameters(
        (number, v, settings.dim), (num_words, settings.dim), (number, v), (num_words,)
    )
    drawn = [
        jax.random.uniform(key, shape, minval=-0.5, maxval=0.5) / settings.dim
        for key, shape in zip(jax.random.split(key, 4), shapes, strict=True)
    ]
    parameters = Parameters(*drawn)
    return State(parameters, jax.tree.map(jnp.ones_like, parameters))


def vectors(parameters: Parameters) -> Float[Array, "V d"]:
    """The sum of a word's two vectors (section 4.2)."""
    words = parameters.words.swapaxes(0, 1).reshape(-1, parameters.words.shape[-1])
    return words[: len(parameters.contexts)] + parameters.contexts


def loss(block: Parameters, data: Data) -> Float[Array, ""]:
    """Eq. 8 over a block, halved; `block` and `data` are without the leading axis of blocks."""
    dots = (block.words @ block.contexts.T)[data.word, data.context]
    guess = dots + block.word_bias[data.word] + block.context_bias[data.context]
    return jnp.sum(data.weight * (guess - data.log) ** 2) / 2


def step(
    state: State, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """`epochs` passes, each through all blocks in an order of its own, for `common.train.run`."""
    number = len(data.word)

    def update(state, b):
        block = Data(*(x[b] for x in data[:4]), data.key)
        mine = _block(state.parameters, b)
        value, gradient = jax.value_and_grad(loss)(mine, block)
        squares = jax.tree.map(lambda s, g: s + g * g, _block(state.squares, b), gradient)
        mine = jax.tree.map(
            lambda x, g, s: x - settings.learning_rate * g * lax.rsqrt(s), mine, gradient, squares
        )
        new = State(_put(state.parameters, b, mine), _put(state.squares, b, squares))
        return new, value

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.epochs)
    order = jax.vmap(lambda key: jax.random.permutation(key, number))(keys).ravel()
    state, values = lax.scan(update, state, order)
    return state, {"loss": values.sum() / settings.epochs / data.weight.sum()}


def _block(x: Parameters, b: Int[Array, ""]) -> Parameters:
    return Parameters(x.words[b], x.contexts, x.word_bias[b], x.context_bias)


def _put(x: Parameters, b: Int[Array, ""], mine: Parameters) -> Parameters:
    words, word_bias = x.words.at[b].set(mine.words), x.word_bias.at[b].set(mine.word_bias)
    return Parameters(words, mine.contexts, word_bias, mine.context_bias)


def _padded(parts: list[np.ndarray]) -> np.ndarray:
    longest = max(map(len, parts))
    return np.stack([np.pad(part, (0, longest - len(part))) for part in parts])
