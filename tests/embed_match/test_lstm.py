"""The fine-tuned classifier: what it reads, and that its word vectors learn."""

import jax
import jax.numpy as jnp
import numpy as np

from embed_match import lstm

SETTINGS = lstm.Settings(hidden=8, batch=16, updates=40, learning_rate=0.02)


def test_the_last_words_of_each_text():
    text, word = np.array([0, 0, 0, 2]), np.array([5, 6, 7, 8])
    assert lstm.last_words(text, word, 3, 2).tolist() == [[6, 7], [-1, -1], [-1, 8]]


def test_vectors_are_fine_tuned_until_the_label_is_told():
    """Texts with word 0 are of class 1; word 5 is in none and keeps its vector."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 5, size=(64, 4))
    labels = np.arange(64) % 2
    words[labels == 1, rng.integers(4, size=32)] = 0
    data = lstm.Data(jnp.asarray(words), jnp.asarray(labels), jax.random.key(0))
    table = jnp.asarray(rng.standard_normal((6, 3)), jnp.float32)
    state = lstm.init(SETTINGS, table, jax.random.key(1))
    step = jax.jit(lstm.step, static_argnames="settings")
    state, _ = step(state, 0, data, SETTINGS)
    state, metrics = step(state, 1, data, SETTINGS)
    assert metrics["accuracy"] > 0.9
    assert lstm.accuracy(state.parameters, data, SETTINGS) > 0.9
    tuned = state.parameters.table[...]
    np.testing.assert_array_equal(tuned[5], table[5])
    assert float(jnp.abs(tuned[0] - table[0]).max()) > 0.05
