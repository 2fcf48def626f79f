import gzip
import pickle
import re
import struct

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.data.readers import vector_files
from common.errors import UserError
from tests.faults.readers import npy

# The formats allow any character but space, tab and line end.
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


def binary(words, table, end=b"\n"):
    data = f"{len(words)} {table.shape[1]}\n".encode()
    for word, row in zip(words, table, strict=True):
        data += word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end
    return data


def columns(names, table, **others):
    """A table of Arrow with lists of a fixed size; `others` replace or add columns."""
    lists = pa.FixedSizeListArray.from_arrays(table.ravel(), table.shape[1])
    return pa.table({"name": pa.array(names, pa.string()), "x": lists} | others)


def arrow_stream(path, words, table):
    lists = pa.array([row.tolist() for row in table], pa.large_list(pa.float64()))
    table = columns(words, table, x=lists)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


WRITERS = {
    "a.txt": word2vec_text,
    "a.vec": fasttext_vec,
    "glove.txt": glove,
    "a.bin": lambda path, words, table: path.write_bytes(binary(words, table)),
    "b.bin": lambda path, words, table: path.write_bytes(binary(words, table, end=b"")),
    "a.npz": lambda path, words, table: np.savez(path, vectors=table, words=np.array(words)),
    "a.parquet": lambda path, *space: pa.parquet.write_table(columns(*space), path),
    "b.parquet": lambda path, *space: pa.parquet.write_table(
        columns(*space), path, row_group_size=2
    ),
    "a.feather": lambda path, *space: pa.feather.write_feather(columns(*space), path),
    "b.arrow": arrow_stream,
    "a.vec.gz": lambda path, *space: (fasttext_vec(path, *space), compress(path)),
    "a.bin.gz": lambda path, *space: path.write_bytes(gzip.compress(binary(*space))),
}


