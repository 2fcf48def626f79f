"""Word2vec's continuous bag of words with negative sampling (Mikolov et al. 2013).

A word is predicted from the mean of the words around it. As in word2vec's code, frequent words are
thinned out anew in every pass before windows are laid, each place draws its own window width, and
the gradient of the mean goes undivided to every word around. Two things differ, which make matrix
products of it: a batch is a few stretches of running text, so that a word's vector is read and its
gradient written once for all windows that hold it; and all places of a batch share their negatives,
weighted so that a place counts as `negatives` of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from common.data.corpus import Corpus

NEGATIVE_POWER = 0.75  # of a word's share, in draws of negatives (Mikolov et al. 2013)


class Settings(NamedTuple):
    """Static choices of a training; the values of the config by the same names.

    Attributes:
      dim: numbers a word.
      window: most words to either side.
      negatives: a place counts as many.
      shared: negatives drawn for a batch. Far fewer than its places times `negatives` are noise: a
        rare word that is drawn is pushed by all places at once.
      stretches: of text in a batch.
      length: places of a stretch.
      epochs: passes through the text.
      pieces: steps of a pass.
      learning_rate: of the sum over a batch, at the start; falls to zero linearly.
    """

    dim: int
    window: int
    negatives: int
    shared: int
    stretches: int
    length: int
    epochs: int
    pieces: int
    learning_rate: float


class Data(NamedTuple):
    """What the steps read.

    Attributes:
      tokens: the text in as many pieces as a pass has steps; -1 where there is no word.
      keep: probability of each word to be kept in a pass.
      share: cumulative probability of the words in draws of negatives.
      key: of all draws.
    """

    tokens: Int[Array, "pieces n"]
    keep: Float[Array, " V"]
    share: Float[Array, " V"]
    key: Array


class Tables(NamedTuple):
    """Vectors of words in a context, which are the embedding, and as the predicted word."""

    inputs: Float[Array, "V d"]
    outputs: Float[Array, "V d"]


def data(corpus: Corpus, subsample: float, settings: Settings, key: Array) -> Data:
    """What the steps read of a text.

    Args:
      corpus: the text, none of it thinned out.
      subsample: share of a word above which it is thinned out, as word2vec's code does.
      settings: of the training.
      key: of all draws.
    """
    n = -(-len(corpus.tokens) // settings.pieces)
    padding = n * settings.pieces - len(corpus.tokens)
    tokens = np.pad(corpus.tokens, (0, padding), constant_values=-1).reshape(-1, n)
    rare = subsample / corpus.share
    share = np.cumsum(corpus.share**NEGATIVE_POWER)
    return Data(
        jnp.asarray(tokens),
        jnp.asarray(np.minimum(1, np.sqrt(rare) + rare), jnp.float32),
        jnp.asarray(share / share[-1], jnp.float32),
        key,
    )


def init(settings: Settings, num_words: int, key: Array) -> Tables:
    """As word2vec: inputs uniform within 1 / 2d, outputs zero."""
    inputs = jax.random.uniform(key, (num_words, settings.dim), minval=-0.5, maxval=0.5)
    return Tables(inputs / settings.dim, jnp.zeros_like(inputs))


def step(
    state: Tables, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[Tables, dict[str, Float[Array, ""]]]:
    """One piece of the text, batch by batch, for `common.train.run`."""
    thinning, draws = jax.random.split(jax.random.fold_in(data.key, index))
    tokens, count = thinned(data.tokens[index % settings.pieces], data.keep, thinning)
    row = -(-count // settings.stretches)  # each stretch walks through a part of its own
    batches = -(-row // settings.length)
    total = settings.epochs * settings.pieces

    def update(batch, carry):
        tables, sums = carry
        key = jax.random.fold_in(draws, batch)
        words = stretches(tokens, row, batch, settings)
        rate = settings.learning_rate * (1 - (index + batch / batches) / total)
        tables, found = updated(tables, words, data.share, rate, key, settings)
        return tables, (sums[0] + found[0], sums[1] + found[1])

    state, (value, places) = lax.fori_loop(0, batches, update, (state, (0.0, 0.0)))
    return state, {"positive": value / jnp.maximum(1, places), "places": places}


def thinned(
    tokens: Int[Array, " n"], keep: Float[Array, " V"], key: Array
) -> tuple[Int[Array, " n"], Int[Array, ""]]:
    """Takes words out at random and closes the holes; the number of places left, then -1."""
    stays = (tokens < 0) | (jax.random.uniform(key, tokens.shape) < keep[tokens])
    place = jnp.where(stays, jnp.cumsum(stays) - 1, len(tokens))
    closed = jnp.full_like(tokens, -1).at[place].set(tokens, mode="drop")
    return closed, jnp.sum(stays)


def stretches(
    tokens: Int[Array, " n"], row: Int[Array, ""], batch: Int[Array, ""], settings: Settings
) -> Int[Array, "s l+2w"]:
    """The places of a batch: `length` of each stretch, and a window more at both ends.

    A place of the next stretch's part is context, but no word to predict: it is made -2 - word.
    """
    s = jnp.arange(settings.stretches)[:, None]
    offset = batch * settings.length + jnp.arange(settings.length + 2 * settings.window)
    offset = offset - settings.window
    words = jnp.take(tokens, s * row + offset, mode="fill", fill_value=-1)
    return jnp.where((offset >= row) & (words >= 0), -2 - words, words)


def updated(
    tables: Tables,
    words: Int[Array, "s l+2w"],
    share: Float[Array, " V"],
    rate: Float[Array, ""],
    key: Array,
    settings: Settings,
) -> tuple[Tables, tuple[Float[Array, ""], Float[Array, ""]]]:
    """An update of plain gradient descent on the sum of a batch's places.

    The loss of a place with the mean h of its context and the word o there is
    -log sigmoid(<h, o>) - negatives mean_k log sigmoid(-<h, o_k>), k the batch's negatives that are
    not the word itself.

    Args:
      tables: before.
      words: of `stretches`.
      share: cumulative probability of the words in draws of negatives.
      rate: of learning.
      key: of the draws.
      settings: of the training.

    Returns:
      The tables, and the sum of -log sigmoid(<h, o>) over the places, and their number.
    """
    widths, negatives = jax.random.split(key)
    w, length = settings.window, settings.length
    there = jnp.where(words < -1, -2 - words, words)
    distance = jnp.abs(jnp.arange(length + 2 * w) - w - jnp.arange(length)[:, None])
    width = jax.random.randint(widths, (len(words), length, 1), 1, w + 1)
    near = (distance > 0) & (distance <= width) & (there >= 0)[:, None]
    count = jnp.sum(near, axis=2)
    share_of = near / jnp.maximum(1, count)[:, :, None]
    vectors = tables.inputs[there]
    h = jnp.einsum("slm,smd->sld", share_of, vectors).reshape(-1, settings.dim)
    word = words[:, w : w + length].ravel()
    place = (word >= 0) & (count.ravel() > 0)
    other = jnp.searchsorted(share, jax.random.uniform(negatives, (settings.shared,)))
    other = jnp.minimum(other, len(share) - 1)  # the last share may round to less than 1
    own, others = tables.outputs[word], tables.outputs[other]
    right = place * jax.nn.sigmoid(-jnp.sum(h * own, axis=1))
    weight = settings.negatives / settings.shared
    wrong = h @ others.T
    allowed = place[:, None] & (other != word[:, None])
    pull = jnp.where(allowed, weight * jax.nn.sigmoid(wrong), 0.0)
    back = pull @ others - right[:, None] * own
    back = jnp.einsum("slm,sld->smd", near.astype(h.dtype), back.reshape(*width.shape[:2], -1))
    inputs = tables.inputs.at[there].add(-rate * back)
    # One scatter: for two XLA copies the whole table, twice a batch.
    rows = jnp.concatenate([word, other])
    change = jnp.concatenate([rate * right[:, None] * h, -rate * pull.T @ h])
    outputs = tables.outputs.at[rows].add(change)
    value = -jnp.sum(jnp.where(place, jnp.log(1 - right), 0))
    return Tables(inputs, outputs), (value, jnp.sum(place, dtype=jnp.float32))
