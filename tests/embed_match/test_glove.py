"""Co-occurrence counts, the loss of the paper, and training on a text with known structure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from embed_match import glove

TOKENS = np.array([-1, -1, 0, 1, 2, 0, -1, -1, 2, 1, -1, -1], np.int32)


def start(num_words, number, dim):
    """As glove.init, which would take seconds to compile for every shape."""
    rng = np.random.default_rng(1)
    v = -(-num_words // number)
    shapes = (number, v, dim), (num_words, dim), (number, v), (num_words,)
    return glove.Parameters(*(jnp.asarray(rng.uniform(-0.1, 0.1, s), jnp.float32) for s in shapes))


def by_hand(tokens, num_words, window):
    counts = np.zeros((num_words, num_words))
    for i, first in enumerate(tokens):
        for j in range(i + 1, min(len(tokens), i + window + 1)):
            if first >= 0 and tokens[j] >= 0:
                counts[first, tokens[j]] += 1 / (j - i)
                counts[tokens[j], first] += 1 / (j - i)
    return counts


@pytest.mark.parametrize("at_once", [3, 100])
def test_counts_are_those_by_hand(monkeypatch, at_once):
    monkeypatch.setattr(glove, "AT_ONCE", at_once)
    found = glove.cooccurrence(TOKENS, 3, 2)
    np.testing.assert_allclose(found.toarray(), by_hand(TOKENS, 3, 2))


def test_the_loss_of_all_blocks_is_that_of_the_paper():
    counts = glove.cooccurrence(TOKENS, 3, 2)
    data = glove.blocks(counts, 2, 1.5, 0.75, jax.random.key(0))
    x = jax.tree.map(np.asarray, start(3, 2, 4))
    total = 0.0
    for b in range(2):
        block = glove.Data(*(np.asarray(values)[b] for values in data[:4]), data.key)
        total += glove.loss(glove._block(x, b), block)
    words = np.asarray(x.words).swapaxes(0, 1).reshape(-1, 4)[:3]
    bias = np.asarray(x.word_bias).T.ravel()[:3]
    dense = counts.toarray()
    seen = dense > 0
    guess = words @ np.asarray(x.contexts).T + bias[:, None] + np.asarray(x.context_bias)
    error = (guess - np.log(np.where(seen, dense, 1))) ** 2
    weight = np.minimum(1, dense / 1.5) ** 0.75
    np.testing.assert_allclose(total, np.sum(weight * error * seen) / 2, rtol=1e-5)
    np.testing.assert_allclose(glove.vectors(x), words + np.asarray(x.contexts), rtol=1e-5)


def test_words_of_one_topic_come_to_lie_together():
    rng = np.random.default_rng(0)
    texts = [np.append(rng.integers(4, size=12) + 4 * (i % 2), [-1, -1]) for i in range(60)]
    counts = glove.cooccurrence(np.concatenate(texts).astype(np.int32), 8, 2)
    settings = glove.Settings(dim=8, learning_rate=0.1, epochs=50)
    data = glove.blocks(counts, 3, 10.0, 0.75, jax.random.key(0))
    x = start(8, 3, 8)
    state = glove.State(x, jax.tree.map(jnp.ones_like, x))
    step = jax.jit(glove.step, static_argnames="settings")
    losses = []
    for index in range(4):
        state, metrics = step(state, jnp.int32(index), data, settings)
        losses.append(float(metrics["loss"]))
    assert losses[-1] < 0.1 * losses[0]
    x = np.asarray(glove.vectors(state.parameters))
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = x @ x.T
    together = np.arange(8)[:, None] // 4 == np.arange(8) // 4
    assert cosine[together].min() > cosine[~together].max()
