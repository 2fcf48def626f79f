import numpy as np
import pytest

from common.data import french
from common.data.pairs import space
from common.data.wheels import cache_dir
from common.errors import UserError


def test_murmur_hash_is_that_of_the_published_index():
    # What spaCy documents for these strings, the empty one apart.
    assert french.murmur64(b"coffee") == 3197928453018144401
    assert french.murmur64(b"apple") == 8566208034543834098


def test_french_words_in_the_order_of_frequency():
    words, vectors = french.load(1_000, cache_dir())
    assert words[:10] == [",", "de", "</s>", ".", "la", "et", "à", "le", "les", "des"]
    assert vectors.shape == (1_000, 300) and vectors.dtype == np.float32
    row = {word: vectors[i] / np.linalg.norm(vectors[i]) for i, word in enumerate(words)}
    assert row["père"] @ row["fils"] > 0.4 > row["père"] @ row["prix"]


def test_the_whole_space_by_its_name():
    words, vectors = space("french", "", cache_dir(), 10)
    assert len(words) == len(set(words)) == len(vectors) == french.NUM_WORDS
    assert np.isfinite(vectors).all() and (np.linalg.norm(vectors, axis=1) > 0).all()


@pytest.mark.parametrize("num_words", [0, 20_000])
def test_num_words_out_of_range(num_words):
    with pytest.raises(UserError, match=f"num_words is {num_words}; .* 1 to 19994"):
        french.load(num_words, cache_dir())
