"""Continuous bag of words (CBOW) with negative sampling (Mikolov et al. 2013).

A word is predicted from the mean of the vectors of its context. As in the public word2vec code,
frequent words are subsampled anew in each epoch before the windows are formed, the width of each
window is drawn at random, and the gradient with respect to the mean is added undivided to every
vector of the context. Two changes turn the updates into matrix products: a batch consists of a few
segments of running text, so that each vector is read and updated once for all windows that contain
it; and all positions of a batch share their negative samples.

A batch is too small to be split between devices or cores. Instead several copies of the tables are
trained side by side, each on its own part of the text, and continue from the sum of their changes
after some batches. Results do not depend on the number of devices that train the copies.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from common.arrays import RealNumber, WholeNumber
from common.data.sets.corpus import Corpus
from common.parallel import all_parts, on_parts, sum_of_parts
from common.run.train import Metrics, run
from common.run.workdir import Workdir

NOISE_POWER = 0.75  # negative samples are drawn from the word frequencies to this power


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Hyper-parameters of CBOW."""

    dim: int  # dimensions of a word vector
    window: int  # largest distance of a context word
    negatives: int  # negative samples per position, as in word2vec
    # Samples drawn for a batch, weighted by negatives / shared_negatives. Few samples for many
    # positions are noisy, since each sampled word is moved by all positions at once.
    shared_negatives: int
    subsample: float  # relative frequency above which words are subsampled
    segments: int  # segments of running text in a batch
    segment_length: int  # positions that a batch takes from each segment
    copies: int  # of the tables; as many devices can take part as divide their number
    copy_batches: int  # batches of each copy before their changes are added
    epochs: int  # passes through the text
    shards: int  # parts of the text; a step of the training loop is one shard
    learning_rate: float  # of SGD on the sum over a batch; decays linearly to zero


class Data(NamedTuple):
    """Input of the training steps."""

    tokens: Int[Array, "shards n"]  # word ids of the text; -1 where there is no word
    keep_prob: Float[Array, " V"]  # probability that a word survives subsampling
    noise_cdf: Float[Array, " V"]  # cumulative distribution of the negative samples
    key: Array  # of all random draws


class Parameters(NamedTuple):
    """Vectors of words as context, which are the embedding, and as the predicted word."""

    inputs: Float[Array, "V d"]
    outputs: Float[Array, "V d"]


class Part(NamedTuple):
    """The part of a shard on which one copy is trained, and the random draws of its batches."""

    tokens: Int[Array, " n"]  # after subsampling
    stride: Int[Array, ""]  # positions of a segment
    batches: Int[Array, ""]  # number of batches
    widths: Int[Array, "b s l"]  # largest distance of a context word of each position
    noise: Int[Array, "b K"]  # negative samples


def train(
    corpus: Corpus, settings: Settings, keys: Array, *, work: Workdir, part: str
) -> Float[np.ndarray, "V d"]:
    """Word vectors of a corpus with gaps of `settings.window`; `keys[1]` is of the initial ones."""
    state = run(
        step,
        init(settings, len(corpus.words), keys[1]),
        data(corpus, settings, keys[0]),
        settings,
        num_steps=settings.epochs * settings.shards,
        chunk=settings.shards,
        work=work,
        part=part,
    )
    return np.asarray(state.inputs)


