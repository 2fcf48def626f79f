"""Files of vectors that are read; test_broken_files.py has those that are refused."""

import base64
import gzip
import json

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.data.readers import numpy_files, vector_files
from common.errors import UserError
from common.files import read_npz
from tests.faults.readers import FORMATS, columns, npy_header, packed, vector_binary

# The formats allow any character but space, tab and line end.
WORD = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\r\n\ufeff"), min_size=1, max_size=6
)
NUMBER = st.floats(-100, 100, width=32).filter(lambda x: abs(x) > 1e-3)


FOUR = np.array([[1, 2], [3, 4]], np.float32)


@st.composite
def spaces(draw):
    words = draw(st.lists(WORD, min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(2, 5)))
    return words, draw(hnp.arrays(np.float32, shape, elements=NUMBER))


def write(folder, form, words, table):
    """Writes words and vectors in a format, and returns the path of the file."""
    name, content = FORMATS[form]
    (folder / name).write_bytes(packed(name, content(words, table)))
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vectors")


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=20)
@given(space=spaces(), extra=st.integers(-1, 3))
def test_words_and_vectors_survive_a_round_trip(folder, form, space, extra):
    words, table = space
    if form == "vectors .npz" and any(word.endswith("\0") for word in words):
        return  # numpy drops closing NULs
    num_words = None if extra < 0 else max(1, len(words) + extra - 2)
    read_back = vector_files.read(write(folder, form, words, table), None, num_words)
    assert read_back.words == words[:num_words]
    np.testing.assert_array_equal(read_back.vectors, table[:num_words])
    assert read_back.vectors.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int16])
@pytest.mark.parametrize("word_list", ["words.txt", "words.txt.gz"])
def test_an_npy_is_read_with_a_word_list(tmp_path, dtype, word_list):
    table = np.arange(1, 7).reshape(3, 2).astype(dtype)
    np.save(tmp_path / "a.npy", table)
    lines = "één\r\ntwo words\r\n\u00a0\r\n\r\n".encode()
    (tmp_path / word_list).write_bytes(packed(word_list, lines))
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
    "words with numbers": ("2 3\nwindows 95 1 2 3\nb 8 4 5 6\n", ["windows 95", "b 8"]),
    "words with commas": ("1,000 1 2 3\n, 4 5 6\na 7 8 9\n", ["1,000", ",", "a"]),
    "a quotation mark": ('" 1 2 3\n"a" 4 5 6\n', ['"', '"a"']),
    "words of several parts": (". . . 1 2 3\nat me@home.com 4 5 6\n", [". . .", "at me@home.com"]),
    "other white space": ("\u0085 1 2 3\n1\u00a0000 4 5 6\n", ["\u0085", "1\u00a0000"]),
    "a byte order mark": ("\ufeff2 3\r\na 1 2 3\r\nb 4 5 6\r\n\r\n", ["a", "b"]),
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
@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("GloVe .txt", "line 2"),
        ("word2vec .txt", "line 3"),
        ("word2vec .bin", "row index 1"),
    ],
)
def test_a_word_that_is_cut_inside_a_character(tmp_path, form, place, errors, word):
    path = write(tmp_path, form, ["a", "caf€"], FOUR)
    path.write_bytes(path.read_bytes().replace("€".encode(), b"\xc3"))
    space = vector_files.read(path, form=vector_files.Form(errors=errors))
    assert space.words == ["a", word]
    np.testing.assert_array_equal(space.vectors, FOUR)
    with pytest.raises(UserError, match=f"{place} is not UTF-8.*--errors=replace"):
        vector_files.read(path)


def test_only_the_requested_rows_are_read(tmp_path):
    (tmp_path / "a.vec").write_bytes(b"3 2\na 1 2\nb 3 4\nb \xff oops\n")
    assert vector_files.read(tmp_path / "a.vec", None, 2).words == ["a", "b"]
    (tmp_path / "a.bin").write_bytes(vector_binary(["a", "b"], np.ones((2, 3)))[:-3])
    assert vector_files.read(tmp_path / "a.bin", None, 1).words == ["a"]


def test_a_large_file_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 100)
    table = np.random.default_rng(0).normal(size=(1001, 3)).astype(np.float32)
    words = [f"w{i}" for i in range(1001)]
    for form in FORMATS:
        blocks = list(vector_files.stream(write(tmp_path, form, words, table)))
        largest = max(len(block.words) for block in blocks)
        assert largest == (2 if form == "Arrow stream" else 100), form
        assert [word for block in blocks for word in block.words] == words, form
        np.testing.assert_array_equal(np.concatenate([b.vectors for b in blocks]), table)
    for twice in (3, 250, 999):
        path = write(tmp_path, "GloVe .txt", [*words[:twice], "w2", *words[twice + 1 :]], table)
        with pytest.raises(UserError, match=f"vector {twice + 1}: the word 'w2' .* occurs"):
            vector_files.read(path)


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


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
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


def test_floats_are_preferred_to_integers_and_columns_can_be_named(tmp_path):
    more = {"tokens": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8())), "id": [7, 8]}
    pa.parquet.write_table(columns(["a", "a"], FOUR + 1, **more), tmp_path / "a.parquet")
    form = vector_files.Form("id")
    space = vector_files.read(tmp_path / "a.parquet", form=form)
    assert space.words == ["7", "8"] and space.vectors.tolist() == (FOUR + 1).tolist()
    space = vector_files.read(
        tmp_path / "a.parquet", form=form._replace(vector_column="tokens"), num_words=1
    )
    assert space.words == ["7"] and space.vectors.tolist() == [[1, 2]]


