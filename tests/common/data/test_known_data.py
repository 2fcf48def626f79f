"""All words, texts and vectors that have a name, most of them built from their packages."""

import hashlib

import msgpack
import numpy as np
import pytest
from scipy.stats import spearmanr

from common.data.packages import cache_dir
from common.data.sets import (
    bbc,
    dictionary,
    french,
    reviews,
    word_frequency,
    word_similarity,
    word_vectors,
)
from common.errors import UserError
from common.linear import unit
from common.spaces import image_features, paired_spaces, sentences


def articles(name, cache):
    found = bbc.load(cache)
    return found.headlines + found.bodies, found.labels


def scored(name, cache):
    pairs, scores = word_similarity.load(name, cache)
    return list(map(" ".join, pairs)), scores


KINDS = {  # function of a name and the cache -> texts, and an array or None
    "space": paired_spaces.load_space,
    "frequency": lambda name, cache: (word_frequency.most_frequent(name, cache), None),
    "dictionary": lambda name, cache: (list(map(" ".join, dictionary.load(name, cache))), None),
    "similarity": scored,
    "reviews": reviews.load,
    "articles": articles,
    "sentences": lambda name, cache: sentences.load_texts(cache),
}
# Kind and name, number of texts, the first one's beginning, the SHA-256 of all, the array's sum.
KNOWN = [
    ("space", "glove", 20_000, "the", "4099095144a285a2", 1_207_162.84),
    ("space", "glove100", 50_000, "the", "03bba3d3575e0e3f", 4_634_949.22),
    ("space", "word2vec", 23_930, "for", "63749f13feb4e9d2", 743_622.852),
    ("space", "french", 19_994, ",", "d3aeee0afdf23ffe", 17_260_338.4),
    ("space", "finnish", 74_785, "että", "2d0ee2ffb5c47152", 62_764_174.6),
    ("space", "finnish_by_english", 17_425, "that", "80a94f8952440771", 13_774_013.6),
    ("space", "minilm", 20_000, "the", "2b3cb658f2dec01f", 686_177.540),
    ("space", "minilm_input", 20_000, "the", "2b3cb658f2dec01f", 779_814.740),
    ("frequency", "en", 321_180, "the", "888e21176dd8a03a", None),
    ("frequency", "fi", 734_205, "ja", "154acd99cc519ee1", None),
    ("dictionary", "wordnet", 18_179, "0 0", "40fba94bb103b60b", None),
    ("dictionary", "freedict", 90_538, "AA it", "c66145eded4a8572", None),
    ("dictionary", "freedict_german", 248_303, "A a", "58292b88541d8d3e", None),
    ("dictionary", "freedict_italian", 5_861, "ABC alfabeto", "ba97bbdf131d296c", None),
    ("dictionary", "freedict_spanish", 8_612, "ABC alfabeto", "a47dca14236f37fb", None),
    ("similarity", "simlex999", 999, "old new", "59b938e3b6f5c15f", 6_708.108_364),
    ("similarity", "wordsim353", 353, "love sex", "d6fff66a5f94bad7", 3_088.309_014),
    ("similarity", "men", 2_997, "stairs staircase", "fb40e27609226b32", 101_712.861),
    ("similarity", "mturk771", 770, "account explanation", "990214f24ac7c0ae", 3_420.391_796),
    ("similarity", "rare_words", 2_034, "squishing squirt", "353574bd47a9bd6b", 18_946.085_0),
    ("reviews", "imdb", 24_902, "I rented I AM CURIOUS-YELLOW", "0f0bcad585e36790", 21_819.367_0),
    ("reviews", "rotten_tomatoes", 8_530, "the rock is", "b7c058c03b473be1", 5_331.124_99),
    ("articles", "bbc", 4_114, "Ad sales boost Time", "338bca41352ba423", 6_649.443_58),
    ("sentences", "sentences", 131_072, "Glasgow's Franz", "20bf2f3cce9a80a3", 53_318.958_8),
]
LONG = ("minilm", "french", "finnish")  # to build: these are read as they are in the user's cache


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "count", "first", "checksum", "total"), KNOWN)
def test_what_has_a_name_is_what_its_package_holds(bare, kind, name, count, first, checksum, total):
    texts, array = KINDS[kind](name, cache_dir() if name in LONG else bare)
    assert len(texts) == count and texts[0].startswith(first)
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] == checksum
    if array is not None:
        rows = np.abs(array, dtype=float).reshape(len(array), -1)
        of_rows, of_columns = (np.linspace(1, 2, size) for size in rows.shape)  # weights
        np.testing.assert_allclose(of_rows @ rows @ of_columns, total, rtol=1e-6)


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
@pytest.mark.parametrize("name", PUBLISHED)
def test_rows_are_those_of_the_published_files(name):
    space = word_vectors.load(name, cache_dir())
    np.testing.assert_allclose(space.vectors[:2, :5], PUBLISHED[name], rtol=1e-5)


