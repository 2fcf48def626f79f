"""Files that are refused, each by one sentence; tests/faults has the files of all readers damaged.

Of every file it is checked as well that no more memory is taken than the file has, whatever sizes
it states.
"""

import gzip
import pickle
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import safetensors.numpy

from common import alignment
from common.data.readers import pair_files, vector_files
from common.data.sets import images
from common.errors import UserError
from isthmus.texts import files as text_files
from tests.faults.fuzz import check
from tests.faults.readers import (
    FORMATS,
    Reader,
    columns,
    idx,
    idx_files,
    members,
    npy,
    npy_header,
    packed,
    stored,
    vector_binary,
)

READERS = {
    "vectors": vector_files.read,
    "words": lambda path: vector_files.read(path.with_name("a.npy"), path),
    "pairs": pair_files.read,
    "texts": text_files.read,
    "texts with ids": lambda path: text_files.read(path, id_column="id"),
    "images": lambda path: [images.read_idx(path.parent, split) for split in ("train", "test")],
    "aligner": alignment.load,
}
BESIDE = {  # valid files
    "words": {"a.npy": npy(np.ones((3, 2)))},
    "images": {name: packed(name, content) for name, content in idx_files(5, 3).items()},
}


def refused(folder, reader, name, content, says):
    """Writes a file, of which the reader has to say that and where it is."""
    files = BESIDE.get(reader, {}) | {name: packed("", content)}
    path = folder / "files" / name
    sentence = check(Reader(files, lambda _: READERS[reader](path)), files, path.parent)
    assert sentence is not None, "the file is read"
    assert re.search(says, sentence), sentence
    shown = path.parent if reader == "images" else path
    assert str(shown) in sentence and ". " not in sentence.replace(str(path), "")


