"""GloVe: co-occurrence counts and the loss against direct sums, and training."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embed_match import glove
from tests import topics

TOKENS = np.array([-1, -1, 0, 1, 2, 0, -1, -1, 2, 1, -1, -1], np.int32)
PASSES = {"blocks": 3, "epochs_per_step": 50, "steps": 4}
SETTINGS = glove.Settings(dim=8, window=2, x_max=10.0, power=0.75, learning_rate=0.1, **PASSES)


@pytest.mark.parametrize("block_tokens", [3, 100])
def test_counts_equal_a_direct_sum_over_pairs(monkeypatch, block_tokens):
    monkeypatch.setattr(glove, "BLOCK_TOKENS", block_tokens)
    expected = np.zeros((3, 3))
    for (i, first), (j, second) in itertools.combinations(enumerate(TOKENS), 2):
        if j - i <= 2 and min(first, second) >= 0:
            np.add.at(expected, ([first, second], [second, first]), 1 / (j - i))
    np.testing.assert_allclose(glove.cooccurrence(TOKENS, 3, 2).toarray(), expected)


def test_the_losses_of_all_blocks_sum_to_equation_8():
    counts = glove.cooccurrence(TOKENS, 3, 2)
    settings = dataclasses.replace(SETTINGS, dim=4, blocks=2, x_max=1.5)
    data = glove.data(counts, settings, jax.random.key(0))
    state = glove.init(settings, 3, jax.random.key(1))
    blocks, contexts = (jax.device_get(part.parameters) for part in state)
    total = 0.0
    for b in range(2):
        of_seed = glove.Data(*(np.asarray(values)[0, b] for values in data[:4]), data.key)
        total += glove.loss(jax.tree.map(lambda x: x[b], blocks), contexts, of_seed)  # noqa: B023
    words = blocks.vectors.swapaxes(0, 1).reshape(-1, 4)[:3]
    bias = blocks.bias.T.ravel()[:3]
    dense = counts.toarray()
    positive = dense > 0
    predicted = words @ contexts.vectors.T + bias[:, None] + contexts.bias
    error = (predicted - np.log(np.where(positive, dense, 1))) ** 2
    weight = np.minimum(1, dense / 1.5) ** 0.75
    np.testing.assert_allclose(total, np.sum(weight * error * positive) / 2, rtol=1e-5)
    np.testing.assert_allclose(glove.vectors(state), words + contexts.vectors, rtol=1e-5)


def test_training_brings_words_of_one_topic_together():
    counts = glove.cooccurrence(topics.tokens(60), 8, 2)
    data = glove.data(counts, SETTINGS, jax.random.key(0))
    state = glove.init(SETTINGS, 8, jax.random.key(1))
    step = jax.jit(glove.step, static_argnames="settings")
    losses = []
    for index in range(SETTINGS.steps):
        state, metrics = step(state, jnp.int32(index), data, SETTINGS)
        losses.append(float(metrics["loss"]))
    assert losses[-1] < 0.1 * losses[0]
    assert topics.are_separated(np.asarray(glove.vectors(state)))
