"""CBOW: subsampling, batches, the gradient against automatic differentiation, and training."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common import cbow

PASSES = {"segments": 3, "segment_length": 4, "epochs": 20, "shards": 2}
PASSES |= {"copies": 2, "copy_batches": 3}
SETTINGS = cbow.Settings(
    dim=6, window=2, negatives=3, shared_negatives=5, subsample=1.0, learning_rate=0.2, **PASSES
)


def test_subsampling_removes_words_by_their_probability_and_closes_the_gaps():
    tokens = jnp.asarray([-1, 0, 1, 0, 1, -1] * 2_000)
    keep_prob = np.array([1.0, 0.25], np.float32)
    kept, count = jax.jit(cbow.subsample)(tokens, keep_prob, jax.random.key(0))
    assert (kept[count:] == -1).all()
    counts = [np.sum(kept[:count] == word) for word in (-1, 0, 1)]
    assert counts == [4_000, 4_000, pytest.approx(1_000, rel=0.1)]


def test_batches_contain_each_position_once_with_its_context():
    tokens = jnp.arange(25)
    stride = -(-25 // SETTINGS.segments)
    positions = []
    for batch in range(-(-stride // SETTINGS.segment_length)):
        words = np.asarray(cbow.segments(tokens, stride, batch, SETTINGS))
        middle = words[:, 2:-2]
        positions += middle[middle >= 0].tolist()
        # Word i is at position i, so neighbouring positions hold consecutive words.
        context = np.where(words < -1, -2 - words, words)
        neighbours = (context[:, 1:] > 0) & (context[:, :-1] >= 0)
        assert (np.diff(context, axis=1)[neighbours] == 1).all()
    assert sorted(positions) == list(range(25))


def windows(words, widths):
    """For each predicted position: how often each word is in its context, and its own word."""
    rows, targets = [], []
    for segment, segment_widths in zip(words, widths, strict=True):
        for i, width in enumerate(segment_widths, SETTINGS.window):
            around = range(i - width, i + width + 1)
            near = [segment[j] for j in around if j != i and segment[j] != -1]
            if segment[i] >= 0 and near:
                context = [-2 - word if word < -1 else word for word in near]
                rows.append(np.bincount(context, minlength=9))
                targets.append(segment[i])
    return np.array(rows), np.array(targets)


@jax.jit
def total_loss(h, outputs, targets, noise):
    """The loss in the docstring of `cbow.sgd_update`, summed over positions."""
    logits = h @ outputs.T
    positive = jax.nn.softplus(-logits[jnp.arange(len(targets)), targets])
    negative = jnp.where(targets[:, None] != noise, jax.nn.softplus(logits[:, noise]), 0.0)
    return positive.sum() + SETTINGS.negatives / SETTINGS.shared_negatives * negative.sum()


def test_the_update_is_gradient_descent_on_the_loss():
    rng = np.random.default_rng(0)
    old = cbow.Parameters(*rng.standard_normal((2, 9, 6)).astype(np.float32))
    # Words below -1 belong to the next segment and are context only.
    words = np.array([[0, 1, 2, 3, 4, 5, -1, -1], [8] * 8, [-1, -1, 6, 2, -4, -5, -6, -7]])
    widths, noise, rate = rng.integers(1, 3, (3, 4)), rng.integers(0, 9, 5), 0.1
    update = jax.jit(cbow.sgd_update, static_argnames="settings")
    new, (positive, positions) = update(old, words, widths, noise, rate, SETTINGS)
    rows, targets = windows(words, widths)
    h = rows @ old.inputs / rows.sum(axis=1, keepdims=True)
    d_h, d_outputs = jax.grad(total_loss, argnums=(0, 1))(h, old.outputs, targets, noise)
    np.testing.assert_allclose(new.outputs, old.outputs - rate * d_outputs, atol=1e-5)
    # As in word2vec, the gradient with respect to the mean is not divided by the context's size.
    np.testing.assert_allclose(new.inputs, old.inputs - rate * rows.T @ d_h, atol=1e-5)
    assert positions == len(targets) == 4 + 4 + 2
    assert 0 < positive < total_loss(h, old.outputs, targets, noise)


@pytest.mark.slow
def test_the_loss_of_a_word_that_is_surely_wrong_is_finite():
    """A score of -60: its sigmoid rounds to zero, whose logarithm is infinite."""
    settings = dataclasses.replace(SETTINGS, dim=1, window=1)
    parameters = cbow.Parameters(jnp.full((8, 1), 60.0), jnp.full((8, 1), -1.0))
    words = jnp.asarray([[0, 1, 2, 3]])
    settings = dataclasses.replace(settings, segments=1, segment_length=2)
    widths, noise = jnp.ones((1, 2), int), jnp.arange(5)
    arguments = parameters, words, widths, noise, 0.1, settings
    _, (loss, positions) = cbow.sgd_update(*arguments)
    np.testing.assert_allclose(loss / positions, 60.0, rtol=1e-5)
