"""GloVe: weighted least squares on the logarithms of co-occurrence counts (Pennington et al. 2014).

The counts stay sparse. The words are divided into blocks, and an update takes one block of words
against all contexts. This is a matrix product that also computes the pairs without a count (four of
five pairs among 5,000 words), which costs less than reading and writing two vectors for each pair
that has a count.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse
from jax import lax
from jaxtyping import Array, Float, Int

from common.parallel import num_parts, on_parts, sum_of_parts
from common.run.train import Metrics, State

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
    """The positive counts by part of the contexts and block of words, padded with weight 0."""

    word: Int[Array, "parts blocks n"]  # row in the block; row i of block b is word i * blocks + b
    context: Int[Array, "parts blocks n"]  # row in the part; row i of part p is i * parts + p
    log_count: Float[Array, "parts blocks n"]
    weight: Float[Array, "parts blocks n"]  # f(count), equation 9
    key: Array  # of the order of the blocks


class Table(NamedTuple):
    """Vectors and biases of words."""

    vectors: Float[Array, "*n d"]
    bias: Float[Array, "*n"]


class Training(NamedTuple):
    """Tables of words and of context words, each with its AdaGrad."""

    words: State  # arranged as [blocks, v]
    contexts: State  # [V]


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
            words = (first >= 0) & (second >= 0)
            values = np.full(int(np.sum(words)), 1 / distance)
            pairs = values, (first[words], second[words])
            total += scipy.sparse.coo_array(pairs, shape=total.shape).tocsr()
    return total + total.T


def data(counts: scipy.sparse.csr_array, settings: Settings, key: Array) -> Data:
    """Divides the counts [V, V] into blocks, with the weights f(x) = min(1, x / x_max)^power.

    Each device takes the counts of one part of the contexts.
    """
    sparse: Any = counts.tocoo()  # scipy has no annotations
    parts = num_parts(sparse.shape[1])
    group = sparse.col % parts * settings.blocks + sparse.row % settings.blocks
    order = np.argsort(group, kind="stable")
    row, context, count = sparse.row[order], sparse.col[order], sparse.data[order]
    ends = np.cumsum(np.bincount(group, minlength=parts * settings.blocks))[:-1]

    def padded(values, dtype):
        groups = np.split(values, ends)
        longest = max(map(len, groups))
        rows = [np.pad(group, (0, longest - len(group))) for group in groups]
        return jnp.asarray(np.reshape(rows, (parts, settings.blocks, longest)), dtype)

    return Data(
        word=padded(row // settings.blocks, jnp.int32),
        context=padded(context // parts, jnp.int32),
        log_count=padded(np.log(count), jnp.float32),
        weight=padded(np.minimum(1, count / settings.x_max) ** settings.power, jnp.float32),
        key=key,
    )


def adagrad(settings: Settings) -> optax.GradientTransformation:
    """AdaGrad with sums of squares that begin at 1, as in the public GloVe code."""
    return optax.adagrad(settings.learning_rate, initial_accumulator_value=1.0, eps=0.0)


def init(settings: Settings, num_words: int, key: Array) -> Training:
    """Vectors and biases uniform in [-1 / 2d, 1 / 2d], as in the public GloVe code."""
    rows, dim = -(-num_words // settings.blocks), settings.dim
    shapes = (settings.blocks, rows, dim), (num_words, dim), (settings.blocks, rows), (num_words,)
    words, contexts, word_bias, context_bias = (
        jax.random.uniform(key, shape, minval=-0.5, maxval=0.5) / dim
        for key, shape in zip(jax.random.split(key, 4), shapes, strict=True)
    )
    tables = Table(words, word_bias), Table(contexts, context_bias)
    return Training(*(State.init(table, adagrad(settings)) for table in tables))


def vectors(training: Training) -> Float[Array, "V d"]:
    """The embedding: the sum of the two vectors of each word (section 4.2)."""
    words, contexts = (state.parameters.vectors for state in training)
    return words.swapaxes(0, 1).reshape(-1, words.shape[-1])[: len(contexts)] + contexts


def loss(words: Table, contexts: Table, counts: Data) -> Float[Array, ""]:
    """Half of equation 8, summed over one block of words and one part of the contexts.

    Args:
      words: of the block, [v].
      contexts: of the part.
      counts: of the block and the part, without the axes `parts` and `blocks`.
    """
    products = (words.vectors @ contexts.vectors.T)[counts.word, counts.context]
    predicted = products + words.bias[counts.word] + contexts.bias[counts.context]
    return jnp.sum(counts.weight * (predicted - counts.log_count) ** 2) / 2


def step(
    state: Training, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[Training, Metrics]:
    """`epochs_per_step` passes through all blocks, each in a new random order.

    The contexts are sharded over the devices, so that an update sends the gradient of a block of
    words only.
    """
    parts = len(data.word)

    def train_part(rows, words, order):
        contexts, counts = jax.tree.map(lambda x: x[0], rows)

        def update(state, b):
            block = jax.tree.map(lambda x: x[b], state.words)
            tables = block.parameters, state.contexts.parameters
            of_block = jax.tree.map(lambda x: x[b], counts)
            value, gradients = jax.value_and_grad(loss, (0, 1))(*tables, of_block)
            gradient, context_gradient = gradients
            value, gradient = sum_of_parts((value, gradient))
            block = block.update(gradient, adagrad(settings))
            words = jax.tree.map(lambda old, new: old.at[b].set(new), state.words, block)
            contexts = state.contexts.update(context_gradient, adagrad(settings))
            return Training(words, contexts), value

        (words, contexts), values = lax.scan(update, Training(words, contexts), order)
        return (words, values), jax.tree.map(lambda x: x[None], contexts)

    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.epochs_per_step)
    order = jax.vmap(lambda key: jax.random.permutation(key, settings.blocks))(keys).ravel()
    contexts = jax.tree.map(
        lambda x: x.reshape(-1, parts, *x.shape[1:]).swapaxes(0, 1), state.contexts
    )
    rows = contexts, data._replace(key=None)
    (words, values), contexts = on_parts(train_part, rows, state.words, order)
    contexts = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(-1, *x.shape[2:]), contexts)
    metrics = {"loss": values.sum() / settings.epochs_per_step / data.weight.sum()}
    return Training(words, contexts), metrics
