import numpy as np
import pytest

from common.data import english
from common.data.packages import cache_dir
from common.errors import UserError

# The first rows of glove.6B.50d.txt as published.
THE = [0.418, 0.24968, -0.41242, 0.1217, 0.34527]
AND = [0.26818, 0.14346, -0.27877, 0.016257, 0.11384]


def test_glove_words_are_in_the_order_of_frequency():
    space = english.load("glove", 1000, cache_dir())
    assert space.words[:5] == ["the", "and", "for", "that", "was"]
    assert all(len(w) >= 3 and w.isascii() and w.isalpha() for w in space.words)
    assert space.vectors.shape == (1000, 50) and space.vectors.dtype == np.float32
    np.testing.assert_allclose(space.vectors[:2, :5], [THE, AND], rtol=1e-5)


def test_rows_are_the_same_words_in_every_space():
    spaces = {name: english.load(name, 20_000, cache_dir()) for name in english.SPACES}
    assert len(set(spaces["glove"].words)) == 20_000
    for name, dimension in english.SPACES.items():
        assert spaces[name].words == spaces["glove"].words
        assert spaces[name].vectors.shape == (20_000, dimension)
        few = english.load(name, 7, cache_dir())
        assert few.words == spaces[name].words[:7]
        np.testing.assert_array_equal(few.vectors, spaces[name].vectors[:7])
    lengths = np.linalg.norm(spaces["minilm"].vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_an_unknown_name_is_a_user_error():
    with pytest.raises(UserError, match="'fasttext': choose one of minilm, minilm_input, glove"):
        english.load("fasttext", 10, cache_dir())
