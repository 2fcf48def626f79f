"""Embeddings of a text's words by name, and the words that two of them share."""

from importlib import import_module

import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import reviews
from common.data.sets.corpus import Corpus
from common.data.space import Space
from common.errors import UserError
from common.run.workdir import Workdir
from common.spaces import paired_spaces
from embed_match import embeddings

WORDS = ["film", "of", "nosuchword", "music"]
CORPUS = Corpus(WORDS, np.full(4, 0.25), np.arange(4))
TEXT = embeddings.Text(CORPUS, 1, np.zeros(2, int), np.array([True, False]))


def load(name, folder):
    return embeddings.load([name], {}, TEXT, Workdir(folder, {}), cache_dir())[name]


@pytest.mark.network
@pytest.mark.parametrize("name", ["glove", "word2vec"])
def test_a_space_by_name_embeds_the_words_that_it_has(name, tmp_path):
    embedding = load(name, tmp_path)
    np.testing.assert_array_equal(embedding.known, [True, False, False, True])
    space = paired_spaces.load_space(name, cache_dir())
    for row, word in enumerate(WORDS):
        expected = space.vectors[space.words.index(word)] if word in space.words else 0
        np.testing.assert_array_equal(embedding.vectors[row], expected)


@pytest.mark.network
@pytest.mark.parametrize("name", ["correlate", "curve", "ensemble", "match"])
def test_a_config_asks_for_as_many_texts_as_there_are(name):
    """Its quick form, which takes fewer, would not tell."""
    values = import_module(f"configs.embed_match.{name}").get_config()
    assert values.num_texts == len(reviews.load(values.dataset, cache_dir()).labels)


def test_a_space_without_any_of_the_words_is_a_user_error(tmp_path, monkeypatch):
    images = Space(["mnist/0", "mnist/1"], np.eye(2))
    monkeypatch.setattr(paired_spaces, "load_space", lambda name, cache: images)
    with pytest.raises(UserError, match="'glove' has no word of the texts: choose a space of"):
        load("glove", tmp_path)


def test_embeddings_are_compared_on_the_words_of_some_ranks_that_both_have():
    vectors = np.arange(6.0)[:, None]
    x, y = (embeddings.Embedding(vectors, np.arange(6) != missing, 1.0) for missing in (1, 4))
    for ranks, expected in (("", [0, 2, 3, 5]), ("2-5", [2, 3])):
        for rows in embeddings.in_common({"x": x, "y": y}, "x", "y", ranks):
            np.testing.assert_array_equal(rows[:, 0], expected)
