import gzip
import pickle
import re
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.data import vectors
from common.errors import UserError

# What the formats can hold: no space, tab or line end, but every other white space of Unicode.
WORD = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\r\n\ufeff"), min_size=1, max_size=6
)
NUMBER = st.floats(-100, 100, width=32).filter(lambda x: abs(x) > 1e-3)


@st.composite
def spaces(draw):
    words = draw(st.lists(WORD, min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(2, 5)))
    return words, draw(hnp.arrays(np.float32, shape, elements=NUMBER))


def lines(words, table):
    return [f"{w} {' '.join(map(repr, row.tolist()))}" for w, row in zip(words, table, strict=True)]


def word2vec_text(path, words, table):
    rows = [f"{len(words)} {table.shape[1]}", *lines(words, table)]
    path.write_bytes("".join(row + "\n" for row in rows).encode())


def fasttext_vec(path, words, table):  # fastText leaves a space behind each row
    rows = [f"{len(words)} {table.shape[1]}", *(line + " " for line in lines(words, table))]
    path.write_bytes("".join(row + "\n" for row in rows).encode())


def glove(path, words, table):
    path.write_bytes("\n".join(lines(words, table)).encode())


def packed(words, table, end=b"\n"):
    data = f"{len(words)} {table.shape[1]}\n".encode()
    for word, row in zip(words, table, strict=True):
        data += word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end
    return data


WRITERS = {
    "a.txt": word2vec_text,
    "a.vec": fasttext_vec,
    "glove.txt": glove,
    "a.bin": lambda path, words, table: path.write_bytes(packed(words, table)),
    "b.bin": lambda path, words, table: path.write_bytes(packed(words, table, end=b"")),
    "a.npz": lambda path, words, table: np.savez(path, vectors=table, words=np.array(words)),
    "a.vec.gz": lambda path, *space: (fasttext_vec(path, *space), squeeze(path)),
    "a.bin.gz": lambda path, *space: path.write_bytes(gzip.compress(packed(*space))),
}


