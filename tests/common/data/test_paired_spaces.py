import numpy as np
import pytest

from common.errors import UserError
from common.spaces import paired_spaces
from tests.faults.readers import vector_text


@pytest.fixture
def files(tmp_path):
    spaces = {
        "a.vec": ["the", "cat", "of", "x1yz", "house", "tree"],
        "b.txt": ["tree", "house", "the", "dog", "x1yz", "of"],
    }
    tables = [np.random.default_rng(d).normal(size=(6, d)).astype(np.float32) for d in (3, 2)]
    for (name, words), table in zip(spaces.items(), tables, strict=True):
        (tmp_path / name).write_bytes(vector_text(words, table, header=True))
    return tmp_path, *tables


def load(folder, **options):
    names = str(folder / "a.vec"), str(folder / "b.txt")
    return paired_spaces.load(*names, cache=folder, **options)


def test_shared_words_are_in_the_order_of_the_source(files):
    folder, source, target = files
    pair = load(folder, num_words=4)
    assert pair.names == ["the", "of", "x1yz", "house"]
    np.testing.assert_array_equal(pair.source, source[[0, 2, 3, 4]])
    np.testing.assert_array_equal(pair.target, target[[2, 5, 4, 1]])
    np.testing.assert_array_equal(pair.ranks, [[0, 2, 3, 4], [2, 5, 4, 1]])
    some = pair.take(slice(2))
    assert some.names == ["the", "of"]
    np.testing.assert_array_equal(some.ranks, [[0, 2], [2, 5]])


def test_words_are_filtered_by_rank_and_length(files):
    folder, _, target = files
    pair = load(folder, num_words=1, drop_first=1, min_letters=4)
    assert pair.names == ["tree"]  # 'house' dropped first, 'x1yz' is not alphabetic
    np.testing.assert_array_equal(pair.target, target[:1])


def test_an_array_with_a_word_list_is_paired_with_a_file(files):
    folder, *_, target = files
    np.save(folder / "mine.npy", np.arange(12.0).reshape(4, 3) + 1)
    (folder / "mine.words").write_text("dog\nnosuchword\nthe\ntree")
    mine, words, other = (str(folder / name) for name in ("mine.npy", "mine.words", "b.txt"))
    pair = paired_spaces.load(mine, other, num_words=3, cache=folder, source_words=words)
    assert pair.names == ["dog", "the", "tree"]
    np.testing.assert_array_equal(pair.target, target[[3, 2, 0]])


def test_too_few_words_and_unknown_names_are_user_errors(files):
    folder, _, _ = files
    with pytest.raises(UserError, match="share 5 words"):
        load(folder, num_words=6)
    with pytest.raises(UserError, match="neither a file of vectors nor one of glove, glove100"):
        paired_spaces.load(str(folder / "a.vec"), "gloove", num_words=1, cache=folder)
