"""Continuous bag of words (CBOW) with negative sampling (Mikolov et al. 2013).

A word is predicted from the mean of the vectors of its context. As in the public word2vec code,
frequent words are subsampled anew in each epoch before the windows are formed, the width of each
window is drawn at random, and the gradient with respect to the mean is added undivided to every
vector of the context. Two changes turn the updates into matrix products: a batch consists of a few
segments of running text, so that each vector is read and updated once for all windows that contain
it; and all positions of a batch share their negative samples.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from common.data.corpus import Corpus
from common.train import Metrics, run
from common.workdir import Workdir

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


def train(
    corpus: Corpus, settings: Settings, keys: Array, *, work: Workdir, part: str
) -> Float[np.ndarray, "V d"]:
    """Trains the vectors of all words of a corpus.

    Args:
      corpus: the texts, not subsampled, with gaps of `settings.window`.
      settings: of the training.
      keys: random keys of the training and of the initial vectors.
      work: the run's folder.
      part: name of the training.
    """
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
    """Prepares a text for training.

    The probability to keep a word of relative frequency f is min(1, sqrt(t / f) + t / f), where t
    is `settings.subsample`, as in the public word2vec code; the corpus itself is not subsampled.
    """
    n = -(-len(corpus.tokens) // settings.shards)
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
    """Trains on one shard of the text, batch by batch; a step of `common.train.run`."""
    subsample_key, batch_key = jax.random.split(jax.random.fold_in(data.key, index))
    tokens, count = subsample(data.tokens[index % settings.shards], data.keep_prob, subsample_key)
    stride = -(-count // settings.segments)
    batches = -(-stride // settings.segment_length)
    steps = settings.epochs * settings.shards

    def update(batch, carry):
        parameters, sums = carry
        key = jax.random.fold_in(batch_key, batch)
        words = segments(tokens, stride, batch, settings)
        rate = settings.learning_rate * (1 - (index + batch / batches) / steps)
        parameters, found = sgd_update(parameters, words, data.noise_cdf, rate, key, settings)
        return parameters, (sums[0] + found[0], sums[1] + found[1])

    state, (loss, positions) = lax.fori_loop(0, batches, update, (state, (0.0, 0.0)))
    return state, {"positive_loss": loss / jnp.maximum(1, positions), "positions": positions}


def subsample(
    tokens: Int[Array, " n"], keep_prob: Float[Array, " V"], key: Array
) -> tuple[Int[Array, " n"], Int[Array, ""]]:
    """Removes words at random and moves the remaining ones together.

    Returns:
      The remaining tokens, padded with -1, and their number.
    """
    stays = (tokens < 0) | (jax.random.uniform(key, tokens.shape) < keep_prob[tokens])
    position = jnp.where(stays, jnp.cumsum(stays) - 1, len(tokens))
    closed = jnp.full_like(tokens, -1).at[position].set(tokens, mode="drop")
    return closed, jnp.sum(stays)


def segments(
    tokens: Int[Array, " n"], stride: Int[Array, ""], batch: Int[Array, ""], settings: Settings
) -> Int[Array, "s l+2w"]:
    """The word ids of a batch: `segment_length` positions of each segment, with context.

    Segment i of the shard starts at position i * stride. Each row has `window` further positions
    at both ends. Positions that belong to the next segment are context only, never predicted:
    word w is encoded there as -2 - w.
    """
    starts = stride * jnp.arange(settings.segments)[:, None]
    offset = batch * settings.segment_length
    offset += jnp.arange(settings.segment_length + 2 * settings.window) - settings.window
    words = jnp.take(tokens, starts + offset, mode="fill", fill_value=-1)
    return jnp.where((offset >= stride) & (words >= 0), -2 - words, words)


def sgd_update(
    parameters: Parameters,
    words: Int[Array, "s l+2w"],
    noise_cdf: Float[Array, " V"],
    learning_rate: Float[Array, ""],
    key: Array,
    settings: Settings,
) -> tuple[Parameters, tuple[Float[Array, ""], Float[Array, ""]]]:
    """One step of gradient descent on the sum of the losses of a batch.

    With the mean h of the input vectors of its context, the output vectors u, and the K shared
    negative samples, a position with word o has the loss

      -log sigmoid(<h, u_o>) - (negatives / K) sum_{k != o} log sigmoid(-<h, u_k>).

    Args:
      parameters: before the update.
      words: as returned by `segments`.
      noise_cdf: cumulative distribution of the negative samples.
      learning_rate: step size at this point of its decay.
      key: of the window widths and the negative samples.
      settings: all else.

    Returns:
      The new parameters, and the sum of -log sigmoid(<h, u_o>) and the number of positions.
    """
    width_key, noise_key = jax.random.split(key)
    w, length = settings.window, settings.segment_length
    context = jnp.where(words < -1, -2 - words, words)
    distance = jnp.abs(jnp.arange(length + 2 * w) - w - jnp.arange(length)[:, None])
    width = jax.random.randint(width_key, (len(words), length, 1), 1, w + 1)
    near = (distance > 0) & (distance <= width) & (context >= 0)[:, None]
    count = jnp.sum(near, axis=2)
    mean_weight = near / jnp.maximum(1, count)[:, :, None]
    vectors = parameters.inputs[context]
    h = jnp.einsum("slm,smd->sld", mean_weight, vectors).reshape(-1, settings.dim)
    word = words[:, w : w + length].ravel()
    valid = (word >= 0) & (count.ravel() > 0)
    draws = jax.random.uniform(noise_key, (settings.shared_negatives,))
    # Rounding may leave the last entry of the distribution below a draw.
    noise = jnp.minimum(jnp.searchsorted(noise_cdf, draws), len(noise_cdf) - 1)
    positive, negative = parameters.outputs[word], parameters.outputs[noise]
    # Derivatives of the loss with respect to the logits <h, u_o> (negated) and <h, u_k>.
    score = jnp.sum(h * positive, axis=1)
    d_positive = valid * jax.nn.sigmoid(-score)
    weight = settings.negatives / settings.shared_negatives
    logits = h @ negative.T
    counted = valid[:, None] & (noise != word[:, None])
    d_negative = jnp.where(counted, weight * jax.nn.sigmoid(logits), 0.0)
    d_h = d_negative @ negative - d_positive[:, None] * positive
    d_inputs = jnp.einsum("slm,sld->smd", near.astype(h.dtype), d_h.reshape(*width.shape[:2], -1))
    inputs = parameters.inputs.at[context].add(-learning_rate * d_inputs)
    # A single scatter: with two of them XLA copies the whole table twice per batch.
    rows = jnp.concatenate([word, noise])
    change = [learning_rate * d_positive[:, None] * h, -learning_rate * d_negative.T @ h]
    outputs = parameters.outputs.at[rows].add(jnp.concatenate(change))
    loss = -jnp.sum(jnp.where(valid, jax.nn.log_sigmoid(score), 0))
    return Parameters(inputs, outputs), (loss, jnp.sum(valid, dtype=jnp.float32))