NAN, INF = np.nan, np.inf
VALUES = {  # words, vectors, and what the sentence says
    "NaN": (["a", "b"], [[1, 2], [NAN, 4]], "The vector of 'b' in .* holds a number that is NaN"),
    "infinite": (["a", "b"], [[1, 2], [-INF, 4]], "The vector of 'b' in .* holds a number"),
    "too large": (["a", "b"], [[1, 2], [3, 1e39]], "The vector of 'b' in .* too large for float32"),
    "zeros": (["a", "b"], [[1, 2], [0, -0.0]], "The vector of 'b' in .* or only zeros"),
    "a word twice": (["a", "a"], [[1, 2], [3, 4]], "vector 2: the word 'a' is empty or occurs"),
    "no rows": ([], np.zeros((0, 2)), r"holds no vectors|is of shape \(0, 2\)"),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(("words", "table", "says"), VALUES.values(), ids=VALUES)
def test_values_that_no_format_may_hold(tmp_path, name, write, words, table, says):
    content = packed(name, write(words, np.array(table, float)))
    refused(tmp_path, "vectors", name, content, says)


TERABYTE = 10**12
FOUR = np.array([[1, 2], [3, 4]], np.float32)
BINARY = vector_binary(["a", "b"], FOUR)
ZIPPED = gzip.compress(b"a 1 2\n", mtime=0)


def parquet(**others):
    """Words `name`, vectors `x`, and columns beside them or in their place."""
    return stored(pa.parquet.write_table, columns(["a", "b"], FOUR, **others))


def lists(*rows, kind=None):
    return pa.array(rows, pa.list_(kind or pa.float32()))


def false_sizes():
    """An archive with a member of a hundred bytes that all headers state to be a terabyte."""
    content = npy_header((TERABYTE // 8,), "<f8", bytes(100))
    stated = struct.pack("<I", 0xFFFFFFF0)
    size = struct.pack("<I", len(content))
    return packed("", {"x.npy": content}).replace(size * 2, size + stated)


NULL = pa.array([[1, 2], None], pa.list_(pa.float32(), 2))
FIXED = stored(pa.feather.write_feather, columns(["a", "b"], FOUR, x=NULL))
VECTORS = [  # name of a file, its content, and what the sentence says
    ("a.jsonl", b'{"a": 1}', "line 1 has no vector, a list of numbers in one of embedding, "),
    ("a.jsonl", b'{"id": 1, "vector": [1, 2]}\n{"vector": [1, 2]}', "line 2 has no 'id' but 'vec"),
    ("a.json", b'{\n "vector": [1, 2]\n}', "line 1 is no JSON object: write one object of an"),
    (
        "a.jsonl",
        b'{"vector": [1, 2]}\n{"vector": [1]}',
        "line 2 has a vector of 1 numbers, and the",
    ),
    ("a.jsonl", b'{"custom_id": "d", "response": null}', "a.jsonl holds no vectors"),
    ("a.txt", b"a text\nanother text", "texts become vectors by `isthmus encode`"),
    ("a.txt", b"", "a.txt holds no vectors"),
    ("a.txt", b"a\nb\n", "line 1 is not a word and its numbers"),
    ("a.txt", b"a 1 2 3\nb 1 2\n", "line 2 is not a word and 3 numbers"),
    ("a.vec", b"1 3\na 1 2\n", "line 2 is not a word and 3 .* line 1"),
    ("a.txt", b"a 1 2\nb 1 oops\n", "line 2 is not a word and 2 numbers"),
    ("a.txt", b"a 1 2\nb 1  2\n", "line 2 is not a word .*one space"),
    ("a.txt", b"a 1 2\n 1 2\n", "line 2 is not a word and 2 numbers"),
    ("a.txt", b"s0,.3 -.3\ns1,.1 .2\n", "line 1 is not a word and its"),
    ("a.txt", b". 5 1 2\nb 1 2\nc 1 2\n", "line 1 is not .* 2 num"),
    ("a.txt", b"a  .1 -.2\nb -.3  .4\nc  .5  .6\n", "line 1 is not .* by one space"),
    ("a.txt", b"a\t\t1\t2\nb\t\t1\t2\n", "line 1 is not a word .* by one tab"),
    ("a.csv", b"word,x,y\na,1,2\nb,1,2\n", "line 1 is not .* one comma as in"),
    ("a.vec", b"3 2\na 1 2\nb 1 2\n", "has 2 rows .* says 3"),
    ("a.vec", b"1 2\na 1 2\nb 1 2\n", "has 2 rows .* says 1"),
    ("a.txt", "a 1 2\né 1 2\n".encode("latin-1"), "line 2 is not UTF-8"),
    ("a.txt", BINARY[:-9] + b"\xff" * 9, "not UTF-8 text"),
    ("a.txt", b"a" * (2 << 20), "line 1 is not UTF-8 text of at most 1 MiB"),
    ("a.txt.gz", ZIPPED[:-6], "Cannot read .*a.txt.gz"),
    ("a.txt.gz", b"a 1 2\n", "Cannot read .*Not a gzipped file"),
    ("a.txt.gz", ZIPPED[:10] + b"\xff" * 20, "Cannot read"),
    ("a.bin", b"", "not word2vec's binary format.*another first line"),
    ("a.bin", BINARY[:-3], "row index 1 is cut or text"),
    ("a.bin", BINARY + b"c", "it has more than 2 rows"),
    ("a.bin", BINARY.replace(b"b ", b"\xff "), "word in UTF-8 and d floats"),
    ("a.bin", b"2 2\na 0.11 0.22\nb 1 2\n", "row index 0 is cut or text"),
    ("a.bin", struct.pack("<ii", 793712314, 12), "another first line"),  # a model of fastText
    ("a.bin", b"9 3\n" + b"a" * 99_999, "row index . is cut"),
    ("a.npy", b"", "is cut, is no file of its format"),
    ("a.npy", npy(np.ones((30, 20)))[:-8], "never loaded"),
    ("a.npy", pickle.dumps([[1.0]]), "pickled Python objects"),
    ("a.npy", npy_header((TERABYTE,), "<f8", bytes(100)), "is cut"),
    ("a.npy", npy_header((1,), "|O", bytes(8)), "is cut"),
    ("a.npy", b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 70_000, "is cut"),
    ("a.npz", b"PK\x05\x06", "is cut"),
    ("a.npz", false_sizes(), "is cut"),
    ("a.npz", {"x.npy": npy_header((TERABYTE,), "<f8", bytes(100))}, "is cut"),
    ("a.npz", {"x.npy": npy_header((2, 3), "<f8", bytes(40))}, "is cut"),
    ("a.npz", {"x.npy": npy_header((TERABYTE,), "<U0")}, "is cut"),  # in a list they take memory
    ("a.npz", {"x.npy": npy_header((1,), "|O", bytes(8))}, "pickled"),
    ("a.npz", {"x.npy": npy_header((1,), [("a", "<f4")], bytes(4))}, "is cut"),
    ("a.npz", members(x=np.ones((2, 2)), y=np.ones(2)), "array 'vectors' in .* is missing"),
    ("a.npz", members(x=np.array([[1.0], [INF]])), "The vector of '1' in .* holds a number"),
    ("a.npz", members(vectors=np.ones(2)), r"is of shape \(2,\)"),
    ("a.npz", members(vectors=np.ones((2, 0))), r"is of shape \(2, 0\)"),
    ("a.npz", members(vectors=np.array([["1"]])), "type <U1"),
    ("a.npz", members(vectors=np.ones((1, 1), complex)), "real numbers"),
    ("a.npz", members(vectors=FOUR, words=np.array(["a"])), "1 words for 2 vectors"),
    ("a.npz", members(vectors=FOUR, words=np.array([b"a", b"b"])), "0 words .* 'words' of str"),
    ("a.npz", members(vectors=FOUR, words=np.array(["a", "\ud800"])), "0 words"),
    ("a.safetensors", b"\xff" * 40, "is no file of its format"),
    ("a.safetensors", {"a": FOUR, "b": FOUR}, r"'vectors' in .*\('a', 'b'\) is missing"),
    ("a.safetensors", {"a": np.ones((2, 2), int), "b": np.ones(3)}, r"\(none\) is missing: save"),
    ("a.safetensors", {"a": np.array([[1.0, NAN]])}, "vector of '0' in .* holds a number"),
    ("a.parquet", b"PAR1" + b"\xff" * 40, "is damaged or of another format"),
    ("a.arrow", b"ARROW1\0\0" + b"\xff" * 40, "is damaged or of another format"),
    ("a.feather", b"a 1 2\n", "is damaged or of another format"),
    ("a.parquet", parquet(y=lists([1], [2])), r"several columns of vectors \('x', 'y'\): name one"),
    ("a.parquet", parquet(z=["a", "b"]), r"several columns of words \('name', 'z'\): name one"),
    ("a.parquet", parquet(x=[1.0, 2.0]), r"no column of lists of numbers \(name, x\)"),
    ("a.parquet", parquet(x=lists([1, 2], [3])), "row 2 of 'x' has not as many numbers"),
    ("a.parquet", parquet(x=lists([1, 2], None)), "vector of .b. .* NaN, null"),
    ("a.feather", FIXED, "vector of .b. .* NaN, null"),
    ("a.parquet", parquet(name=["a", None]), "vector 2: the word '' is empty"),
]
OFFSETS = [  # of the word "a" in an .npz
    {},
    {"words_offsets": np.array([0, 2])},
    {"words_offsets": np.array([0, 3, 1])},
    {"words_offsets": np.array([0, 1]), "words_utf8": np.array([200], np.uint8)},
    {"words_offsets": np.array([0, 1]), "words_utf8": np.array([97])},
]
ONE = {"vectors": np.ones((1, 2)), "words_utf8": np.array([97], np.uint8)}
VECTORS += [("a.npz", members(**ONE | wrong), "0 words for 1 vectors") for wrong in OFFSETS]
WORDS = [
    ("w.txt", b"a\nb\n", "2 words for 3 vectors"),
    ("w.txt", b"a\nb\nc\nd\n", "4 words for 3 vectors"),
    ("w.txt", b"a\nb\n\xff\n", "line 3 is not UTF-8"),
]
PAIRS = [
    ("d.txt", b"", "is empty"),
    ("d.txt", b"a b\nc\n", "line 2 has 1 columns"),
    ("d.txt", b"a b c\n", "line 1 has 3 columns"),
    ("d.txt", b"a \xff\n", "line 1 is not UTF-8"),
    ("d.csv", b"dog,cane\n", "does not name its columns: .* source,target, or source_row,"),
    ("d.csv", b"source,target\ndog\n", "line 2 has 1 columns"),
    ("d.csv", b"source,target\n,cane\n", "line 2 has 1 columns"),
    ("d.csv", b"source,target\na,\xff\n", "line 1 is not UTF-8"),
    ("d.tsv", b'a\tb\n"c\td\n', "line 3 is not UTF-8 text with"),
]
TEXTS = [
    ("t.txt", b" \n\n", "t.txt is empty"),
    ("t.txt", b"land\nsea\nl\xe4nd\n", "line 3 is not UTF-8 text .* --errors=replace"),
    ("t.txt", "land\n".encode("utf-16"), "line 1 is not UTF-8 text"),
]
TEST, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
GOOD = BESIDE["images"][TEST]
OVERFLOWING = struct.pack(">3I", 1_620_712, 878_418, 38_871_733)  # 3 x 2^64 + 1,680 pixels
TRAIN = "train-images-idx3-ubyte.gz"
PACKED = BESIDE["images"][TRAIN]
IMAGES = [
    (TEST, GOOD[:-1], "no complete IDX file of 3 dimensions of bytes"),
    (TEST, GOOD[:4] + b"\xff" * 12 + GOOD[16:], "no complete IDX file"),
    (TEST, GOOD[:4] + OVERFLOWING + bytes(1_680), "no complete IDX file"),
    (TEST, GOOD[:2] + b"\x0d" + GOOD[3:], "no complete IDX file"),  # another type of items
    (TEST, GOOD[:3] + b"\x01" + GOOD[4:], "no complete IDX file"),
    (LABELS, idx(np.zeros(4)), "3 images and 4 labels"),
    (TRAIN, PACKED[:-20], "Cannot read"),
    (TRAIN, PACKED[:20] + bytes(20) + PACKED[40:], "Cannot read"),
]
ALIGNER = {
    "matrix": np.eye(3, 4),
    "source_means": np.zeros((1, 3)),
    "target_means": np.zeros((1, 4)),
    "normalise": np.array(["unit", "center"]),
    "method": np.array("ridge"),
    "source": np.array("a"),
    "target": np.array("b"),
    "profile_directions": np.eye(3)[:, :1],
    "profile_share": np.array(0.5),
}
WRONG = [
    {"matrix": np.ones(3)},
    {"matrix": np.full((3, 4), NAN)},
    {"matrix": np.array([["a"] * 4] * 3)},
    {"matrix": np.zeros((3, 0)), "target_means": np.zeros((1, 0))},
    {"source_means": np.zeros((1, 4))},
    {"target_means": np.zeros((2, 4))},
    {"normalise": np.array(["unit", "scale", "center"])},
    {"normalise": np.array(["unit"])},
    {"normalise": np.array(["unit", "center"] + ["unit"] * 1000)},
    {"profile_directions": np.eye(2)},
    {"profile_share": np.array(NAN)},
]
NAMELESS = {name: value for name, value in ALIGNER.items() if name != "target"}
ALIGNERS = [b"text", npy(FOUR), members(**NAMELESS)] + [members(**ALIGNER | x) for x in WRONG]
NO_IDS = stored(pa.parquet.write_table, pa.table({"text": ["one"]}))
BROKEN = {
    "vectors": VECTORS,
    "words": WORDS,
    "pairs": PAIRS,
    "texts": TEXTS,
    "texts with ids": [
        ("t.txt", b"one", "has no column 'id': leave out --id_column"),
        ("t.jsonl", b"", "is empty: give texts"),
        (
            "t.jsonl",
            b'{"text": "one"}',
            "line 1 has no 'id' but 'text': correct it or name another",
        ),
        ("t.parquet", NO_IDS, "has not one column 'id' but text: choose another --id_column"),
    ],
    "images": IMAGES,
    "aligner": [("m.npz", content, "is missing or is not an aligner") for content in ALIGNERS],
}


@pytest.mark.parametrize(
    ("reader", "name", "content", "says"),
    [(reader, *file) for reader, files in BROKEN.items() for file in files],
)
def test_a_broken_file_is_refused(tmp_path, reader, name, content, says):
    if name.endswith(".safetensors") and isinstance(content, dict):
        content = safetensors.numpy.save(content)
    refused(tmp_path, reader, name, content, says)


def test_the_aligner_is_read_without_these_changes(tmp_path):
    (tmp_path / "m.npz").write_bytes(packed("", members(**ALIGNER)))
    assert alignment.load(tmp_path / "m.npz").method == "ridge"


MISSING = [("pairs", "d.csv"), ("texts", "t.txt"), ("images", TEST)]
MISSING += [("vectors", f"a{end}") for end in (".txt", ".vec.gz", ".bin", ".npy", ".npz")]
MISSING += [("vectors", f"a{end}") for end in (".parquet", ".arrow", ".safetensors")]


@pytest.mark.parametrize(("reader", "name"), MISSING)
def test_a_missing_file_and_a_folder_are_user_errors(tmp_path, reader, name):
    path = tmp_path / "files" / name
    for file, content in BESIDE.get(reader, {}).items():
        path.parent.mkdir(exist_ok=True)
        (path.parent / file).write_bytes(content)
    path.unlink(missing_ok=True)
    with pytest.raises(UserError, match=f"Cannot read .*{name}.* .*No such file"):
        READERS[reader](path)
    path.mkdir(parents=True)
    with pytest.raises(UserError, match=f"Cannot read .*{name} .*[Dd]irectory"):
        READERS[reader](path)


def test_a_word_list_for_a_file_with_words_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no file of arrays: leave out"):
        vector_files.read(tmp_path / "a.txt", tmp_path / "w.txt")
