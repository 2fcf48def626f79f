import numpy as np
import pytest

import isthmus
from common import alignment
from common.errors import UserError, check_choice, check_count, check_fraction


def test_a_sentence_has_no_control_characters_and_a_limited_length():
    text = str(UserError("a.txt, line 1 holds 'x\n\x1b[2J" + "y" * 10_000 + "': remove it."))
    assert text.startswith("a.txt, line 1 holds 'x [2Jyyy") and text.endswith("y': remove it.")
    assert len(text) < 1_100 and text.isprintable()


@pytest.mark.parametrize(
    "call",
    [
        alignment.fit("procrustes", np.eye(3), np.eye(3)[::-1]).save,
        alignment.load,
        lambda path: isthmus.encode(["a text"], path),
    ],
    ids=("save", "load", "encode"),
)
def test_a_remote_path_is_refused_in_python_too(call):
    with pytest.raises(UserError, match="'gs://bucket/x' is the address of remote storage"):
        call("gs://bucket/x")


def test_a_map_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    alignment.fit("procrustes", np.eye(3), np.eye(3)[::-1]).save("~/map.npz")
    assert (tmp_path / "map.npz").exists() and alignment.load("~/map.npz").source == "source"


SHARED = "shared is {}: choose a number from 0 to 1."


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_count("num_test", 3, 3, "texts", least=2), None),
        (lambda: check_count("num_test", 2, least=2), None),
        (lambda: check_count("num_test", 1, least=2), "num_test is 1: choose at least 2."),
        (
            lambda: check_count("num_test", 4_000, 3, "texts", least=2),
            "num_test is 4,000 of 3 texts: choose at least 2, at most 3.",
        ),
        (lambda: check_fraction("shared", 0.0), None),
        (lambda: check_fraction("shared", 1), None),
        (lambda: check_fraction("shared", 1.5), SHARED.format(1.5)),
        (lambda: check_fraction("shared", -0.1), SHARED.format(-0.1)),
        (lambda: check_fraction("shared", float("nan")), SHARED.format("nan")),
        (lambda: check_choice("split", "test", {"test": 1}), None),
        (
            lambda: check_choice("split", "train", ("test", "dev")),
            "There is no split 'train': choose one of test, dev.",
        ),
    ],
)
def test_a_number_or_a_name_is_one_of_those_that_there_are(check, sentence):
    if sentence is None:
        check()
        return
    with pytest.raises(UserError) as error:
        check()
    assert str(error.value) == sentence
