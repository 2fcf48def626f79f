"""Words: sampling and loss; a run on real sentences, killed and resumed."""

import functools
import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.data import paired_spaces, reviews
from common.data.packages import cache_dir
from common.errors import UserError
from common.settings import settings
from common.workdir import Workdir
from configs.wasserstein_embed.words import get_config
from wasserstein_embed import word_embed, words
from wasserstein_embed.experiments import word_embeddings

SMALL = {
    "dataset": "rotten_tomatoes",
    "num_texts": 600,
    "num_words": 300,
    "num_points": 3,
    "dimensions": (2,),
    "hidden_size": 8,
    "batch_size": 64,
    "updates_per_step": 5,
    "steps": 6,
    "checkpoint_every": 3,
    "num_compared_pairs": 500,
    "query_words": ("film", "nosuchword"),
    "figure_words": ("film", "funny"),
}
CLOUD = {"geometry": "wasserstein", "num_points": 3, "dimension": 2, "hidden_size": 8}
SETTINGS = settings(word_embed.Settings, get_config(), **CLOUD, batch_size=500)


@pytest.fixture(autouse=True, scope="module")
def load_once():
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((reviews, "load"), (paired_spaces, "load_space")):
            patch.setattr(module, name, functools.cache(getattr(module, name)))
        yield


def run(folder, **changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return word_embeddings(config, Workdir(folder, {}), cache_dir())


def test_samples_are_words_of_a_window_and_negatives_by_probability():
    tokens = jnp.asarray([-1, -1, 0, 1, 2, 3, 0, 1, -1, -1], jnp.int32)
    data = word_embed.Data(tokens, jnp.array([0.1, 0.2, 0.3, 1.0]), jax.random.key(0))
    word, context, other = map(np.asarray, word_embed.sample(data, jax.random.key(1), SETTINGS))
    text = tokens.tolist()
    allowed = {(text[i], text[i + o]) for i in range(2, 8) for o in (-2, -1, 1, 2)}
    assert set(zip(word.tolist(), context.tolist(), strict=True)) == allowed
    np.testing.assert_allclose(np.mean(other == 3), 0.7, atol=0.06)


def test_the_contrastive_losses_are_squares():
    distances = jnp.array([0.5, 2.0]), jnp.array([0.25, 3.0])
    attract, repel = word_embed.contrastive_losses(*distances, 1.0)
    np.testing.assert_allclose(attract, [0.25, 4.0])
    np.testing.assert_allclose(repel, [0.5625, 0.0])


def test_training_separates_words_that_never_share_a_context():
    # Words 0 to 3 always occur together, and so do words 4 to 7.
    rng = np.random.default_rng(0)
    texts = [np.append(rng.permutation(4) + 4 * (i % 2), [-1, -1]) for i in range(50)]
    tokens = jnp.asarray(np.concatenate([[-1, -1], *texts]), jnp.int32)
    data = word_embed.Data(tokens, jnp.arange(1, 9) / 8, jax.random.key(0))
    chosen = replace(SETTINGS, batch_size=64, learning_rate=3e-2)
    state = word_embed.init(chosen, 8, jax.random.key(1))
    step = jax.jit(word_embed.step, static_argnames="settings")
    for index in range(4):
        state, metrics = step(state, index, data, chosen)
    x = word_embed.embed(*state.parameters, chosen)
    first, second = np.triu_indices(8, 1)
    distance = np.asarray(word_embed.pair_distances(x[first], x[second], chosen))
    together = (first < 4) == (second < 4)
    assert distance[together].max() < distance[~together].min()
    assert metrics["positive"] < metrics["negative"]


def test_words_at_a_mode_have_points_there():
    left, right = np.array([[0.0, 0.0]]), np.array([[5.0, 0.0]])
    x = np.stack([np.concatenate([left, right]), np.repeat(left, 2, 0), np.repeat(right, 2, 0)])
    modes = words.densities(x, ["both", "left", "right"], ("both", "none"))["both"]["modes"]
    assert {mode["words"][0] for mode in modes} == {"left", "right"} and len(modes) == 2


@pytest.mark.parametrize("name", ["glove", "glove100", "word2vec", "minilm"])
def test_gold_similarities_are_cosines_of_any_word_space(name):
    vocabulary = ["film", "nosuchword", "music", "actor"]
    gold = words.gold_similarities(name, vocabulary, 50, cache_dir())
    assert set(gold.first) == set(gold.second) == {0, 2, 3}
    space = paired_spaces.load_space(name, cache_dir())
    for first, second, cosine in zip(*gold, strict=True):
        x, y = (space.vectors[space.words.index(vocabulary[i])] for i in (first, second))
        expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        np.testing.assert_allclose(cosine, expected, atol=1e-6)


def test_a_run_writes_rows_neighbours_and_figures(tmp_path):
    table = run(tmp_path)
    rows = json.loads((tmp_path / "results.json").read_text())
    methods = [(row["method"], row["dim"]) for row in rows]
    assert methods == [("wasserstein_r2", 6), ("euclidean_6", 6)]
    assert all(row["metric"] == "spearman" and row["proxy"] for row in rows)
    assert all(abs(row["mean"]) <= 1 for row in rows)
    assert "**Nearest words, euclidean_6-seed0**" in table
    assert (tmp_path / "words-wasserstein_r2-seed0.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "amazon"}, "'amazon'"),
        ({"geometries": ("spherical",)}, "no geometry 'spherical'"),
        ({"reference_space": "elmo"}, "'elmo'"),
        ({"reference_space": "no_words.npz"}, "'no_words.npz' has 0 words of the texts"),
    ],
)
def test_mistakes_are_user_errors(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    np.savez("no_words.npz", vectors=np.eye(3))
    with pytest.raises(UserError, match=message):
        run(tmp_path, **change)
