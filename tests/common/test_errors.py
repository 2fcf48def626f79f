from common.errors import UserError


def test_what_is_quoted_breaks_no_line_and_fills_no_screen():
    found = str(UserError("a.txt, line 1 holds 'x\n\x1b[2J" + "y" * 10_000 + "': remove it."))
    assert found.startswith("a.txt, line 1 holds 'x [2Jyyy") and found.endswith("y': remove it.")
    assert len(found) < 1_100 and found.isprintable()
