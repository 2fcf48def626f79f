"""Files of texts and of pairs; test_broken_files.py has those that are refused."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from common.data.packages import CACHE_VARIABLE
from common.data.readers import pair_files, vector_files
from common.encoders import bert
from common.encoders import texts as text_encoders
from common.errors import UserError
from isthmus.texts import files as text_files
from tests import commands

# Few different lengths, because each is compiled.
LINES = ["land", "sea", "bridge", "land sea", "sea bridge", "bridge land", "land land"]
LINES += ["land sea bridge land", "sea land bridge land", "?"]


@pytest.fixture
def place(tmp_path, folder, monkeypatch):
    """A file of texts beside a model, encoded four at a time."""
    monkeypatch.setattr(text_encoders, "SHARD_TEXTS", 4)
    (tmp_path / "texts.txt").write_text("\n".join(LINES) + "\n")
    return tmp_path


def encode(place, name=None, source=None, output=None, **options):
    return text_files.encode_file(
        name or str(place / "tiny"),
        source or place / "texts.txt",
        output or place / "out" / "x.npz",
        place / "cache",
        **options,
    )


def files(place):
    return [path.name for path in (place / "out").iterdir()]


def test_the_output_has_texts_and_vectors(place):
    assert encode(place) == (10, 8)
    space = vector_files.read(place / "out" / "x.npz")
    assert space.words == LINES
    encoder = bert.load(text_encoders.read_files(str(place / "tiny"), place), "tiny")
    np.testing.assert_allclose(space.vectors, bert.encode(encoder, LINES), atol=1e-6)
    assert files(place) == ["x.npz"]
    encode(place, output=place / "cut.npz", max_length=3)
    cut = vector_files.read(place / "cut.npz").vectors
    np.testing.assert_allclose(cut, bert.encode(encoder, LINES, max_length=3), atol=1e-6)


def test_an_existing_output_is_never_overwritten(place, monkeypatch):
    encode(place)
    path = place / "out" / "x.npz"
    monkeypatch.setattr(bert, "encode", None)
    assert encode(place) == (10, 8)
    assert files(place) == ["x.npz"]
    (place / "others.txt").write_text("other")
    for changed in ({"max_length": 3}, {"source": place / "others.txt"}):
        with pytest.raises(UserError, match="exists and is not what this run would write"):
            encode(place, **changed)
    path.write_bytes(b"another file")
    with pytest.raises(UserError, match="exists and is not"):
        encode(place)


INVALID = [
    (lambda place: (place / "texts.txt").unlink(), {}, "Cannot read .*texts.txt .No such file"),
    (None, {"name": "/nowhere"}, "nor a folder with a readable config.json"),
    (None, {"output": Path("x.npy")}, "x.npy is no .npz file"),
    (None, {"output": Path("/dev/null/x.npz")}, "Cannot write /dev/null/x.npz .File exists"),
    (lambda place: (place / "out" / "x.npz").mkdir(parents=True), {}, "exists and is not what"),
]


@pytest.mark.parametrize(("change", "options", "message"), INVALID)
def test_invalid_arguments_are_user_errors_and_nothing_is_written(place, change, options, message):
    if change:
        change(place)
    before = sorted(place.rglob("*"))
    with pytest.raises(UserError, match=message):
        encode(place, **options)
    assert sorted(place.rglob("*")) == before


def test_a_text_without_a_vector_is_a_user_error(place):
    original = bert.encode

    def with_nan(*arguments, **options):
        vectors = original(*arguments, **options)
        vectors[1] = np.nan
        return vectors

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert, "encode", with_nan)
        with pytest.raises(UserError, match="no vector for the text 'sea'"):
            encode(place)
    assert files(place) == []
    assert encode(place) == (10, 8)


def test_lines_may_end_with_crlf_and_the_file_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\xef\xbb\xbfland\r\n\n\xc2\x85 sea ")
    assert text_files.read(path)[0] == ["land", "", "\x85 sea"]


def test_repeated_texts_and_texts_that_are_cut_inside_a_character_are_encoded(place):
    (place / "texts.txt").write_bytes(b"land\nsea\nland\ncaf\xc3\n")
    assert encode(place, errors="replace") == (4, 8)
    (space,) = vector_files.stream(place / "out" / "x.npz", distinct=False)
    assert space.words == ["land", "sea", "land", "caf\ufffd"]
    np.testing.assert_array_equal(space.vectors[0], space.vectors[2])


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.jsonl"])
def test_texts_of_tables_keep_their_ids(place, name):
    rows = [{"key": f"doc-{i}", "body": text} for i, text in enumerate(LINES)]
    if name == "t.jsonl":
        (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        write = pa.parquet.write_table if name == "t.parquet" else pa.feather.write_feather
        write(pa.Table.from_pylist(rows), place / name)
    named = {"text_column": "body", "id_column": "key"}
    assert encode(place, source=place / name, **named) == (10, 8)
    space = vector_files.read(place / "out" / "x.npz")
    assert space.words == [row["key"] for row in rows]
    encode(place, output=place / "lines.npz")
    np.testing.assert_array_equal(space.vectors, vector_files.read(place / "lines.npz").vectors)
    with pytest.raises(UserError, match="exists and is not what this run would write"):
        encode(place, source=place / name, text_column="body")  # other words
    with pytest.raises(UserError, match=r"has (no|not one column) 'text' but '?key'?, '?body"):
        encode(place, source=place / name)


def test_word_pairs_are_separated_by_a_tab_or_spaces(tmp_path):
    """tests/isthmus/test_align.py has files with headers and of row numbers."""
    text = "dog cane\ncat   gatto\nNew York\tNuova York\r\n\n dog\tcagna \n1\u00a0000 mille\n"
    (tmp_path / "d.txt").write_bytes(text.encode())
    assert pair_files.read(tmp_path / "d.txt").entries == [
        ("dog", "cane"),
        ("cat", "gatto"),
        ("New York", "Nuova York"),
        ("dog", "cagna"),
        ("1\u00a0000", "mille"),
    ]


def test_the_command_line(place, monkeypatch, capsys):
    monkeypatch.setenv(CACHE_VARIABLE, str(place / "cache"))
    output = place / "x.npz"
    flags = f"--model={place / 'tiny'}", f"--input={place / 'texts.txt'}", f"--output={output}"
    assert not commands.run(monkeypatch, "isthmus.texts", *flags)
    assert capsys.readouterr().out == f"{output}: vectors [10, 8]\n"
    assert vector_files.read(output).words == LINES
