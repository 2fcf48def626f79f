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


def test_a_choice_is_one_of_those_that_there_are():
    check_choice("split", "test", {"test": 1, "validation": 2})
    with pytest.raises(UserError, match="There is no split 'train': choose one of test, dev"):
        check_choice("split", "train", ("test", "dev"))


@pytest.mark.parametrize(
    ("count", "most", "sentence"),
    [
        (3, 3, None),
        (2, None, None),
        (1, None, "num_test is 1: choose at least 2."),
        (1, 3, "num_test is 1 of 3 texts: choose at least 2, at most 3."),
        (4_000, 3, "num_test is 4,000 of 3 texts: choose at least 2, at most 3."),
    ],
)
def test_a_number_of_things_is_no_more_than_there_are(count, most, sentence):
    if sentence is None:
        check_count("num_test", count, most, "texts", least=2)
        return
    with pytest.raises(UserError) as error:
        check_count("num_test", count, most, "texts", least=2)
    assert str(error.value) == sentence


@pytest.mark.parametrize("value", [0.0, 0.5, 1])
def test_a_fraction_is_accepted(value):
    check_fraction("shared", value)


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_what_is_no_fraction_is_refused(value):
    with pytest.raises(UserError) as error:
        check_fraction("shared", value)
    assert str(error.value) == f"shared is {value:g}: choose a number from 0 to 1."
