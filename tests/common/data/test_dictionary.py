"""Bilingual dictionaries, and the Finnish words that one of them translates."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.data.packages import cache_dir
from common.data.sets import dictionary, finnish, freedict
from common.errors import UserError

REFERENCE = Path(__file__).parents[2] / "fixtures" / "floret_reference.npz"

SENSES_A = [("s1", "bank"), ("s2", "bank"), ("s2", "shore"), ("s3", "cash"), ("s9", "lone")]
SENSES_B = [("s1", "banque"), ("s2", "rive"), ("s2", "bord"), ("s3", "banque"), ("s4", "bord")]


def test_translations_are_words_with_overlapping_senses():
    # Overlaps: bank / banque 1 of 3, bank / rive 1 of 2, bank / bord 1 of 3, shore / rive 1 of 1.
    best = {("bank", "rive"), ("cash", "banque"), ("shore", "rive"), ("shore", "bord")}
    pairs = dictionary.by_senses(SENSES_A, SENSES_B, 0.1)
    assert sorted(pairs) == sorted(best | {("bank", "banque"), ("bank", "bord")})
    assert next(f for e, f in pairs if e == "bank") == "rive"
    assert set(dictionary.by_senses(SENSES_A, SENSES_B, 0.5)) == best


def test_lookup_returns_known_pairs_and_counts_the_others():
    pairs = [("a", "x"), ("a", "y"), ("b", "z"), ("c", "x"), ("a", "x"), ("d", "nowhere")]
    known = dictionary.lookup(pairs, ["b", "a", "d"], ["y", "x"])
    np.testing.assert_array_equal(known.pairs, [[1, 1], [1, 0]])
    assert (known.num_missing, known.num_source_words, known.num_covered_words) == (3, 4, 1)
    with pytest.raises(UserError, match=r"None of the 1 pairs .* \(the first is 'x', 'a'\)"):
        dictionary.lookup([("x", "a")], ["a"], ["x"])


def test_the_parts_of_a_split_share_no_source_word():
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 60, (150, 2)), axis=0).astype(np.int32)
    parts = dictionary.split(pairs, 50, 20, np.random.default_rng(1))
    assert len(parts.train) == 50 and len(parts.validation) == 20
    words = [set(part[:, 0].tolist()) for part in parts]
    assert not words[0] & words[1] and not words[0] & words[2] and not words[1] & words[2]
    everything = {tuple(pair) for pair in pairs.tolist()}
    assert all({tuple(pair) for pair in part.tolist()} <= everything for part in parts)
    again = dictionary.split(pairs, 50, 20, np.random.default_rng(1))
    other = dictionary.split(pairs, 50, 20, np.random.default_rng(2))
    np.testing.assert_array_equal(parts.test, again.test)
    assert not np.array_equal(parts.train, other.train)
    np.testing.assert_array_equal(parts.validation, other.validation)  # of any random seed
    with pytest.raises(UserError, match="too few for 140 to train on"):
        dictionary.split(pairs, 140, 20, rng)


def test_gold_sets_hold_every_target_of_a_source_word():
    queries, gold = dictionary.gold_sets(np.array([[5, 2], [3, 9], [5, 1], [5, 7]]))
    np.testing.assert_array_equal(queries, [3, 5])
    np.testing.assert_array_equal(gold, [[9, -1, -1], [2, 1, 7]])


def test_a_file_of_pairs_and_each_word_with_itself(tmp_path):
    path = tmp_path / "en-it.txt"
    path.write_text("house casa\ncat\tgatto\n")
    assert dictionary.load(str(path), tmp_path) == [("house", "casa"), ("cat", "gatto")]
    path.write_text("source_row target_row\n0 1\n")
    with pytest.raises(UserError, match=r"en-it\.txt has row numbers: give pairs of words"):
        dictionary.load(str(path), tmp_path)
    assert dictionary.load("same", tmp_path, ["a", "b"]) == [("a", "a"), ("b", "b")]


def test_one_to_one_pairs_are_the_first_of_each_row():
    pairs = np.array([[5, 2], [5, 1], [3, 2], [3, 9], [4, 1], [5, 2]])
    assert dictionary.one_to_one(pairs).tolist() == [0, 3, 4]
    assert dictionary.one_to_one(pairs[:0]).tolist() == []


DOG = """dog //dɒɡ// /[dɔɡ]/ <n>
1. koira 2.
animal
 3.
male canine
2. konna, koira, ruma ämmä
morally reprehensible person
"""


def test_the_senses_of_each_translation_are_counted():
    assert freedict.read_entry(DOG) == Counter(
        {("dog", "koira"): 3, ("dog", "konna"): 1, ("dog", "ruma ämmä"): 1}
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("water <v>\nkastella, juottaa\nto give water\n", ["kastella", "juottaa"]),
        (
            "above all /əˌbʌv ˈɔːl/\nennen kaikkea, ylipäätänsä\nof prime\n",
            ["ennen kaikkea", "ylipäätänsä"],
        ),
        ("2 Chronicles <pn>\n2. Aik., Toinen aikakirja\nbook\n", ["2. Aik.", "Toinen aikakirja"]),
        ("ten <n>\nkymmenen\n2. of the tens\n", ["kymmenen"]),  # a definition with a number
        ("able //ə.bl̩// <suffix>\n1. tava 2.\nable to be done\n", []),
        ("a <symbol>\na\nan are\n", []),
        ("alone <adj>", []),
        ("", []),
    ],
)
def test_odd_entries(entry, expected):
    assert {translation for _, translation in freedict.read_entry(entry)} == set(expected)


def test_german_translations_lose_their_marks_and_capitals():
    entry = "bugs /bʌɡz/ <n>\nKäfer <pl> [zool.], Wanzen <pl>, kleine Tiere\n see: {Bug}\n"
    found = freedict.read_entry(freedict.without_marks(entry))
    assert {translation for _, translation in found} == {"käfer", "wanzen", "kleine tiere"}


def test_entries_are_found_by_their_offsets_in_base_64():
    text = b"x" * 70 + "äiti\n".encode() + DOG.encode()
    index = "00databaseinfo\tA\tB\nmother\tBG\tG\ndog\tBM\tB5\n"  # 64 + 57 bytes
    assert list(freedict.entries(text, index)) == ["äiti\n", DOG]


@pytest.mark.parametrize("line", ["dog\tA\tE", "dog\tA", "dog", "dog\tA\t-", "dog\tA\tB\tC"])
def test_a_damaged_index_is_an_error(line):
    with pytest.raises(ValueError):
        list(freedict.entries(b"abc", line))


@pytest.mark.network
def test_vectors_agree_with_those_of_spacy():
    reference = np.load(REFERENCE, allow_pickle=False)
    table = finnish.load_table(cache_dir())
    vectors = finnish.floret(reference["words"].tolist(), table)
    np.testing.assert_allclose(vectors, reference["vectors"], rtol=1e-6, atol=1e-6)


def test_hashes_are_those_of_floret():
    # By spaCy's Vectors with the same seed.
    assert finnish.hashes("koira") == [3513432865, 1142742016]


def test_features_are_characters_whatever_their_bytes():
    assert finnish.features("äiti") == ["<äiti>", "<äit", "äiti", "iti>", "<äiti", "äiti>"]
    assert finnish.features("jää") == ["<jää>", "<jää", "jää>", "<jää>"]
    assert finnish.features("a") == ["<a>"]


@settings(max_examples=30)
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