def squeeze(path):
    path.write_bytes(gzip.compress(path.read_bytes()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vectors")


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=30, deadline=None)
@given(space=spaces(), extra=st.integers(-1, 3))
def test_round_trip(folder, name, space, extra):
    words, table = space
    if name == "a.npz" and any(word.endswith("\0") for word in words):
        return  # numpy drops closing NULs
    WRITERS[name](folder / name, words, table)
    num_words = None if extra < 0 else max(1, len(words) + extra - 2)
    found = vectors.read(folder / name, None, num_words)
    assert found.words == words[:num_words]
    np.testing.assert_array_equal(found.vectors, table[:num_words])
    assert found.vectors.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
@pytest.mark.parametrize("word_list", ["words.txt", "words.txt.gz"])
def test_npy_and_word_list(tmp_path, dtype, word_list):
    table = np.arange(1, 7).reshape(3, 2).astype(dtype)
    np.save(tmp_path / "a.npy", table)
    (tmp_path / word_list).write_bytes("één\r\ntwo words\r\n\u00a0\r\n\r\n".encode())
    if word_list.endswith(".gz"):
        squeeze(tmp_path / word_list)
    found = vectors.read(tmp_path / "a.npy", tmp_path / word_list)
    assert found.words == ["één", "two words", "\u00a0"]
    np.testing.assert_array_equal(found.vectors, table.astype(np.float32))
    assert vectors.read(tmp_path / "a.npy", tmp_path / word_list, 2).words == found.words[:2]


def test_word_list_replaces_the_words_of_an_npz(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=np.ones((2, 3)), words=np.array(["a", "b"]))
    (tmp_path / "w.txt").write_text("c\nd\n")
    assert vectors.read(tmp_path / "a.npz", tmp_path / "w.txt").words == ["c", "d"]


def test_glove_words_with_spaces_and_odd_white_space(tmp_path):
    text = ", 1 2\n. . . 3 4\nat name@domain.com 5 6\n\u0085 7 8\n1\u00a0000 9 10\n4 11 12\n"
    (tmp_path / "g.txt").write_bytes(text.encode())
    found = vectors.read(tmp_path / "g.txt")
    assert found.words == [",", ". . .", "at name@domain.com", "\u0085", "1\u00a0000", "4"]
    np.testing.assert_array_equal(found.vectors, np.arange(1, 13).reshape(6, 2))


def test_mark_and_line_ends_of_windows(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf2 2\r\na 1 2\r\nb 3 4\r\n\r\n")
    assert vectors.read(tmp_path / "a.txt").words == ["a", "b"]


def test_only_the_rows_asked_for_are_read(tmp_path):
    (tmp_path / "a.vec").write_bytes(b"3 2\na 1 2\nb 3 4\nb \xff oops\n")
    assert vectors.read(tmp_path / "a.vec", None, 2).words == ["a", "b"]
    (tmp_path / "a.bin").write_bytes(packed(["a", "b"], np.ones((2, 3)))[:-3])
    assert vectors.read(tmp_path / "a.bin", None, 1).words == ["a"]


SOUND = packed(["a", "b"], np.array([[1, 2], [3, 4]]))
BROKEN = {  # file name, content, what the sentence says
    "empty": ("a.txt", b"", "a.txt holds no vectors"),
    "empty, gzipped": ("a.txt.gz", gzip.compress(b""), "holds no vectors"),
    "empty bin": ("a.bin", b"", "does not begin with"),
    "header alone": ("a.vec", b"0 3\n", "holds no vectors"),
    "no dimension": ("a.vec", b"2 0\na\nb\n", "line 1 calls for no numbers"),
    "one column": ("a.txt", b"a\nb\n", "line 1 calls for no numbers"),
    "too few": ("a.txt", b"a 1 2 3\nb 1 2\n", "line 2 has fewer than the 3 numbers"),
    "too many": ("a.txt", b"a 1 2\nb 1 2 3\n", "line 2 has more than the 2 numbers"),
    "too few by header": ("a.vec", b"1 3\na 1 2\n", "line 2 has fewer than the 3 .* line 1"),
    "too many by header": ("a.vec", b"1 3\na 1 2 3 4\n", "line 2 has more than the 3"),
    "no number": ("a.txt", b"a 1 2\nb 1 oops\n", "line 2: could not .* 'oops'"),
    "two spaces": ("a.txt", b"a 1 2\nb 1  2\n", "line 2: .*one space"),
    "nan": ("a.txt", b"a 1 2\nb 1 nan\n", "line 2: the vector of 'b' holds a number that is NaN"),
    "inf": ("a.txt", b"\na 1 2\nb 1 -inf\n", "line 3: the vector of 'b'"),
    "too large": ("a.txt", b"a 1 1e39\n", "too large for float32"),
    "zeros": ("a.vec", b"2 2\na 0 -0.0\nb 1 2\n", "line 2: the vector of 'a' holds zeros alone"),
    "twice": ("a.txt", b"a 1 2\nb 1 2\na 3 4\n", "line 3: the word 'a' has been at line 1"),
    "no word": ("a.txt", b"a 1 2\n 1 2\n", "line 2 has no word"),
    "missing rows": ("a.vec", b"3 2\na 1 2\nb 1 2\n", "has 2 rows .* says 3"),
    "rows too many": ("a.vec", b"1 2\na 1 2\nb 1 2\n", "has 2 rows .* says 1"),
    "latin-1": ("a.txt", "a 1 2\né 1 2\n".encode("latin-1"), "line 2 is not UTF-8"),
    "bin under .txt": ("a.txt", SOUND[:-9] + b"\xff" * 9, "not UTF-8 text"),
    "gzip, cut": ("a.txt.gz", gzip.compress(b"a 1 2\n")[:-6], "Cannot read .*a.txt.gz"),
    "not gzip": ("a.txt.gz", b"a 1 2\n", "Cannot read .*Not a gzipped file"),
    "gzip, damaged": ("a.txt.gz", gzip.compress(b"a 1 2\n")[:10] + b"\xff" * 20, "Cannot read"),
    "bin, cut in a row": ("a.bin", SOUND[:-3], "ends within row index 1 of the 2"),
    "bin, cut between rows": ("a.bin", SOUND[:15], "ends within row index 1"),
    "bin, cut in a word": ("a.bin", SOUND[:16], "ends within row index 1"),
    "bin, more than said": ("a.bin", SOUND + b"c", "goes on after the 2 rows"),
    "bin, bad word": (
        "a.bin",
        SOUND.replace(b"b ", b"\xff "),
        "row index 1 has a word that is not",
    ),
    "bin, twice": ("a.bin", SOUND.replace(b"b ", b"a "), "row index 1: the word 'a'"),
    "bin, nan": ("a.bin", packed(["a"], np.array([[np.nan, 1]])), "row index 0: .* NaN"),
    "text under .bin": ("a.bin", b"2 2\na 0.11 0.22\nb 1 2\n", "holds text, not floats"),
    "fastText model": ("a.bin", struct.pack("<ii", 793712314, 12) + b"\0" * 99, "give the .vec"),
    "a line without end": ("a.txt", b"a" * (2 << 20), "line 1 is over 1 MiB long"),
    "numbers without end": ("a.txt", b"a" + b" 1" * 70_000, "line 1 calls for 70000 numbers"),
    "bin, a word without end": ("a.bin", b"9 3\n" + b"a" * 99_999, "a word that does not end"),
    "npy, empty": ("a.npy", b"", "is cut, is no numpy file"),
    "npy, pickled": ("a.npy", pickle.dumps([[1.0]]), "pickled Python objects"),
    "npz, no zip": ("a.npz", b"PK\x03\x04 and no more", "is cut, is no numpy file"),
}


@pytest.mark.parametrize(("name", "content", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_file(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        vectors.read(tmp_path / name)
    says_what_where_and_how(str(caught.value), tmp_path / name)


def says_what_where_and_how(sentence, path):
    assert str(path) in sentence
    assert re.search("[:;,] .*\\.$", sentence) and "\n" not in sentence
    assert ". " not in sentence.replace(str(path), "")  # one sentence


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((2, 2))}, "no array 'vectors'"),
        ({"vectors": np.ones((2, 2))}, "comes without words"),
        ({"vectors": np.ones(2), "words": np.array(["a", "b"])}, r"shape \(2,\)"),
        ({"vectors": np.ones((2, 0)), "words": np.array(["a", "b"])}, r"shape \(2, 0\)"),
        ({"vectors": np.array([["1"]]), "words": np.array(["a"])}, "type <U1"),
        ({"vectors": np.ones((1, 1), complex), "words": np.array(["a"])}, "real numbers"),
        ({"vectors": np.ones((2, 2)), "words": np.array(["a"])}, "1 words for the 2 vectors"),
        ({"vectors": np.ones((1, 2)), "words": np.array([b"a"])}, "not a list of str"),
        ({"vectors": np.ones((1, 2)), "words": np.array(["a"], object)}, "pickled"),
        ({"vectors": np.ones((1, 2), object), "words": np.array(["a"])}, "pickled"),
        (
            {"vectors": np.array([[1.0], [0.0]]), "words": np.array(["a", "b"])},
            "row index 1: .*'b'",
        ),
        ({"vectors": np.array([[1e39]]), "words": np.array(["a"])}, "too large"),
        ({"vectors": np.zeros((0, 2)), "words": np.array([], str)}, "holds no vectors"),
    ],
)
def test_broken_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message) as caught:
        vectors.read(tmp_path / "a.npz")
    says_what_where_and_how(str(caught.value), tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("word_list", "message"),
    [
        (None, "comes without words"),
        (b"a\nb\n", "2 words for the 3 vectors"),
        (b"a\nb\nc\nd\n", "4 words for the 3 vectors"),
        (b"a\nb\na\n", "row index 2: the word 'a'"),
        (b"a\nb\n\xff\n", "line 3 is not UTF-8"),
    ],
)
def test_broken_word_list(tmp_path, word_list, message):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    words_path = tmp_path / "w.txt" if word_list else None
    if words_path:
        words_path.write_bytes(word_list)
    with pytest.raises(UserError, match=message):
        vectors.read(tmp_path / "a.npy", words_path)


