"""Files of pairs; tests/anchor_opt/test_align.py has those with headers and of row numbers."""

import pytest

from common.data.readers import pair_files
from common.errors import UserError


def test_word_pairs_are_separated_by_a_tab_or_spaces(tmp_path):
    text = "dog cane\ncat   gatto\nNew York\tNuova York\r\n\n dog\tcagna \n1\u00a0000 mille\n"
    (tmp_path / "d.txt").write_bytes(text.encode())
    assert pair_files.read(tmp_path / "d.txt").entries == [
        ("dog", "cane"),
        ("cat", "gatto"),
        ("New York", "Nuova York"),
        ("dog", "cagna"),
        ("1\u00a0000", "mille"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.txt", b"", "is empty"),
        ("d.txt", b"a b\nc\n", "line 2 has 1 columns"),
        ("d.txt", b"a b c\n", "line 1 has 3 columns"),
        ("d.txt", b"a\t\n", "line 1 has 1 columns"),
        ("d.txt", b"a \xff\n", "line 1 is not UTF-8"),
        ("d.csv", b"", "is empty"),
        ("d.csv", b"dog,cane\n", "does not name its columns: .* source,target, or source_row,"),
        ("d.csv", b"source,target\ndog\n", "line 2 has 1 columns"),
        ("d.csv", b"source,target\n,cane\n", "line 2 has 1 columns"),
        ("d.csv", b"source,target\na,\xff\n", "line 1 is not UTF-8"),
        ("d.tsv", b'a\tb\n"c\td\n', "line 3 is not UTF-8 text with"),
    ],
)
def test_broken_pairs_are_user_errors(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        pair_files.read(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
