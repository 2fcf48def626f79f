import hashlib

import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import word_frequency
from common.data.sets.word_frequency import is_word
from common.encoders import minilm
from common.spaces import paired_spaces

pytestmark = pytest.mark.network


def test_words_are_in_the_order_of_wordfreq():
    spaces = [minilm.load(name, cache_dir()) for name in minilm.NAMES]
    words = spaces[0].words
    assert spaces[1].words == words
    assert len(words) == len(set(words)) == 20_000
    assert words[:5] == ["the", "and", "for", "that", "you"] and words[-1] == "eid"
    assert hashlib.sha256("\n".join(words).encode()).hexdigest().startswith("2b3cb658f2dec01f")
    frequent = filter(is_word, word_frequency.most_frequent("en", cache_dir()))
    assert words == [word for word, _ in zip(frequent, range(20_000), strict=False)]


# Sums of all numbers and of their absolute values. The vectors differ between machines by rounding,
# about 1e-7 each.
@pytest.mark.parametrize(
    ("name", "total", "absolute"),
    [("minilm", 9342.751, 305_091.27), ("minilm_input", 215.115, 353_797.72)],
)
def test_vectors_have_a_known_sum(name, total, absolute):
    vectors = minilm.load(name, cache_dir()).vectors
    assert vectors.shape == (20_000, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors.sum(dtype=np.float64), total, atol=0.05)
    np.testing.assert_allclose(np.abs(vectors).sum(dtype=np.float64), absolute, atol=0.5)


def test_sentence_vectors_have_norm_one():
    vectors = minilm.load("minilm", cache_dir()).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_a_space_is_built_from_packages_alone(packages_only):
    built, stored = (minilm.load("minilm_input", cache) for cache in (packages_only, cache_dir()))
    assert built.words == stored.words
    np.testing.assert_array_equal(built.vectors, stored.vectors)


def test_spaces_of_another_order_share_fewer_words():
    options = {"num_words": 16_324, "cache": cache_dir()}
    first, second = (
        paired_spaces.load(*names, **options)
        for names in (("glove", "minilm_input"), ("minilm_input", "glove"))
    )
    assert set(first.names) == set(second.names)
    assert first.names[:4] == ["the", "and", "for", "that"]
    assert first.names[4] == "was" and second.names[4] == "you"
