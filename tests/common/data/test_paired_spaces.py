import numpy as np
import pytest

from common.data.packages import cache_dir
from common.errors import UserError
from common.spaces import paired_spaces


def write(path, words, d, seed):
    vectors = np.random.default_rng(seed).normal(size=(len(words), d)).astype(np.float32)
    lines = [
        f"{w} {' '.join(repr(float(x)) for x in v)}" for w, v in zip(words, vectors, strict=True)
    ]
    path.write_text("\n".join([f"{len(words)} {d}", *lines]) + "\n")
    return vectors


@pytest.fixture
def files(tmp_path):
    source = write(tmp_path / "a.vec", ["the", "cat", "of", "x1yz", "house", "tree"], 3, 0)
    target = write(tmp_path / "b.txt", ["tree", "house", "the", "dog", "x1yz", "of"], 2, 1)
    return tmp_path, source, target


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


@pytest.mark.network
def test_sentences_have_no_frequency():
    pair = paired_spaces.load(
        "wordllama_sentences", "minilm_sentences", num_words=20, cache=cache_dir()
    )
    assert pair.ranks is None and pair.take(slice(5)).ranks is None


def test_words_are_filtered_by_rank_and_length(files):
    folder, _, target = files
    pair = load(folder, num_words=1, drop_first=1, min_letters=4)
    assert pair.names == ["tree"]  # 'house' dropped first, 'x1yz' is not alphabetic
    np.testing.assert_array_equal(pair.target, target[:1])


@pytest.mark.network
def test_an_array_with_a_word_list_against_a_space_by_name(tmp_path):
    words = ["horse", "nosuchwordatall", "the", "king"]
    np.save(tmp_path / "mine.npy", np.arange(12.0).reshape(4, 3) + 1)
    (tmp_path / "mine.words").write_text("\n".join(words))
    pair = paired_spaces.load(
        str(tmp_path / "mine.npy"),
        "glove",
        num_words=3,
        cache=cache_dir(),
        source_words=str(tmp_path / "mine.words"),
    )
    assert pair.names == ["horse", "the", "king"]
    assert pair.target.shape == (3, 50)


def test_too_few_words_and_unknown_names_are_user_errors(files):
    folder, _, _ = files
    with pytest.raises(UserError, match="share 5 words"):
        load(folder, num_words=6)
    with pytest.raises(UserError, match="neither a file of vectors nor one of glove, glove100"):
        paired_spaces.load(str(folder / "a.vec"), "gloove", num_words=1, cache=folder)
