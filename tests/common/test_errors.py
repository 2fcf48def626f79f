from common.errors import UserError


def test_a_sentence_has_no_control_characters_and_a_limited_length():
    found = str(UserError("a.txt, line 1 holds 'x\n\x1b[2J" + "y" * 10_000 + "': remove it."))
    assert found.startswith("a.txt, line 1 holds 'x [2Jyyy") and found.endswith("y': remove it.")
    assert len(found) < 1_100 and found.isprintable()