def openai(custom_id, *embeddings):
    """A line of the output file of OpenAI's batches; without vectors, of a request that failed."""
    data = [{"object": "embedding", "index": i, "embedding": x} for i, x in enumerate(embeddings)]
    body = {"object": "list", "data": data, "model": "text-embedding-3-small"}
    status = 200 if data else 400
    body = body if data else {"error": {"message": "too long"}}
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": custom_id, "response": response, "error": None}


def cohere(text, vector, **more):
    """A row of the output of Cohere's embed jobs, saved as JSONL."""
    others = dict.fromkeys(("int8", "uint8", "binary", "ubinary"))
    return {"text": text, "embeddings": {"float": vector, **others}} | more


PACKED = base64.b64encode(FOUR[1].tobytes()).decode()
JSON = {  # lines, how they are read, ids (None: row numbers) and vectors
    "OpenAI": ([openai("doc-7", [1, 2]), openai("b", PACKED)], {}, ["doc-7", "b"], FOUR),
    "texts of one request": ([openai("a", [1, 2], [3, 4])], {}, ["a/0", "a/1"], FOUR),
    "a failed request": ([openai("a"), openai("b", [3, 4])], {}, ["b"], FOUR[1:]),
    "Cohere": ([cohere("dog", [1, 2]), cohere("cat", [3, 4])], {}, ["dog", "cat"], FOUR),
    "its field": ([cohere("dog", [1, 2], wiki=7)], {"id_column": "wiki"}, ["7"], FOUR[:1]),
    "two models": (
        [{"id": 5, "old": [9], "new": None}, {"id": 6, "old": [8], "new": [3, 4]}],
        {"vector_column": "new"},
        ["6"],
        FOUR[1:],
    ),
    "no ids": ([{"values": None}, {"values": [3, 4]}], {}, ["1"], FOUR[1:]),
}


@pytest.mark.parametrize(("lines", "form", "ids", "vectors"), JSON.values(), ids=JSON)
def test_json_of_batch_interfaces(tmp_path, monkeypatch, lines, form, ids, vectors):
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 1)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("\n\n".join(map(json.dumps, lines)).encode()))
    space = vector_files.read(path, form=vector_files.Form(invalid="drop", **form))
    assert space.words == ids
    np.testing.assert_array_equal(space.vectors, vectors)


def test_vectors_may_begin_with_null(tmp_path, monkeypatch):
    """As in a table to whose last rows a new model has come first."""
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 1)
    x = pa.array([None, [1, 2], None, [3, 4]], pa.list_(pa.float32()))
    table = columns(list("abcd"), np.ones((4, 3), np.float32), x=x)
    for shard in range(2):
        pa.parquet.write_table(table[shard * 2 :][:2], tmp_path / f"{shard}.parquet")
    space = vector_files.read(tmp_path, form=vector_files.Form(invalid="drop"))
    assert space.words == ["b", "d"] and space.vectors.tolist() == FOUR.tolist()


def test_shards_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 9, 8):
        table = columns([f"a{number}", f"b{number}"], FOUR + number)
        pa.parquet.write_table(table, tmp_path / f"part-{number}-of-11.parquet")
    (tmp_path / "_metadata.parquet").write_bytes(b"")
    words = [f"{letter}{number}" for number in (8, 9, 10) for letter in "ab"]
    assert vector_files.read(tmp_path).words == words
    assert vector_files.read(tmp_path, num_words=3).words == words[:3]
    pa.parquet.write_table(columns(["c"], np.ones((1, 3))), tmp_path / "part-11.parquet")
    with pytest.raises(UserError, match=r"part-11\.parquet, row 1 of 'x' has not as many numbers"):
        vector_files.read(tmp_path)
    table = columns(["c"], FOUR[:1], label=[1])
    pa.parquet.write_table(table, tmp_path / "part-11.parquet")
    assert vector_files.read(tmp_path).words == [*words, "c"]
    with pytest.raises(UserError, match=r"part-11\.parquet has columns of other names or types"):
        list(vector_files.stream(tmp_path, rows=True))
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(UserError, match=r"state\.json is damaged"):
        vector_files.read(tmp_path)


def test_names_decide_between_several_columns(tmp_path):
    vectors = pa.array([[1, 2], [3, 4]], pa.list_(pa.float32()))
    more = {"vectors": vectors, "words": pa.array(["c", "d"]).dictionary_encode(), "label": [1, 2]}
    pa.parquet.write_table(columns(["a", "b"], FOUR + 1, **more), tmp_path / "a.parquet")
    space = vector_files.read(tmp_path / "a.parquet")
    assert space.words == ["c", "d"] and space.vectors.tolist() == FOUR.tolist()


@pytest.mark.parametrize("more", [{"labels": np.zeros(3)}, {}])
def test_row_numbers_are_the_words_of_an_array_without_words(tmp_path, more):
    np.savez(tmp_path / "a.npz", **{"vectors" if more else "any": np.eye(3, dtype=int)}, **more)
    words, vectors = vector_files.read(tmp_path / "a.npz", None, 2)
    assert words == ["0", "1"] and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.eye(3)[:2])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_complete_files_are_read(tmp_path, version):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["é", "word"]), "c": np.int32(4)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    read = read_npz(tmp_path / "a.npz")
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    assert read_npz(tmp_path / "a.npz", ("b", "none")).keys() == {"b"}
    content = npy_header((2,), "<f4", b"\0" * 8, version)
    (tmp_path / "a.npy").write_bytes(content)
    assert numpy_files.npy(tmp_path / "a.npy").tolist() == [0, 0]
    (tmp_path / "b.npz").write_bytes(packed("", {"x.npy": content}))
    assert read_npz(tmp_path / "b.npz")["x"].tolist() == [0, 0]