def data(corpus: Corpus, settings: Settings, key: Array) -> Data:
    """Prepares a text, not subsampled, for training.

    A word of frequency f is kept with min(1, sqrt(t / f) + t / f), t being `settings.subsample`.
    """
    n = settings.copies * -(-len(corpus.tokens) // (settings.shards * settings.copies))
    padding = n * settings.shards - len(corpus.tokens)
    tokens = np.pad(corpus.tokens, (0, padding), constant_values=-1).reshape(-1, n)
    ratio = settings.subsample / corpus.frequencies
    noise_cdf = np.cumsum(corpus.frequencies**NOISE_POWER)
    return Data(
        tokens=jnp.asarray(tokens),
        keep_prob=jnp.asarray(np.minimum(1, np.sqrt(ratio) + ratio), jnp.float32),
        noise_cdf=jnp.asarray(noise_cdf / noise_cdf[-1], jnp.float32),
        key=key,
    )


def init(settings: Settings, num_words: int, key: Array) -> Parameters:
    """Input vectors uniform in [-1 / 2d, 1 / 2d], output vectors zero, as in word2vec."""
    inputs = jax.random.uniform(key, (num_words, settings.dim), minval=-0.5, maxval=0.5)
    return Parameters(inputs / settings.dim, jnp.zeros_like(inputs))


def step(
    state: Parameters, index: Int[Array, ""], data: Data, settings: Settings
) -> tuple[Parameters, Metrics]:
    """Trains on one shard of the text; a step of `common.run.train.run`."""
    texts = data.tokens[index % settings.shards].reshape(settings.copies, -1)
    keys = jax.random.split(jax.random.fold_in(data.key, index), settings.copies)
    train_copies = partial(_train_copies, settings)
    (state, (loss, positions)), _ = on_parts(train_copies, (texts, keys), state, index, data)
    return state, {"positive_loss": loss / jnp.maximum(1, positions), "positions": positions}


def _train_copies(settings, rows, state, index, data):
    """Trains this device's copies on their texts; a function of `common.parallel.on_parts`."""
    parts = [draw(text, key, data, settings) for text, key in zip(*rows, strict=True)]

    def exchange(number, carry):
        begin, totals = carry
        # A loop in Python: with `lax.map` XLA took half as long again.
        copies = [_changes_by_copy(begin, part, number, index, settings) for part in parts]
        changes = jax.tree.map(lambda *x: sum(x), *copies)
        return jax.tree.map(jnp.add, (begin, totals), sum_of_parts(changes))

    most = jnp.max(all_parts(jnp.stack([part.batches for part in parts])))
    exchanges = -(-most // settings.copy_batches)
    return lax.fori_loop(0, exchanges, exchange, (state, (0.0, 0.0))), ()


def _changes_by_copy(begin, part, number, index, settings):
    """What the batches of one copy between two exchanges add to the tables, and their losses.

    `begin` are the tables after the last exchange, `index` is the shard's, for the learning rate.
    """

    def update(batch, carry):
        tables, sums = carry
        done = jnp.asarray(index, jnp.float32) + batch / part.batches
        progress = done / (settings.epochs * settings.shards)
        rate = settings.learning_rate * (1 - progress)
        words = segments(part.tokens, part.stride, batch, settings)
        draws = part.widths[batch], part.noise[batch]
        tables, loss_sums = sgd_update(tables, words, *draws, rate, settings)
        return tables, jax.tree.map(jnp.add, sums, loss_sums)

    first = number * settings.copy_batches
    last = jnp.minimum(first + settings.copy_batches, part.batches)
    end, sums = lax.fori_loop(first, last, update, (begin, (0.0, 0.0)))
    return jax.tree.map(jnp.subtract, end, begin), sums


def draw(text: Int[Array, " n"], key: Array, data: Data, settings: Settings) -> Part:
    """Subsamples a text, and draws the widths and negative samples of all its batches."""
    subsample_key, width_key, noise_key = jax.random.split(key, 3)
    tokens, count = subsample(text, data.keep_prob, subsample_key)
    stride = -(-count // settings.segments)
    # Draws for as many batches as there would be without subsampling, at once: a few numbers in
    # each batch cost more.
    most = -(-len(text) // settings.segments // settings.segment_length)
    shape = most, settings.segments, settings.segment_length
    widths = jax.random.randint(width_key, shape, 1, settings.window + 1)
    draws = jax.random.uniform(noise_key, (most, settings.shared_negatives))
    # Rounding may leave the last entry of the distribution below a draw.
    noise = jnp.minimum(jnp.searchsorted(data.noise_cdf, draws), len(data.noise_cdf) - 1)
    return Part(tokens, stride, -(-stride // settings.segment_length), widths, noise)


def subsample(
    tokens: Int[Array, " n"], keep_prob: Float[Array, " V"], key: Array
) -> tuple[Int[Array, " n"], Int[Array, ""]]:
    """Removes words at random; the remaining ones, padded with -1, and their number."""
    stays = (tokens < 0) | (jax.random.uniform(key, tokens.shape) < keep_prob[tokens])
    position = jnp.where(stays, jnp.cumsum(stays) - 1, len(tokens))
    closed = jnp.full_like(tokens, -1).at[position].set(tokens, mode="drop")
    return closed, jnp.sum(stays)


def segments(
    tokens: Int[Array, " n"], stride: WholeNumber, batch: WholeNumber, settings: Settings
) -> Int[Array, "s {settings.segment_length+2*settings.window}"]:
    """The word ids of a batch: `segment_length` positions of each segment, with context.

    Segment i starts at position i * stride; at both ends are `window` positions more. Those of the
    next segment are context only, never predicted: word w is encoded there as -2 - w.
    """
    starts = stride * jnp.arange(settings.segments)[:, None]
    offset = batch * settings.segment_length
    offset += jnp.arange(settings.segment_length + 2 * settings.window) - settings.window
    words = jnp.take(tokens, starts + offset, mode="fill", fill_value=-1)
    return jnp.where((offset >= stride) & (words >= 0), -2 - words, words)


def sgd_update(
    parameters: Parameters,
    words: Int[Array, "s {settings.segment_length+2*settings.window}"],
    widths: Int[Array, "s l"],
    noise: Int[Array, " K"],
    learning_rate: RealNumber,
    settings: Settings,
) -> tuple[Parameters, tuple[Float[Array, ""], Float[Array, ""]]]:
    """One step of gradient descent on the sum of the losses of a batch, as `segments` returns it.

    With the mean h of the input vectors of its context, the output vectors u, and the K shared
    negative samples, a position with word o has the loss

      -log sigmoid(<h, u_o>) - (negatives / K) sum_{k != o} log sigmoid(-<h, u_k>).

    Returns also the sum of -log sigmoid(<h, u_o>), and the number of positions.
    """
    w, length = settings.window, settings.segment_length
    context = jnp.where(words < -1, -2 - words, words)
    distance = jnp.abs(jnp.arange(2 * w + 1) - w)
    near = (distance > 0) & (distance <= widths[:, :, None]) & (_around(context, w) >= 0)
    count = jnp.sum(near, axis=2)
    h = _window_sum(parameters.inputs[context], near)
    h /= jnp.maximum(1, count).astype(h.dtype)[:, :, None]
    h = h.reshape(-1, settings.dim)
    word = words[:, w : w + length].ravel()
    valid = (word >= 0) & (count.ravel() > 0)
    positive, negative = parameters.outputs[word], parameters.outputs[noise]
    # Derivatives of the loss with respect to the logits <h, u_o> (negated) and <h, u_k>.
    score = jnp.sum(h * positive, axis=1)
    d_positive = jnp.where(valid, jax.nn.sigmoid(-score), 0.0)
    weight = settings.negatives / settings.shared_negatives
    logits = h @ negative.T
    counted = valid[:, None] & (noise != word[:, None])
    d_negative = jnp.where(counted, weight * jax.nn.sigmoid(logits), 0.0)
    d_h = d_negative @ negative - d_positive[:, None] * positive
    d_h = d_h.reshape(*count.shape, -1)
    # Entry j of a word is the position j - 2w after it, in whose window it is entry 2w - j.
    margin = [(0, 0), (2 * w, 2 * w), (0, 0)]
    length += 2 * w
    pad = jnp.pad(near, margin)
    back = jnp.stack([pad[:, j : j + length, 2 * w - j] for j in range(2 * w + 1)], axis=2)
    d_inputs = _window_sum(jnp.pad(d_h, margin), back)
    inputs = parameters.inputs.at[context].add(-learning_rate * d_inputs)
    # A single scatter: with two of them XLA copies the whole table twice per batch.
    rows = jnp.concatenate([word, noise])
    change = [learning_rate * d_positive[:, None] * h, -learning_rate * d_negative.T @ h]
    outputs = parameters.outputs.at[rows].add(jnp.concatenate(change))
    loss = -jnp.sum(jnp.where(valid, jax.nn.log_sigmoid(score), 0))
    return Parameters(inputs, outputs), (loss, jnp.sum(valid, dtype=jnp.float32))


def _around(x: Int[Array, "s n"], window: int) -> Int[Array, "s m {2*window+1}"]:
    """The entries around each one that has `window` neighbours to either side, and itself."""
    length = x.shape[1] - 2 * window
    return jnp.stack([x[:, j : j + length] for j in range(2 * window + 1)], axis=2)


def _window_sum(
    vectors: Float[Array, "s n d"], near: Bool[Array, "s m c"]
) -> Float[Array, "s m d"]:
    """Sums of the chosen vectors of each window, three times as fast as by banded matrices."""
    length = near.shape[1]
    near = near.astype(vectors.dtype)
    shifted = (near[:, :, j, None] * vectors[:, j : j + length] for j in range(near.shape[2]))
    return jnp.asarray(sum(shifted))
