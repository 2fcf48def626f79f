import json
from pathlib import Path

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.data.packages import PACKAGES, cache_dir, read_member
from common.data.sets import finnish

REFERENCE = Path(__file__).parents[2] / "fixtures" / "floret_reference.npz"


@pytest.mark.network
def test_vectors_agree_with_those_of_spacy():
    reference = np.load(REFERENCE, allow_pickle=False)
    table = finnish.load_table(cache_dir())
    vectors = finnish.floret(reference["words"].tolist(), table)
    np.testing.assert_allclose(vectors, reference["vectors"], rtol=1e-6, atol=1e-6)


def test_hashes_agree_with_published_values():
    # MurmurHash3_x64_128 of SMHasher's reference implementation, by its 16 bytes.
    fox = b"The quick brown fox jumps over the lazy dog"
    assert mmh3.hash_bytes(fox, 0).hex() == "6c1b07bc7bbc4be347939ac4a93c437a"
    assert mmh3.hash_bytes(b"", 0).hex() == "0" * 32
    # floret's own: spaCy's Vectors with the same seed.
    assert finnish.hashes("koira") == [3513432865, 1142742016]


@pytest.mark.network
def test_settings_are_those_of_the_package():
    settings = json.loads(read_member(PACKAGES["finnish"], cache_dir(), f"{finnish.MEMBER}.cfg"))
    assert (settings["minn"], settings["maxn"]) == finnish.LENGTHS
    assert (settings["hash_count"], settings["hash_seed"]) == (finnish.NUM_HASHES, finnish.SEED)
    assert (settings["bow"], settings["eow"]) == ("<", ">")
    assert finnish.load_table(cache_dir()).shape == (50_000, 300)


def test_features_are_characters_whatever_their_bytes():
    assert finnish.features("äiti") == ["<äiti>", "<äit", "äiti", "iti>", "<äiti", "äiti>"]
    assert finnish.features("jää") == ["<jää>", "<jää", "jää>", "<jää>"]
    assert finnish.features("a") == ["<a>"]


@given(st.lists(st.text(min_size=1, max_size=12), max_size=5), st.integers(1, 7))
def test_a_vector_is_the_mean_of_its_rows(words, num_rows):
    table = np.random.default_rng(0).standard_normal((num_rows, 3)).astype(np.float32)
    vectors = finnish.floret(words, table)
    assert vectors.shape == (len(words), 3) and vectors.dtype == np.float32
    for word, vector in zip(words, vectors, strict=True):
        rows = [h % num_rows for g in finnish.features(word) for h in finnish.hashes(g)]
        np.testing.assert_allclose(vector, table[rows].mean(0), atol=1e-5)


def test_the_vocabulary_is_frequent_words_and_translations():
    frequent = ["että", "00", "on", "naïve", "koira", "Åbo", "talo", "šakki", "ruusu"]
    pairs = [("chess", "šakki"), ("rose", "ruusunen")]
    assert finnish.vocabulary(frequent, pairs, 2) == ["että", "koira", "šakki"]


def test_a_translation_belongs_to_the_most_frequent_english_word():
    pairs = [("dog", "koira"), ("hound", "koira"), ("house", "huone"), ("house", "talo")]
    pairs += [("room", "huone"), ("rare", "hapero"), ("seldom", "harvoin")]
    english, words = ["house", "room", "dog", "hound", "rare"], ["koira", "talo", "huone"]
    assert finnish.one_to_one(pairs, english, words) == {"huone": "house", "koira": "dog"}
    assert finnish.one_to_one(pairs, english, ["talo", "huone"]) == {"huone": "house"}
    assert finnish.one_to_one(pairs, english, ["talo"]) == {"talo": "house"}
