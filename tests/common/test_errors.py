from functools import partial

import numpy as np
import pytest

import isthmus
from common import alignment
from common.errors import UserError, check_choice, check_count, check_fraction


def test_a_sentence_has_no_control_characters_and_a_limited_length():
    text = str(UserError("a.txt, line 1 holds 'x\n\x1b[2J" + "y" * 10_000 + "': remove it."))
    assert text.startswith("a.txt, line 1 holds 'x [2Jyyy") and text.endswith("y': remove it.")
    assert len(text) < 1_100 and text.isprintable()


def test_paths_in_python_are_those_of_this_machine_and_its_home_folder(monkeypatch, tmp_path):
    aligner = alignment.fit("procrustes", np.eye(3), np.eye(3)[::-1])
    for call in (aligner.save, alignment.load, lambda path: isthmus.encode(["a text"], path)):
        with pytest.raises(UserError, match="'gs://bucket/x' is the address of remote storage"):
            call("gs://bucket/x")
    monkeypatch.setenv("HOME", str(tmp_path))
    aligner.save("~/map.npz")
    assert (tmp_path / "map.npz").exists() and alignment.load("~/map.npz").source == "source"


@pytest.mark.parametrize(
    ("check", "arguments", "sentence"),
    [
        (partial(check_count, least=2), ("n", 1), "n is 1: choose at least 2."),
        (check_count, ("n", 0, 3, "texts"), "n is 0 of 3 texts: choose at least 1, at most 3."),
        (check_count, ("n", 4_000, 3, "x"), "n is 4,000 of 3 x: choose at least 1, at most 3."),
        (check_fraction, ("share", 1.5), "share is 1.5: choose a number from 0 to 1."),
        (check_fraction, ("share", float("nan")), "share is nan: choose a number from 0 to 1."),
        (check_choice, ("x", "a", ("b", "c")), "There is no x 'a': choose one of b, c."),
    ],
)
def test_a_number_or_a_name_is_one_of_those_that_there_are(check, arguments, sentence):
    check_count("n", 3, 3, "texts")
    check_fraction("share", 0.0)
    check_choice("x", "a", {"a": 1})
    with pytest.raises(UserError) as error:
        check(*arguments)
    assert str(error.value) == sentence