def test_cut_or_pickled_npy(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((30, 20)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-8])
    np.save(tmp_path / "object.npy", np.array([[1.0]], object), allow_pickle=True)
    for name in ("cut.npy", "object.npy"):
        with pytest.raises(UserError, match="never loaded"):
            vectors.read(tmp_path / name, tmp_path / "w.txt")


@pytest.mark.parametrize(
    "arrays",
    [
        {"vectors": np.eye(3), "labels": np.zeros(3)},
        {"whatever": np.eye(3, dtype=np.float16)},
    ],
)
def test_an_array_without_words(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    found = vectors.read_array(tmp_path / "a.npz")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.eye(3))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.eye(2), "b": np.eye(2)}, "no array 'vectors'"),
        ({"a": np.zeros(3)}, r"shape \(3,\)"),
        ({"a": np.array([[1.0], [np.inf], [0.0]])}, "row index 1 holds a number"),
        ({"a": np.array([[1.0], [1e300]])}, "row index 1 holds a number .* too large for float32"),
        ({"a": np.array([[1.0], [2.0], [0.0]])}, "row index 2 holds zeros alone"),
        ({"a": np.array([[{}]])}, "pickled"),
    ],
)
def test_a_broken_array_without_words(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message):
        vectors.read_array(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.txt", "a.vec.gz", "a.bin", "a.npy", "a.npz"])
def test_missing_file_and_folder(tmp_path, name):
    with pytest.raises(UserError, match=f"no file .*{name}: correct the path"):
        vectors.read(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=f"Cannot read .*{name} .*directory"):
        vectors.read(tmp_path / name)


def test_missing_word_list(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    with pytest.raises(UserError, match=r"no file .*w\.txt"):
        vectors.read(tmp_path / "a.npy", tmp_path / "w.txt")


def test_arguments_that_do_not_fit(tmp_path):
    (tmp_path / "a.txt").write_text("a 1 2\n")
    with pytest.raises(UserError, match="num_words is 0"):
        vectors.read(tmp_path / "a.txt", None, 0)
    with pytest.raises(UserError, match="holds its own words"):
        vectors.read(tmp_path / "a.txt", tmp_path / "w.txt")


def test_pairs(tmp_path):
    text = "dog cane\ncat   gatto\nNew York\tNuova York\r\n\n dog\tcagna \n1\u00a0000 mille\n"
    (tmp_path / "d.txt").write_bytes(text.encode())
    assert vectors.read_pairs(tmp_path / "d.txt") == [
        ("dog", "cane"),
        ("cat", "gatto"),
        ("New York", "Nuova York"),
        ("dog", "cagna"),
        ("1\u00a0000", "mille"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a b\nc\n", "line 2 has 1 columns"),
        (b"a b c\n", "line 1 has 3 columns"),
        (b"a\t\n", "line 1 has 1 columns"),
        (b"a \xff\n", "line 1 is not UTF-8"),
    ],
)
def test_broken_pairs(tmp_path, content, message):
    (tmp_path / "d.txt").write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        vectors.read_pairs(tmp_path / "d.txt")
    says_what_where_and_how(str(caught.value), tmp_path / "d.txt")


def test_missing_pairs(tmp_path):
    with pytest.raises(UserError, match="no file"):
        vectors.read_pairs(tmp_path / "d.txt")
