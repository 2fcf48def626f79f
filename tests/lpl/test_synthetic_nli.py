import pytest

from lpl.synthetic_nli import drop_modifier, negate


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("it is an unusual film about the sea", "it is a film about the sea"),
        ("it is a charming old story of the sea", "it is an old story of the sea"),
        ("the plot is very funny indeed", "the plot is funny indeed"),
        ("the firm quickly sold the harbour", "the firm sold the harbour"),
        ("he told of a wondrous land beyond", "he told of a land beyond"),
    ],
)
def test_the_first_modifier_is_dropped(sentence, shorter):
    assert drop_modifier(sentence) == shorter


@pytest.mark.parametrize(
    "sentence",
    [
        "it is not a charming story of the sea",  # "it is not a story" does not follow
        "every old bridge was closed",  # nor does "every bridge was closed"
        "the former mayor was closed out",  # a former mayor is no mayor
        "the old and the new of here are one",  # no noun follows
        "he is only five years old",
        "is it a charming story ?",
        "land",
        "",
    ],
)
def test_no_modifier_is_dropped_if_the_result_need_not_follow(sentence):
    assert drop_modifier(sentence) is None


@pytest.mark.parametrize(
    ("sentence", "negated"),
    [
        ("the plot is funny", "the plot is not funny"),
        ("it's a film about the sea", "it's not a film about the sea"),
        ("prices have been falling", "prices have not been falling"),
        ("the bank will close the branch", "the bank will not close the branch"),
    ],
)
def test_the_main_verb_is_negated(sentence, negated):
    assert negate(sentence) == negated


@pytest.mark.parametrize(
    "sentence",
    [
        "the man who is here sold the harbour",  # in a clause about the man
        "analysts said it was late",  # what somebody says, not a fact
        "it may be that the plot is funny",  # it may also not be so
        "the plot is not funny",
        "the harbour was, however, sold",
        "the firm sold the harbour",
        "",
    ],
)
def test_no_verb_is_negated_if_the_result_need_not_contradict(sentence):
    assert negate(sentence) is None
