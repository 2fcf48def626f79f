"""GloVe's counts and loss against direct sums, and the texts and vectors of the classifier."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embed_match import glove, lstm

TOKENS = np.array([-1, -1, 0, 1, 2, 0, -1, -1, 2, 1, -1, -1], np.int32)


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
    values = {"dim": 4, "window": 2, "x_max": 1.5, "power": 0.75, "learning_rate": 0.1}
    settings = glove.Settings(**values, blocks=2, epochs_per_step=1, steps=1)
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


def test_last_words_are_padded_on_the_left():
    text, word = np.array([0, 0, 0, 2]), np.array([5, 6, 7, 8])
    assert lstm.last_words(text, word, 3, 2).tolist() == [[6, 7], [-1, -1], [-1, 8]]


@pytest.mark.slow
def test_training_changes_the_vectors_of_the_words_that_occur():
    """Texts with word 0 are of class 1; word 5 does not occur and keeps its vector."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 5, size=(64, 4))
    labels = np.arange(64) % 2
    words[labels == 1, rng.integers(4, size=32)] = 0
    data = lstm.Data(jnp.asarray(words), jnp.asarray(labels), jax.random.key(0))
    table = jnp.asarray(rng.standard_normal((6, 3)), jnp.float32)
    steps = {"batch_size": 16, "updates_per_step": 40, "steps": 2, "learning_rate": 0.02}
    settings = lstm.Settings(unit_norm=True, max_length=4, hidden_size=8, **steps)
    state = lstm.init(settings, table, jax.random.key(1))
    step = jax.jit(lstm.step, static_argnames="settings")
    for index in range(2):
        state, metrics = step(state, index, data, settings)
    assert metrics["accuracy"] > 0.9
    assert lstm.accuracy(state.parameters, data, settings) > 0.9
    tuned = state.parameters.table[...]
    np.testing.assert_array_equal(tuned[5], table[5])
    assert float(jnp.abs(tuned[0] - table[0]).max()) > 0.05
