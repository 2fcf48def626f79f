import numpy as np

from common.data.sets import reviews


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
