"""Pretrained embeddings of a text's words; training is in test_main.py."""

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


def load(name, folder):
    corpus = Corpus(WORDS, np.full(4, 0.25), np.arange(4))
    text = embeddings.Text(corpus, 1, np.zeros(2), np.array([True, False]))
    return embeddings.load([name], {}, text, Workdir(folder, {}), cache_dir())[name]


@pytest.mark.network
@pytest.mark.parametrize("name", ["glove", "glove100", "word2vec", "minilm_input"])
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
