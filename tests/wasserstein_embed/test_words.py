"""Words: the draws, the loss; a run on real sentences, killed and resumed."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common import cli, train
from common.data import reviews
from common.data import words as spaces
from common.data.wheels import cache_dir
from common.errors import UserError
from common.workdir import Workdir
from configs.wasserstein_embed.words import get_config
from wasserstein_embed import word_embed, words_report
from wasserstein_embed.words import words

SMALL = {
    "dataset": "rotten_tomatoes",
    "num_texts": 600,
    "num_words": 300,
    "points": 3,
    "dimensions": (2,),
    "hidden": 8,
    "batch": 64,
    "updates": 5,
    "steps": 6,
    "chunk": 3,
    "compared_pairs": 500,
    "query_words": ("film", "nosuchword"),
    "figure_words": ("film", "funny"),
}
SETTINGS = word_embed.Settings("wasserstein", 3, 2, 8, 2, 500, 5, 1.0, 0.05, 20, 1e-2)


@pytest.fixture(autouse=True, scope="module")
def loaded_once():
    with pytest.MonkeyPatch.context() as patch:
        for module in (reviews, spaces):
            patch.setattr(module, "load", functools.cache(module.load))
        yield


def small(**changes):
    config = get_config()
    config.update_from_flattened_dict(SMALL | changes)
    return cli.settle(config)


def test_draws_are_words_near_each_other_and_negatives_by_share():
    tokens = jnp.asarray([-1, -1, 0, 1, 2, 3, 0, 1, -1, -1], jnp.int32)
    data = word_embed.Data(tokens, jnp.array([0.1, 0.2, 0.3, 1.0]), jax.random.key(0))
    word, near, other = map(np.asarray, word_embed.draw(data, jax.random.key(1), SETTINGS))
    text = tokens.tolist()
    allowed = {
        (text[i], text[i + o]) for i in range(2, 8) for o in (-2, -1, 1, 2) if 0 <= i + o < 10
    }
    drawn = set(zip(word.tolist(), near.tolist(), strict=True))
    assert drawn == allowed
    np.testing.assert_allclose(np.mean(other == 3), 0.7, atol=0.06)


def test_the_contrastive_loss_of_the_report():
    pull, push = word_embed.contrastive(jnp.array([0.5, 2.0]), jnp.array([0.25, 3.0]), 1.0)
    np.testing.assert_allclose(pull, [0.25, 4.0])
    np.testing.assert_allclose(push, [0.5625, 0.0])


def test_training_brings_context_together_and_parts_the_rest():
    # Words 0 to 3 stand together always, so do 4 to 7.
    rng = np.random.default_rng(0)
    texts = [np.append(rng.permutation(4) + 4 * (i % 2), [-1, -1]) for i in range(50)]
    data = word_embed.Data(
        jnp.asarray(np.concatenate([[-1, -1], *texts]), jnp.int32),
        jnp.arange(1, 9) / 8,
        jax.random.key(0),
    )
    settings = SETTINGS._replace(batch=64, updates=50, learning_rate=3e-2)
    state = word_embed.init(settings, 8, jax.random.key(1))
    step = jax.jit(word_embed.step, static_argnames="settings")
    for index in range(4):
        state, metrics = step(state, index, data, settings)
    x = word_embed.clouds(state.parameters, settings)
    first, second = np.triu_indices(8, 1)
    distance = np.asarray(word_embed.between(x, first, second, settings))
    together = (first < 4) == (second < 4)
    assert distance[together].max() < distance[~together].min()
    assert metrics["positive"] < metrics["negative"]


def test_the_words_at_a_mode_are_those_that_have_points_there():
    left, right = np.array([[0.0, 0.0]]), np.array([[5.0, 0.0]])
    x = np.stack([np.concatenate([left, right]), np.repeat(left, 2, 0), np.repeat(right, 2, 0)])
    modes = words_report.picture(x, ["both", "left", "right"], ("both", "none"))["both"]["modes"]
    assert {mode["words"][0] for mode in modes} == {"left", "right"} and len(modes) == 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    work = Workdir(tmp_path_factory.mktemp("whole"), {})
    return work.path, words(small(), work, cache_dir())


def test_a_run_leaves_rows_neighbours_and_figures(whole):
    path, table = whole
    rows = json.loads((path / "results.json").read_text())
    assert {(row["method"], row["dim"]) for row in rows} == {
        ("wasserstein_r2", 6),
        ("euclidean_6", 6),
    }
    assert all(row["metric"] == "spearman" and row["standin"] for row in rows)
    assert all(abs(row["mean"]) <= 1 for row in rows)
    assert "Pairs/s" in table
    assert "Nearest words, euclidean_6-seed0" in (path / "table.md").read_text()
    for name in ("training.png", "words-wasserstein_r2-seed0.png"):
        assert (path / name).stat().st_size > 0


def test_a_killed_run_goes_on_to_the_same_rows(whole, tmp_path, monkeypatch):
    expected, _ = whole
    chunk, calls = train._chunk, []

    def killed(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return chunk(*args)

    monkeypatch.setattr(train, "_chunk", killed)
    with pytest.raises(KeyboardInterrupt):
        words(small(), Workdir(tmp_path, {}), cache_dir())
    table = words(small(), Workdir(tmp_path, {}), cache_dir())
    assert "(resumed)" in table
    for name in ("results.json", "metrics.jsonl"):
        assert (tmp_path / name).read_text() == (expected / name).read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dataset": "amazon"}, "No set of texts is called 'amazon'"),
        ({"geometries": ("spherical",)}, "no geometry 'spherical'"),
        ({"reference": "elmo"}, "no reference space 'elmo'"),
        ({"window": 0}, "window is 0"),
        ({"epsilon": 0.0}, "epsilon is 0"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, change, says):
    with pytest.raises(UserError, match=says):
        words(
            small(**change), Workdir(tmp_path, {}), Path() if "dataset" in change else cache_dir()
        )