def compress(path):
    path.write_bytes(gzip.compress(path.read_bytes()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vectors")


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=30)
@given(space=spaces(), extra=st.integers(-1, 3))
def test_words_and_vectors_survive_a_round_trip(folder, name, space, extra):
    words, table = space
    if name == "a.npz" and any(word.endswith("\0") for word in words):
        return  # numpy drops closing NULs
    WRITERS[name](folder / name, words, table)
    num_words = None if extra < 0 else max(1, len(words) + extra - 2)
    read_back = vector_files.read(folder / name, None, num_words)
    assert read_back.words == words[:num_words]
    np.testing.assert_array_equal(read_back.vectors, table[:num_words])
    assert read_back.vectors.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
@pytest.mark.parametrize("word_list", ["words.txt", "words.txt.gz"])
def test_an_npy_is_read_with_a_word_list(tmp_path, dtype, word_list):
    table = np.arange(1, 7).reshape(3, 2).astype(dtype)
    np.save(tmp_path / "a.npy", table)
    (tmp_path / word_list).write_bytes("één\r\ntwo words\r\n\u00a0\r\n\r\n".encode())
    if word_list.endswith(".gz"):
        compress(tmp_path / word_list)
    space = vector_files.read(tmp_path / "a.npy", tmp_path / word_list)
    assert space.words == ["één", "two words", "\u00a0"]
    np.testing.assert_array_equal(space.vectors, table.astype(np.float32))
    assert vector_files.read(tmp_path / "a.npy", tmp_path / word_list, 2).words == space.words[:2]


def test_a_word_list_replaces_the_words_of_an_npz(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=np.ones((2, 3)), words=np.array(["a", "b"]))
    (tmp_path / "w.txt").write_text("c\nd\n")
    assert vector_files.read(tmp_path / "a.npz", tmp_path / "w.txt").words == ["c", "d"]


LAYOUTS = {  # content, and the words of the rows with 1 2 3, 4 5 6 and so on
    "tabs": ("a b\t1\t2\t3\n5\t4\t5\t6\n", ["a b", "5"]),
    "a tab and spaces": ("windows 95\t1 2 3\nb,1\t4 5 6\n", ["windows 95", "b,1"]),
    "a tab and commas": ("a\t1,2,3\nb\t4,5,6\n", ["a", "b"]),
    "a header and tabs": ("2\t3\na\t1\t2\t3\n5\t4\t5\t6\n", ["a", "5"]),
    "commas": ('a b,1,2,3\n5,4,5,6\n"c, ""d""",7,8,9\n', ["a b", "5", 'c, "d"']),
    "commas and spaces": ("a b, 1, 2, 3\nc, 4, 5, 6\n", ["a b", "c"]),
    "semicolons": ("a, b;1;2;3\nc;4;5;6\n", ["a, b", "c"]),
    "a header and a comma": ("2 3\na,1 2 3\n5,4 5 6\n", ["a", "5"]),
    "a header and words with numbers": (
        "2 3\nwindows 95 1 2 3\nb 8 4 5 6\n",
        ["windows 95", "b 8"],
    ),
    "words with commas": ("1,000 1 2 3\n, 4 5 6\na 7 8 9\n", ["1,000", ",", "a"]),
    "a quotation mark": ('" 1 2 3\n"a" 4 5 6\n', ['"', '"a"']),
}


@pytest.mark.parametrize(("content", "words"), LAYOUTS.values(), ids=LAYOUTS)
def test_separators_are_recognised_for_the_whole_file(tmp_path, content, words):
    (tmp_path / "a.txt").write_bytes(content.encode())
    space = vector_files.read(tmp_path / "a.txt")
    assert space.words == words
    np.testing.assert_array_equal(space.vectors.ravel(), np.arange(1, 3 * len(words) + 1))


def test_a_line_that_differs_does_not_decide_the_layout(tmp_path):
    text = ". . . 1 2 3\n" + "".join(f"w{i} 1 2 3\n" for i in range(300)) + "a,1,2,3\n"
    (tmp_path / "a.txt").write_text(text)
    assert vector_files.read(tmp_path / "a.txt", num_words=301).words[:2] == [". . .", "w0"]
    with pytest.raises(UserError, match="line 302 is not a word and 3 numbers separated by one sp"):
        vector_files.read(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("errors", "word"), [("replace", "caf\ufffd"), ("backslashreplace", "caf\\xc3")]
)
@pytest.mark.parametrize("name", ["a.txt", "a.vec", "a.bin"])
def test_a_word_that_is_cut_inside_a_character(tmp_path, name, errors, word):
    WRITERS["glove.txt" if name == "a.txt" else name](tmp_path / name, ["a", "caf€"], TABLE)
    content = (tmp_path / name).read_bytes().replace("€".encode(), b"\xc3")
    (tmp_path / name).write_bytes(content)
    form = vector_files.Form(errors=errors)
    space = vector_files.read(tmp_path / name, form=form)
    assert space.words == ["a", word]
    np.testing.assert_array_equal(space.vectors, TABLE)
    place = {"a.txt": "line 2", "a.vec": "line 3", "a.bin": "row index 1"}[name]
    with pytest.raises(UserError, match=f"{place} is not UTF-8.*--errors=replace") as caught:
        vector_files.read(tmp_path / name)
    check_sentence(str(caught.value), tmp_path / name)


def test_glove_words_may_contain_spaces_and_other_white_space(tmp_path):
    text = ", 1 2\n. . . 3 4\nat name@domain.com 5 6\n\u0085 7 8\n1\u00a0000 9 10\n4 11 12\n"
    (tmp_path / "g.txt").write_bytes(text.encode())
    space = vector_files.read(tmp_path / "g.txt")
    assert space.words == [",", ". . .", "at name@domain.com", "\u0085", "1\u00a0000", "4"]
    np.testing.assert_array_equal(space.vectors, np.arange(1, 13).reshape(6, 2))


def test_byte_order_mark_and_crlf_are_removed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf2 2\r\na 1 2\r\nb 3 4\r\n\r\n")
    assert vector_files.read(tmp_path / "a.txt").words == ["a", "b"]


def test_only_the_requested_rows_are_read(tmp_path):
    (tmp_path / "a.vec").write_bytes(b"3 2\na 1 2\nb 3 4\nb \xff oops\n")
    assert vector_files.read(tmp_path / "a.vec", None, 2).words == ["a", "b"]
    (tmp_path / "a.bin").write_bytes(binary(["a", "b"], np.ones((2, 3)))[:-3])
    assert vector_files.read(tmp_path / "a.bin", None, 1).words == ["a"]


def test_a_large_file_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 100)
    table = np.random.default_rng(0).normal(size=(1001, 3)).astype(np.float32)
    words = [f"w{i}" for i in range(1001)]
    for name, writer in WRITERS.items():
        writer(tmp_path / name, words, table)
        blocks = list(vector_files.stream(tmp_path / name))
        assert max(len(block.words) for block in blocks) == (2 if name == "b.arrow" else 100), name
        assert [word for block in blocks for word in block.words] == words, name
        np.testing.assert_array_equal(np.concatenate([b.vectors for b in blocks]), table)
    writer = WRITERS["a.txt"]
    for twice in (3, 250, 999):
        writer(tmp_path / "a.txt", [*words[:twice], "w2", *words[twice + 1 :]], table)
        with pytest.raises(UserError, match=f"vector {twice + 1}: the word 'w2' .* occurs"):
            vector_files.read(tmp_path / "a.txt")


