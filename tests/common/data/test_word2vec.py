import numpy as np

from common.data import english, paired_spaces, word2vec
from common.data.packages import cache_dir


def test_words_are_in_word2vecs_own_order_of_frequency():
    words, vectors = word2vec.load(cache_dir())
    assert words[:6] == ["for", "that", "with", "said", "was", "the"]
    assert len(words) == len(set(words)) == 23_930 and all(map(english.is_word, words))
    assert vectors.shape == (23_930, 300) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors.sum(dtype=np.float64), -6880.892, atol=1e-2)
    row = {word: x for word, x in zip(words, vectors, strict=True)}
    assert row["king"] @ row["queen"] > 0.6 > 0.1 > row["king"] @ row["carrot"]


def test_a_pair_of_independent_spaces_is_in_the_order_of_its_source():
    options = {"num_words": 14_689, "cache": cache_dir()}  # all words that both have
    names, source, target = paired_spaces.load("glove", "word2vec", **options)
    assert names[:3] == ["the", "for", "that"] and (source.shape[1], target.shape[1]) == (50, 300)
    assert paired_spaces.load("word2vec", "glove", **options).names[:3] == ["for", "that", "with"]
