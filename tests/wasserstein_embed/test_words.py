"""Words: texts, judged pairs, sampling and loss."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.data.packages import cache_dir
from common.run.settings import settings
from configs.wasserstein_embed.words import get_config
from wasserstein_embed import word_embed, words

CLOUD = {"geometry": "wasserstein", "num_points": 3, "dimension": 2, "hidden_size": 8}
SETTINGS = settings(word_embed.Settings, get_config(), **CLOUD, batch_size=500)
VECTORS = replace(SETTINGS, geometry="euclidean")


def test_samples_are_words_of_a_window_and_negatives_by_probability():
    tokens = jnp.asarray([-1, -1, 0, 1, 2, 3, 0, 1, -1, -1], jnp.int32)
    data = word_embed.Data(tokens, jnp.array([0.1, 0.2, 0.3, 1.0]), jax.random.key(0))
    batch = word_embed.sample(data, jax.random.key(1), SETTINGS)
    word, context, negative = map(np.asarray, batch[:3])
    text = tokens.tolist()
    allowed = {(text[i], text[i + o]) for i in range(2, 8) for o in (-2, -1, 1, 2)}
    assert set(zip(word.tolist(), context.tolist(), strict=True)) == allowed
    np.testing.assert_allclose(np.mean(negative == 3), 0.7, atol=0.06)


def test_with_places_far_apart_each_point_goes_to_that_of_its_place():
    moved, output = jax.random.normal(jax.random.key(0), (6, 8)), jnp.eye(8, SETTINGS.size)
    chosen = replace(SETTINGS, spread=50.0)
    x, y = jnp.split(word_embed.embed(moved, output, chosen), 2)
    expected = np.linalg.norm(np.asarray(x - y), axis=2).mean(axis=1)
    np.testing.assert_allclose(word_embed.pair_distances(x, y, chosen), expected, rtol=1e-4)
    near = word_embed.embed(moved, output, replace(SETTINGS, spread=0.0))
    np.testing.assert_array_equal(near.reshape(6, -1), moved @ output)


@pytest.mark.slow
def test_a_place_without_a_pair_does_not_count():
    tokens = jnp.asarray([-1, -1, 0, -1, -1, 1, 2, -1, -1], jnp.int32)
    data = word_embed.Data(tokens, jnp.array([0.0, 0.0, 1.0]), jax.random.key(0))
    batch = word_embed.sample(data, jax.random.key(1), SETTINGS)
    x = jax.random.normal(jax.random.key(2), (3, 8))
    parameters = word_embed.Parameters(x, jax.random.normal(jax.random.key(3), (8, 6)))
    value, means = word_embed.batch_loss(parameters, batch, SETTINGS)
    clouds = word_embed.embed(*parameters, SETTINGS)

    def distances(pairs):
        first, second = np.array(pairs).T
        return word_embed.pair_distances(clouds[first], clouds[second], SETTINGS)

    word, context = np.asarray(batch.word), np.asarray(batch.context)
    is_pair = (word >= 0) & (context >= 0)
    assert 0 < is_pair.sum() < (word >= 0).sum() < len(word)
    near = distances(list(zip(word[is_pair], context[is_pair], strict=True)))
    far = distances([(i, 2) for i in word[word >= 0]])
    attract, repel = near**2, np.maximum(0, SETTINGS.margin - far) ** 2
    np.testing.assert_allclose(value, (attract.mean() + repel.mean()) / 2, rtol=1e-5)
    np.testing.assert_allclose(means["positive"], near.mean(), rtol=1e-5)
    np.testing.assert_allclose(means["negative"], far.mean(), rtol=1e-5)


def test_the_words_at_a_mode_are_the_nearest_words_with_points_there():
    left, right = np.array([[0.0, 0.0]]), np.array([[5.0, 0.0]])
    x = np.stack([np.concatenate([left, right]), np.repeat(left, 2, 0), np.repeat(right, 2, 0)])
    chosen = replace(SETTINGS, num_points=2)
    names = ["both", "left", "right"]
    assert words.nearest_words(x, names, ("left", "none"), 1, chosen) == {"left": ["both"]}
    densities = words.densities(x, names, ("both", "none"), chosen)
    assert sorted(mode.words for mode in densities["both"].modes) == [["left"], ["right"]]


@pytest.mark.network
def test_judged_pairs_have_both_words():
    judged = words.judged_pairs(["simlex999"], ["old", "new", "smart", "dumb"], cache_dir())
    rows, scores = judged["simlex999"]
    assert rows.tolist() == [[0, 1], [2, 3]] and scores.tolist() == pytest.approx([1.58, 0.55])
    near_then_far = np.array([[[0.0, 0.0]], [[1.0, 0.0]], [[5.0, 0.0]], [[9.0, 0.0]]])
    assert words.rank_correlations(near_then_far, judged, VECTORS) == {
        "simlex999": pytest.approx(1)
    }


@pytest.mark.network
def test_held_out_texts_are_not_trained_on():
    options = {"num_texts": 0, "num_words": 10_000, "subsample": 1.0, "window": 2}
    texts = words.read(["rotten_tomatoes"], cache_dir(), **options)
    training, held_out = (np.sum(tokens >= 0) for tokens in (texts.training, texts.held_out))
    # Nothing is subsampled at 1, so that CBOW and the clouds have the same texts to the token.
    np.testing.assert_array_equal(texts.corpus.tokens, texts.training)
    np.testing.assert_allclose(held_out / (training + held_out), 0.05, atol=0.002)
    assert all((tokens[[0, 1]] == -1).any() for tokens in (texts.training, texts.held_out))