def test_a_row_group_of_any_size_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 1000)
    table = np.random.default_rng(0).normal(size=(200_000, 32)).astype(np.float32)  # 26 MB
    lists = pa.FixedSizeListArray.from_arrays(table.ravel(), 32)
    pa.parquet.write_table(pa.table({"x": lists}), tmp_path / "a.parquet", row_group_size=200_000)
    before, rows = pa.total_allocated_bytes(), 0
    for block in vector_files.stream(tmp_path / "a.parquet"):
        np.testing.assert_array_equal(block.vectors, table[rows : rows + len(block.words)])
        rows += len(block.words)
        assert pa.total_allocated_bytes() - before < 6e6
    assert rows == 200_000


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_row_groups_behind_the_requested_rows_are_not_read(tmp_path, name):
    table = np.random.default_rng(0).normal(size=(20, 3))
    words = [f"w{i}" for i in range(19)] + ["w0"]
    (WRITERS["b.parquet"] if name == "a.parquet" else arrow_stream)(tmp_path / name, words, table)
    assert vector_files.read(tmp_path / name, None, 19).words == words[:19]
    with pytest.raises(UserError, match="vector 20: the word 'w0'"):
        vector_files.read(tmp_path / name)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_the_matrix_of_a_safetensors_file_is_read(tmp_path, dtype):
    path, table = tmp_path / "a.safetensors", np.arange(1, 7).reshape(3, 2).astype(dtype)
    others = {"bias": np.ones(4, np.float32), "ids": np.ones((3, 1), np.int64)}
    safetensors.numpy.save_file(others | {"embedding": table}, path)
    space = vector_files.read(path)
    assert space.words == ["0", "1", "2"] and space.vectors.dtype == np.float32
    np.testing.assert_array_equal(space.vectors, table.astype(np.float32))
    safetensors.numpy.save_file({"head": np.ones((2, 2), dtype), "vectors": table}, path)
    (tmp_path / "w.txt").write_text("a\nb\nc\n")
    space = vector_files.read(path, tmp_path / "w.txt", 2)
    assert space.words == ["a", "b"] and space.vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"a": np.ones((2, 2)), "b": np.ones((2, 3))}, r"'vectors' in .*\('a', 'b'\) is missing"),
        ({"a": np.ones((2, 2), int), "b": np.ones(3)}, r"\(none\) is missing: save an array"),
        ({"a": np.array([[1.0, np.nan]])}, "vector of '0' in .* holds a number"),
        ({"a": np.ones((0, 2))}, "no file of its format|is of shape"),
    ],
)
def test_other_safetensors_are_user_errors(tmp_path, tensors, message):
    safetensors.numpy.save_file(tensors, tmp_path / "a.safetensors")
    with pytest.raises(UserError, match=message) as caught:
        vector_files.read(tmp_path / "a.safetensors")
    check_sentence(str(caught.value), tmp_path / "a.safetensors")


