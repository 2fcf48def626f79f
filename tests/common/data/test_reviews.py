import numpy as np
import pytest

from common.data.packages import cache_dir
from common.data.sets import reviews
from common.errors import UserError


@pytest.mark.network
@pytest.mark.parametrize(("name", "count"), [("imdb", 24_902), ("rotten_tomatoes", 8_530)])
def test_texts_are_clean_and_distinct_and_classes_balanced(name, count):
    data = reviews.load(name, cache_dir())
    assert len(data.texts) == len(set(data.texts)) == len(data.labels) == count
    assert set(data.labels) == {0, 1} and abs(data.labels.mean() - 0.5) < 0.002
    assert all(text == text.strip() and "<br" not in text and text for text in data.texts)


@pytest.mark.network
def test_texts_have_their_own_labels():
    imdb, tomatoes = (reviews.load(name, cache_dir()) for name in reviews.SOURCES)
    assert imdb.texts[0].startswith("I rented I AM CURIOUS-YELLOW") and imdb.labels[0] == 0
    assert tomatoes.texts[0].startswith("the rock is destined") and tomatoes.labels[0] == 1
    assert tomatoes.texts[2] == "effective but too-tepid biopic"


def test_interleaved_texts_alternate_between_classes():
    texts = reviews.LabelledTexts(["a", "b", "c", "d", "e"], np.array([0, 0, 1, 1, 1]))
    interleaved = texts.interleaved()
    assert interleaved.texts == ["a", "c", "b", "d", "e"]
    assert interleaved.labels.tolist() == [0, 1, 0, 1, 1]


def test_marks_out_of_ten_become_stars_and_leave_the_text():
    texts = [
        "Bad. 1/10",
        "7.5 out of 10, good",
        "A 9 /10!",
        "0/10",
        "11/10",
        "3/10 or 4/10",
        "9/11",
    ]
    rated = reviews.with_stars(texts)
    assert rated.texts == ["Bad.", ", good", "A !", ""]
    assert rated.labels.tolist() == [1, 4, 5, 1]


def test_an_unknown_name_is_a_user_error():
    with pytest.raises(UserError, match="'amazon': choose one of imdb, rotten_tomatoes"):
        reviews.load("amazon", cache_dir())
