"""CBOW: thinning, batches of running text, the gradient by hand, and training on known topics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.data.corpus import Corpus
from embed_match import cbow

SETTINGS = cbow.Settings(
    dim=6,
    window=2,
    negatives=3,
    shared=5,
    stretches=3,
    length=4,
    epochs=20,
    pieces=2,
    learning_rate=0.2,
)


def test_words_are_thinned_out_and_holes_closed():
    tokens = jnp.asarray([-1, 0, 1, 0, 1, -1] * 2_000)
    keep = np.array([1.0, 0.25], np.float32)
    found, count = jax.jit(cbow.thinned)(tokens, keep, jax.random.key(0))
    found = np.asarray(found)
    assert (found[count:] == -1).all()
    assert np.sum(found == 0) == 4_000
    assert np.sum(found == 1) == pytest.approx(1_000, rel=0.1)
    assert np.sum(found[:count] == -1) == 4_000


def test_batches_have_each_place_once_with_its_window():
    tokens = jnp.arange(25)
    row = -(-25 // SETTINGS.stretches)
    places = []
    for batch in range(-(-row // SETTINGS.length)):
        words = np.asarray(cbow.stretches(tokens, row, batch, SETTINGS))
        middle = words[:, 2:-2]
        places += middle[middle >= 0].tolist()
        # In running text the words to either side are the numbers to either side.
        there = np.where(words < -1, -2 - words, words)
        both = (there[:, 1:] > 0) & (there[:, :-1] >= 0)
        assert (np.diff(there, axis=1)[both] == 1).all()
    assert sorted(places) == list(range(25))


def windows(words, width):
    """How often each place has each word in its context, and its own word."""
    rows, targets = [], []
    for stretch, widths in zip(words, width, strict=True):
        for i, r in enumerate(widths, SETTINGS.window):
            near = [stretch[j] for j in range(i - r, i + r + 1) if j != i and stretch[j] != -1]
            if stretch[i] >= 0 and near:
                there = [-2 - word if word < -1 else word for word in near]
                rows.append(np.bincount(there, minlength=9))
                targets.append(stretch[i])
    return np.array(rows), np.array(targets)


@jax.jit
def losses(h, outputs, targets, other):
    """The loss of the docstring."""
    logits = h @ outputs.T
    right = jax.nn.softplus(-logits[jnp.arange(len(targets)), targets])
    wrong = jax.nn.softplus(logits[:, other]) * (targets[:, None] != other)
    return right.sum() + SETTINGS.negatives / SETTINGS.shared * wrong.sum()


def test_an_update_is_that_of_word2vec():
    rng, key = np.random.default_rng(0), jax.random.key(0)
    tables = cbow.Tables(*rng.standard_normal((2, 9, 6)).astype(np.float32))
    words = [[0, 1, 2, 3, 4, 5, -1, -1], [8] * 8, [-1, -1, 6, 2, -4, -5, -6, -7]]
    words = np.array(words)  # those below -1 are the next stretch's: context alone
    share, rate = np.arange(1, 10, dtype=np.float32) / 9, 0.1
    update = jax.jit(cbow.updated, static_argnames="settings")
    new, (positive, places) = update(tables, words, share, rate, key, SETTINGS)
    widths, negatives = jax.random.split(key)
    width = np.asarray(jax.random.randint(widths, (3, 4, 1), 1, 3))[:, :, 0]
    other = np.searchsorted(share, jax.random.uniform(negatives, (5,)))
    rows, targets = windows(words, width)
    h = rows @ tables.inputs / rows.sum(axis=1, keepdims=True)
    back, outputs = jax.grad(losses, argnums=(0, 1))(h, tables.outputs, targets, other)
    np.testing.assert_allclose(new.outputs, tables.outputs - rate * outputs, atol=1e-5)
    np.testing.assert_allclose(new.inputs, tables.inputs - rate * rows.T @ back, atol=1e-5)
    assert places == len(targets) == 4 + 4 + 2
    assert 0 < positive < losses(h, tables.outputs, targets, other)


def test_words_of_one_topic_come_to_lie_together():
    rng = np.random.default_rng(0)
    texts = [np.append(rng.integers(4, size=12) + 4 * (i % 2), [-1, -1]) for i in range(100)]
    corpus = Corpus(list("abcdefgh"), np.full(8, 1 / 8), np.concatenate(texts).astype(np.int32))
    data = cbow.data(corpus, 1.0, SETTINGS, jax.random.key(0))
    assert (data.keep == 1).all() and data.share[-1] == 1
    start = rng.uniform(-0.1, 0.1, (8, SETTINGS.dim)).astype(np.float32)
    state = cbow.Tables(jnp.asarray(start), jnp.zeros_like(start))
    step = jax.jit(cbow.step, static_argnames="settings")
    for index in range(SETTINGS.epochs * SETTINGS.pieces):
        state, metrics = step(state, jnp.int32(index), data, SETTINGS)
    x = np.asarray(state.inputs)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = x @ x.T
    together = np.arange(8)[:, None] // 4 == np.arange(8) // 4
    assert cosine[together].min() > cosine[~together].max()
    assert metrics["places"] == 600