TABLE = np.array([[1, 2], [3, 4]], np.float32)
LISTS = pa.FixedSizeListArray.from_arrays(TABLE.ravel(), 2)


def lists(*rows, kind=pa.float32()):  # noqa: B008  # a type of Arrow is a constant
    return pa.array(rows, pa.list_(kind))


COLUMNS = {  # columns beside or in place of "name" and "x", and the message
    "two of vectors": ({"y": LISTS}, "several columns of vectors \\('x', 'y'\\): name one of them"),
    "two of words": ({"z": ["a", "b"]}, "several columns of words \\('name', 'z'\\): name one"),
    "no vectors": ({"x": [1.0, 2.0]}, "no column of lists of numbers \\(name, x\\)"),
    "strings": ({"x": lists(["1"], ["2"], kind=pa.string())}, "no column of lists of numbers"),
    "lists of lists": ({"x": pa.array([[[1.0]], [[2.0]]])}, "no column of lists of numbers"),
    "ragged": ({"x": lists([1, 2], [3])}, "row 2 of 'x' has not as many numbers"),
    "null vector": ({"x": lists([1, 2], None)}, "row 2 of 'x' has not as many numbers"),
    "null of a fixed size": (
        {"x": pa.array([[1, 2], None], pa.list_(pa.float32(), 2))},
        "row 2 of 'x' has not as many",
    ),
    "null first": ({"x": lists(None, [1, 2])}, "row 1 of 'x' has not"),
    "empty lists": ({"x": lists([], [])}, "row 1 of 'x' has not"),
    "null number": ({"x": lists([1, 2], [3, None])}, "vector of 'b' in .* NaN"),
    "too large": ({"x": lists([1, 2], [3, 1e39], kind=pa.float64())}, "of 'b' .* too large"),
    "zeros": ({"x": lists([0, 0], [3, 1])}, "of 'a' .* zeros"),
    "null word": ({"name": ["a", None]}, "vector 2: the word '' is empty"),
    "word twice": ({"name": ["a", "a"]}, "vector 2: the word 'a' is empty or occurs before"),
    "no rows": ({"name": pa.array([], pa.string()), "x": LISTS[:0]}, "holds no vectors"),
}


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
@pytest.mark.parametrize(("others", "message"), COLUMNS.values(), ids=COLUMNS)
def test_other_columns_are_user_errors(tmp_path, name, others, message):
    table = pa.table({"name": ["a", "b"], "x": LISTS} | others if len(others) < 2 else others)
    writer = pa.parquet.write_table if name == "a.parquet" else pa.feather.write_feather
    writer(table, tmp_path / name)
    with pytest.raises(UserError, match=message) as caught:
        vector_files.read(tmp_path / name)
    check_sentence(str(caught.value), tmp_path / name)


def test_floats_are_preferred_to_integers_and_columns_can_be_named(tmp_path):
    integers = lists([1, 2], [3, 4], kind=pa.int8())
    more = {"tokens": integers, "id": [7, 8]}
    pa.parquet.write_table(columns(["a", "a"], TABLE + 1, **more), tmp_path / "a.parquet")
    form = vector_files.Form("id")
    space = vector_files.read(tmp_path / "a.parquet", form=form)
    assert space.words == ["7", "8"] and space.vectors.tolist() == (TABLE + 1).tolist()
    space = vector_files.read(
        tmp_path / "a.parquet", form=form._replace(vector_column="tokens"), num_words=1
    )
    assert space.words == ["7"] and space.vectors.tolist() == [[1, 2]]


