"""Words of other languages in the space of an encoder that knows them."""

import numpy as np

from common.data.sets import word_frequency
from common.encoders import texts
from common.spaces import foreign_words


def test_a_space_has_the_most_frequent_words_of_two_letters_or_more(monkeypatch, tmp_path):
    asked = []

    def encode(name, words, cache, *, max_pieces):
        asked.append((name, words))
        return np.ones((len(words), 512), np.float32)

    frequent = {"it": ["di", "e", "l'", "che", "2", "però", "cane"]}
    monkeypatch.setattr(word_frequency, "most_frequent", lambda name, cache: frequent[name])
    monkeypatch.setattr(texts, "encode", encode)
    monkeypatch.setattr(foreign_words, "NUM_WORDS", 3)
    space = foreign_words.load("italian", tmp_path)
    assert asked == [("use", ["di", "che", "però"])] and space.words == ["di", "che", "però"]
    assert space.vectors.shape == (3, 512)
