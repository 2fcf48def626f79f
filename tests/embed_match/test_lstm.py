"""The sentiment classifier: its input, and the fine-tuning of word vectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embed_match import lstm

STEPS = {"batch_size": 16, "updates_per_step": 40, "steps": 2, "learning_rate": 0.02}
SETTINGS = lstm.Settings(unit_norm=True, max_length=4, hidden_size=8, **STEPS)


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
    state = lstm.init(SETTINGS, table, jax.random.key(1))
    step = jax.jit(lstm.step, static_argnames="settings")
    for index in range(SETTINGS.steps):
        state, metrics = step(state, index, data, SETTINGS)
    assert metrics["accuracy"] > 0.9
    assert lstm.accuracy(state.parameters, data, SETTINGS) > 0.9
    tuned = state.parameters.table[...]
    np.testing.assert_array_equal(tuned[5], table[5])
    assert float(jnp.abs(tuned[0] - table[0]).max()) > 0.05