def test_shards_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 9, 8):
        table = columns([f"a{number}", f"b{number}"], TABLE + number)
        pa.parquet.write_table(table, tmp_path / f"part-{number}-of-11.parquet")
    (tmp_path / "_metadata.parquet").write_bytes(b"")
    words = [f"{letter}{number}" for number in (8, 9, 10) for letter in "ab"]
    assert vector_files.read(tmp_path).words == words
    assert vector_files.read(tmp_path, num_words=3).words == words[:3]
    pa.parquet.write_table(columns(["c"], np.ones((1, 3))), tmp_path / "part-11.parquet")
    with pytest.raises(UserError, match=r"part-11\.parquet, row 1 of 'x' has not as many numbers"):
        vector_files.read(tmp_path)
    table = columns(["c"], TABLE[:1], label=[1])
    pa.parquet.write_table(table, tmp_path / "part-11.parquet")
    assert vector_files.read(tmp_path).words == [*words, "c"]
    with pytest.raises(UserError, match=r"part-11\.parquet has columns of other names or types"):
        list(vector_files.stream(tmp_path, rows=True))
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(UserError, match=r"state\.json is damaged"):
        vector_files.read(tmp_path)


def test_names_decide_between_several_columns(tmp_path):
    more = {"vectors": LISTS, "words": pa.array(["c", "d"]).dictionary_encode(), "label": [1, 2]}
    pa.parquet.write_table(columns(["a", "b"], TABLE + 1, **more), tmp_path / "a.parquet")
    space = vector_files.read(tmp_path / "a.parquet")
    assert space.words == ["c", "d"] and space.vectors.tolist() == TABLE.tolist()


