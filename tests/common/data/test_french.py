import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import french


def test_murmur_hash_agrees_with_published_values():
    # From spaCy's documentation.
    assert french.murmur64(b"coffee") == 3197928453018144401
    assert french.murmur64(b"apple") == 8566208034543834098


@pytest.mark.network
def test_french_words_are_in_the_order_of_frequency():
    words, vectors = french.load(cache_dir())
    assert words[:10] == [",", "de", "</s>", ".", "la", "et", "à", "le", "les", "des"]
    assert len(words) == len(set(words)) == 19_994
    assert vectors.shape == (19_994, 300) and vectors.dtype == np.float32
    assert np.isfinite(vectors).all() and (np.linalg.norm(vectors, axis=1) > 0).all()
    unit = {word: x / np.linalg.norm(x) for word, x in zip(words, vectors, strict=True)}
    assert unit["père"] @ unit["fils"] > 0.4 > unit["père"] @ unit["prix"]