# Published for the whole of the Google News vectors: .44 and .69. Ours have 974 and 318 of the
# pairs; the standard error (1 - r^2) / sqrt(n) of a correlation over that many pairs is .026, .029.
@pytest.mark.network
@pytest.mark.parametrize(
    ("name", "published", "coverage"), [("simlex999", 0.44, 0.974), ("wordsim353", 0.69, 0.901)]
)
def test_word2vec_correlates_with_human_scores_as_published(name, published, coverage):
    words, vectors = word_vectors.load("word2vec", cache_dir())
    pairs, scores = word_similarity.load(name, cache_dir())
    rows = word_similarity.lookup(pairs, words)
    known = np.all(rows >= 0, axis=1)
    assert known.mean() == pytest.approx(coverage, abs=5e-4)
    x = unit(vectors)[rows[known]]
    correlation = spearmanr(np.sum(x[:, 0] * x[:, 1], axis=1), scores[known])[0]
    assert correlation == pytest.approx(published, abs=0.025)


NO_IMAGES = np.zeros((0, 2, 2, 3), np.uint8)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda cache: paired_spaces.load_space("suomi", cache), "nor one of .*glove, .*, finnish"),
        (lambda cache: word_frequency.most_frequent("xx", cache), "'xx': choose one of en, fi"),
        (lambda cache: word_similarity.load("simlex", cache), "'simlex': choose one of simlex999,"),
        (lambda cache: reviews.load("amazon", cache), "'amazon': choose one of imdb, rotten"),
        (lambda cache: sentences.load("sentences", cache), "'sentences': choose one of minilm_sen"),
        (lambda cache: dictionary.load("none", cache), "file of word pairs nor one of wordnet, fr"),
        (lambda cache: image_features.encode("no", NO_IMAGES, cache), "no encoder 'no': choose"),
    ],
)
def test_an_unknown_name_is_a_user_error(tmp_path, load, message):
    with pytest.raises(UserError, match=message):
        load(tmp_path)


def test_lists_of_equal_frequency_follow_each_other():
    content = msgpack.packb([word_frequency.HEADER, [], ["the"], [], ["of", "to"]])
    assert word_frequency.read_cbpack(content) == ["the", "of", "to"]
    with pytest.raises(ValueError, match="not the header"):
        word_frequency.read_cbpack(msgpack.packb([{"format": "cB", "version": 2}, ["the"]]))


def test_a_word_has_three_lower_case_ascii_letters_or_more():
    tokens = ["cat", "at", "Cat", "caté", "it's", ""]
    assert list(filter(word_frequency.is_word, tokens)) == ["cat"]


def test_rows_of_the_json_file_are_found_between_those_of_other_tokens(tmp_path, monkeypatch):
    content = rb"""{"dimensions":100,"words":["the","a","\"cat\":[1]","dog"],"vectors":{
        "the":[ROW],"a":[ROW],"\"cat\":[1]":[ROW],"dog":[ROW],"it's":[ROW]}}"""
    row = ",".join(map(str, [*range(-3, 97), 1.5e-7, 3])).encode()
    content = content.replace(b"\n        ", b"").replace(b"ROW", row)
    monkeypatch.setattr(word_vectors, "read_member", lambda *_: content)
    words, vectors = word_vectors.load("glove100", tmp_path)
    assert words == ["the", "dog"]
    np.testing.assert_array_equal(vectors, [np.arange(-3, 97)] * 2)


def test_murmur_hash_agrees_with_published_values():
    # From spaCy's documentation.
    assert french.murmur64(b"coffee") == 3197928453018144401
    assert french.murmur64(b"apple") == 8566208034543834098


def test_words_are_looked_up_in_a_vocabulary():
    rows = word_similarity.lookup([("cat", "dog"), ("dog", "fox"), ("ant", "ox")], ["dog", "cat"])
    np.testing.assert_array_equal(rows, [[1, 0], [0, -1], [-1, -1]])