VALID = binary(["a", "b"], np.array([[1, 2], [3, 4]]))
BROKEN = {  # file name, content, message
    "empty": ("a.txt", b"", "a.txt holds no vectors"),
    "empty bin": ("a.bin", b"", "not word2vec's binary format.*another first line"),
    "header alone": ("a.vec", b"0 3\n", "holds no vectors"),
    "no dimension": ("a.vec", b"2 0\na\nb\n", "line 2 is not a word and its numbers"),
    "one column": ("a.txt", b"a\nb\n", "line 1 is not a word and its numbers"),
    "too few": ("a.txt", b"a 1 2 3\nb 1 2\n", "line 2 is not a word and 3 numbers"),
    "too many": ("a.txt", b"a 1 2\nb 1 2 3\n", "line 2 is not a word and 2 numbers"),
    "too few by header": ("a.vec", b"1 3\na 1 2\n", "line 2 is not a word and 3 .* line 1"),
    "no number": ("a.txt", b"a 1 2\nb 1 oops\n", "line 2 is not a word and 2 numbers"),
    "two spaces": ("a.txt", b"a 1 2\nb 1  2\n", "line 2 is not a word .*one space"),
    "nan": ("a.txt", b"a 1 2\nb 1 nan\n", "vector of 'b' in .* holds a number that is NaN"),
    "inf": ("a.txt", b"\na 1 2\nb 1 -inf\n", "vector of 'b' in"),
    "too large": ("a.txt", b"a 1 1e39\n", "too large for float32"),
    "zeros": ("a.vec", b"2 2\na 0 -0.0\nb 1 2\n", "vector of 'a' in .* holds .* only zeros"),
    "twice": ("a.txt", b"a 1 2\nb 1 2\na 3 4\n", "vector 3: the word 'a' is empty or occurs"),
    "no word": ("a.txt", b"a 1 2\n 1 2\n", "line 2 is not a word and 2 numbers"),
    "comma after the word": ("a.txt", b"s0,.3 -.3\ns1,.1 .2\n", "line 1 is not a word and its"),
    "decimal commas": ("a.csv", b"a;0,3;-0,3\nb;0,1;0,2\n", "line 1 is not a word and its"),
    "a number before the others": ("a.txt", b". 5 1 2\nb 1 2\nc 1 2\n", "line 1 is not .* 2 num"),
    "separator of one row": ("a.txt", b"a 1 2\nb 1 2\nc,1 2\n", "line 3 is not a word and 2 numb"),
    "padded": ("a.txt", b"a  .1 -.2\nb -.3  .4\nc  .5  .6\n", "line 1 is not .* by one space"),
    "two tabs": ("a.txt", b"a\t\t1\t2\nb\t\t1\t2\n", "line 1 is not a word .* by one tab"),
    "names of columns": ("a.csv", b"word,x,y\na,1,2\nb,1,2\n", "line 1 is not .* one comma as in"),
    "missing rows": ("a.vec", b"3 2\na 1 2\nb 1 2\n", "has 2 rows .* says 3"),
    "rows too many": ("a.vec", b"1 2\na 1 2\nb 1 2\n", "has 2 rows .* says 1"),
    "latin-1": ("a.txt", "a 1 2\né 1 2\n".encode("latin-1"), "line 2 is not UTF-8"),
    "bin under .txt": ("a.txt", VALID[:-9] + b"\xff" * 9, "not UTF-8 text"),
    "gzip, cut": ("a.txt.gz", gzip.compress(b"a 1 2\n")[:-6], "Cannot read .*a.txt.gz"),
    "not gzip": ("a.txt.gz", b"a 1 2\n", "Cannot read .*Not a gzipped file"),
    "gzip, damaged": ("a.txt.gz", gzip.compress(b"a 1 2\n")[:10] + b"\xff" * 20, "Cannot read"),
    "bin, cut in a row": ("a.bin", VALID[:-3], "row index 1 is cut or text"),
    "bin, cut in a word": ("a.bin", VALID[:16], "row index 1 is cut or text"),
    "bin, more than said": ("a.bin", VALID + b"c", "it has more than 2 rows"),
    "bin, bad word": ("a.bin", VALID.replace(b"b ", b"\xff "), "word in UTF-8 and d floats"),
    "bin, twice": ("a.bin", VALID.replace(b"b ", b"a "), "vector 2: the word 'a'"),
    "bin, nan": ("a.bin", binary(["a"], np.array([[np.nan, 1]])), "vector of 'a' .* NaN"),
    "text under .bin": ("a.bin", b"2 2\na 0.11 0.22\nb 1 2\n", "row index 0 is cut or text"),
    "fastText model": ("a.bin", struct.pack("<ii", 793712314, 12), "another first line"),
    "a line without end": ("a.txt", b"a" * (2 << 20), "line 1 is not UTF-8 text of at most 1 MiB"),
    "bin, a word without end": ("a.bin", b"9 3\n" + b"a" * 99_999, "row index . is cut"),
    "npy, empty": ("a.npy", b"", "is cut, is no file of its format"),
    "npy, cut": ("a.npy", npy(np.ones((30, 20)))[:-8], "never loaded"),
    "npy, pickled": ("a.npy", pickle.dumps([[1.0]]), "pickled Python objects"),
    "parquet, empty": ("a.parquet", b"", "is damaged or of another format"),
    "parquet, cut": ("a.parquet", b"PAR1" + b"\xff" * 40, "is damaged or of another format"),
    "arrow, cut": ("a.arrow", b"ARROW1\0\0" + b"\xff" * 40, "is damaged or of another format"),
    "arrow, text": ("a.feather", b"a 1 2\n", "is damaged or of another format"),
    "safetensors, empty": ("a.safetensors", b"", "is no file of its format"),
    "safetensors, long": ("a.safetensors", b"\xff" * 40, "is no file of its format"),
    "npz, no zip": ("a.npz", b"PK\x03\x04 and no more", "is cut, is no file of its format"),
}


