import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import dictionary
from common.errors import UserError

SENSES_A = [("s1", "bank"), ("s2", "bank"), ("s2", "shore"), ("s3", "cash"), ("s9", "lone")]
SENSES_B = [("s1", "banque"), ("s2", "rive"), ("s2", "bord"), ("s3", "banque"), ("s4", "bord")]


def test_translations_are_words_with_overlapping_senses():
    # Overlaps: bank / banque 1 of 3, bank / rive 1 of 2, bank / bord 1 of 3, shore / rive 1 of 1.
    expected = [
        ("bank", "rive"),
        ("bank", "banque"),
        ("bank", "bord"),
        ("cash", "banque"),
        ("shore", "rive"),
        ("shore", "bord"),
    ]
    pairs = dictionary.by_senses(SENSES_A, SENSES_B, 0.1)
    assert sorted(pairs) == sorted(expected)
    assert next(f for e, f in pairs if e == "bank") == "rive"
    assert dictionary.by_senses(SENSES_A, SENSES_B, 0.5) == [
        ("bank", "rive"),
        ("cash", "banque"),
        ("shore", "rive"),
        ("shore", "bord"),
    ]


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


def test_the_identity_dictionary():
    assert dictionary.load("same", cache_dir(), ["a", "b"]) == [("a", "a"), ("b", "b")]


def test_a_file_of_pairs(tmp_path):
    path = tmp_path / "en-it.txt"
    path.write_text("house casa\ncat\tgatto\n")
    assert dictionary.load(str(path), cache_dir()) == [("house", "casa"), ("cat", "gatto")]
    path.write_text("source_row target_row\n0 1\n")
    with pytest.raises(UserError, match=r"en-it\.txt has row numbers: give pairs of words"):
        dictionary.load(str(path), cache_dir())


def test_one_to_one_pairs_are_the_first_of_each_row():
    pairs = np.array([[5, 2], [5, 1], [3, 2], [3, 9], [4, 1], [5, 2]])
    assert dictionary.one_to_one(pairs).tolist() == [0, 3, 4]
    assert dictionary.one_to_one(pairs[:0]).tolist() == []
