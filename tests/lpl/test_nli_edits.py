import pytest

from lpl.nli_edits import drop_modifier, negate


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
def test_dropping_a_modifier(sentence, shorter):
    assert drop_modifier(sentence) == shorter


@pytest.mark.parametrize(
    "sentence",
    [
        "it is not a charming story of the sea",  # 'not a story' does not follow
        "every old bridge was closed",  # nor 'every bridge'
        "the former mayor was closed out",  # a former mayor is none
        "the old and the new of here are one",  # no noun beside it
        "he is only five years old",
        "is it a charming story ?",
        "land",
        "",
    ],
)
def test_where_dropping_need_not_entail(sentence):
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
def test_negating(sentence, negated):
    assert negate(sentence) == negated


@pytest.mark.parametrize(
    "sentence",
    [
        "the man who is here sold the harbour",  # said of the man
        "analysts said it was late",  # what somebody says
        "it may be that the plot is funny",  # both can hold
        "the plot is not funny",
        "the harbour was, however, sold",
        "the firm sold the harbour",
        "",
    ],
)
def test_where_a_not_need_not_contradict(sentence):
    assert negate(sentence) is None