@pytest.mark.parametrize(("name", "content", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_a_user_error(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        vector_files.read(tmp_path / name)
    check_sentence(str(caught.value), tmp_path / name)


def check_sentence(sentence, path):
    assert str(path) in sentence
    assert re.search("[:;,] .*\\.$", sentence) and "\n" not in sentence
    assert ". " not in sentence.replace(str(path), "")  # one sentence


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((2, 2)), "y": np.ones(2)}, "The array 'vectors' in .* is missing"),
        ({"x": np.array([[1.0], [np.inf], [0.0]])}, "vector of '1' in .* holds a number"),
        ({"x": np.array([[{}]])}, "pickled"),
        ({"vectors": np.ones(2), "words": np.array(["a", "b"])}, r"is of shape \(2,\)"),
        ({"vectors": np.ones((2, 0)), "words": np.array(["a", "b"])}, r"is of shape \(2, 0\)"),
        ({"vectors": np.array([["1"]]), "words": np.array(["a"])}, "type <U1"),
        ({"vectors": np.ones((1, 1), complex), "words": np.array(["a"])}, "real numbers"),
        ({"vectors": np.ones((2, 2)), "words": np.array(["a"])}, "1 words for 2 vectors"),
        (
            {"vectors": np.ones((1, 2)), "words": np.array([b"a"])},
            "0 words .* array 'words' of str",
        ),
        ({"vectors": np.ones((1, 2)), "words": np.array(["\ud800"])}, "0 words"),
        ({"vectors": np.ones((1, 2)), "words": np.array(["a"], object)}, "pickled"),
        *(
            ({"vectors": np.ones((1, 2)), "words_utf8": text} | offsets, "0 words for 1 vectors")
            for text, offsets in (
                (np.array([97], np.uint8), {}),
                (np.array([97], np.uint8), {"words_offsets": np.array([0.0, 1.0])}),
                (np.array([97], np.uint8), {"words_offsets": np.array([0, 2])}),
                (np.array([97], np.uint8), {"words_offsets": np.array([0, 3, 1])}),
                (np.array([200], np.uint8), {"words_offsets": np.array([0, 1])}),
                (np.array([97]), {"words_offsets": np.array([0, 1])}),
            )
        ),
        ({"vectors": np.ones((1, 2), object), "words": np.array(["a"])}, "pickled"),
        ({"vectors": np.array([[1.0], [0.0]]), "words": np.array(["a", "b"])}, "of 'b' .* zeros"),
        ({"vectors": np.array([[1e39]]), "words": np.array(["a"])}, "too large"),
        ({"vectors": np.zeros((0, 2)), "words": np.array([], str)}, r"is of shape \(0, 2\)"),
    ],
)
def test_a_broken_npz_is_a_user_error(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message) as caught:
        vector_files.read(tmp_path / "a.npz")
    check_sentence(str(caught.value), tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("word_list", "message"),
    [
        (b"a\nb\n", "2 words for 3 vectors"),
        (b"a\nb\nc\nd\n", "4 words for 3 vectors"),
        (b"a\nb\na\n", "vector 3: the word 'a'"),
        (b"a\nb\n\xff\n", "line 3 is not UTF-8"),
    ],
)
def test_a_broken_word_list_is_a_user_error(tmp_path, word_list, message):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    (tmp_path / "w.txt").write_bytes(word_list)
    with pytest.raises(UserError, match=message):
        vector_files.read(tmp_path / "a.npy", tmp_path / "w.txt")


@pytest.mark.parametrize("more", [{"labels": np.zeros(3)}, {}])
def test_row_numbers_are_the_words_of_an_array_without_words(tmp_path, more):
    np.savez(tmp_path / "a.npz", **{"vectors" if more else "any": np.eye(3, dtype=int)}, **more)
    words, vectors = vector_files.read(tmp_path / "a.npz", None, 2)
    assert words == ["0", "1"] and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.eye(3)[:2])


@pytest.mark.parametrize(
    "name",
    ["a.txt", "a.vec.gz", "a.bin", "a.npy", "a.npz", "a.parquet", "a.arrow", "a.safetensors"],
)
def test_a_missing_file_and_a_folder_are_user_errors(tmp_path, name):
    with pytest.raises(UserError, match=f"Cannot read .*{name} .No such file"):
        vector_files.read(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=f"Cannot read .*{name} .*directory"):
        vector_files.read(tmp_path / name)


def test_a_word_list_for_a_file_with_words_is_a_user_error(tmp_path):
    (tmp_path / "a.txt").write_text("a 1 2\n")
    with pytest.raises(UserError, match="is no file of arrays: leave out"):
        vector_files.read(tmp_path / "a.txt", tmp_path / "w.txt")
