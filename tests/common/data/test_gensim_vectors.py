import sys
from types import SimpleNamespace

import numpy as np
import pytest

from common.data import gensim_vectors
from common.errors import UserError

WORDS = ["land", "sea", "bridge"]
VECTORS = np.arange(1.0, 7.0).reshape(3, 2)


class KeyedVectors:
    """Stands in for gensim's: keeps the old vector where a key comes again."""

    def __init__(self, vector_size, count, dtype):
        assert count == 0
        self.index_to_key, self.vectors = [], np.zeros((0, vector_size), dtype)

    def add_vectors(self, keys, weights):
        self.index_to_key += keys
        self.vectors = np.concatenate([self.vectors, weights.astype(self.vectors.dtype)])


@pytest.fixture
def gensim(monkeypatch):
    for name in ("gensim", "gensim.models"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(KeyedVectors=KeyedVectors))


@pytest.mark.parametrize("whole", [False, True])
def test_out_and_in_again(gensim, whole):
    keyed = gensim_vectors.to_gensim(WORDS, VECTORS)
    assert isinstance(keyed, KeyedVectors)
    space = gensim_vectors.from_gensim(SimpleNamespace(wv=keyed) if whole else keyed)
    assert space.words == WORDS
    np.testing.assert_array_equal(space.vectors, VECTORS)
    assert space.vectors.dtype == np.float32


def test_without_gensim(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(UserError, match=r"gensim can't be imported .*: pip install gensim"):
        gensim_vectors.to_gensim(WORDS, VECTORS)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (WORDS[:2], VECTORS, r"2 words and vectors of shape \(3, 2\)"),
        ([], VECTORS[:0], r"0 words and vectors of shape \(0, 2\)"),
        (WORDS, VECTORS[0], r"3 words and vectors of shape \(2,\)"),
        (WORDS, VECTORS.astype(str), "The vectors are of type <U"),
        (["land", 7, "sea"], VECTORS, "The key 7 is no word"),
        (["land", "", "sea"], VECTORS, "The key '' is no word"),
        (["land", "sea", "land"], VECTORS, "The word 'land' comes 2 times"),
        (WORDS, VECTORS * [[1], [0], [1]], "The vector of 'sea' holds zeros alone"),
        (
            WORDS,
            VECTORS * [[1], [1], [np.nan]],
            "The vector of 'bridge' holds a number that is NaN",
        ),
        (WORDS, VECTORS * 1e40, r"The vector of 'land' holds .* too large"),
    ],
)
def test_what_a_user_can_mend(gensim, words, vectors, message):
    with pytest.raises(UserError, match=message):
        gensim_vectors.to_gensim(words, vectors)
    with pytest.raises(UserError, match=message):
        gensim_vectors.from_gensim(SimpleNamespace(index_to_key=words, vectors=vectors))


def test_another_object():
    with pytest.raises(UserError, match="An object of type dict has no index_to_key"):
        gensim_vectors.from_gensim({"land": [1.0]})
