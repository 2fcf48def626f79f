import pytest

from lpl.synthetic_nli import drop_modifier, negate

DROPPED = [  # (sentence, the sentence that follows from it)
    ("it is an unusual film about the sea", "it is a film about the sea"),
    ("it is a charming old story of the sea", "it is an old story of the sea"),
    ("the plot is very funny indeed", "the plot is funny indeed"),
    ("the firm quickly sold the harbour", "the firm sold the harbour"),
    ("he told of a wondrous land beyond", "he told of a land beyond"),
    ("it is not a charming story of the sea", None),  # "it is not a story" does not follow
    ("every old bridge was closed", None),  # nor does "every bridge was closed"
    ("the former mayor was closed out", None),  # a former mayor is no mayor
    ("the old and the new of here are one", None),  # no noun follows
    ("he is only five years old", None),
    ("is it a charming story ?", None),
    ("land", None),
    ("", None),
]
NEGATED = [  # (sentence, the sentence that contradicts it)
    ("the plot is funny", "the plot is not funny"),
    ("it's a film about the sea", "it's not a film about the sea"),
    ("prices have been falling", "prices have not been falling"),
    ("the bank will close the branch", "the bank will not close the branch"),
    ("the man who is here sold the harbour", None),  # in a clause about the man
    ("analysts said it was late", None),  # what somebody says, not a fact
    ("it may be that the plot is funny", None),  # it may also not be so
    ("the plot is not funny", None),
    ("the harbour was, however, sold", None),
    ("the firm sold the harbour", None),
    ("", None),
]


@pytest.mark.parametrize(("edit", "known"), [(drop_modifier, DROPPED), (negate, NEGATED)])
def test_sentences_are_edited_where_the_result_surely_follows_or_contradicts(edit, known):
    assert [(sentence, edit(sentence)) for sentence, _ in known] == known
