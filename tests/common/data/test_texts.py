import fcntl
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from common import bert
from common.data import encoders, texts, vectors
from common.data.wheels import cache_dir
from common.errors import UserError

ROOT = Path(__file__).parents[3]
# Few lengths, because each compiles.
LINES = ["land", "sea", "bridge", "land sea", "sea bridge", "bridge land", "land land"]
LINES += ["land sea bridge land", "sea land bridge land", "?"]


@pytest.fixture
def place(tmp_path, folder, monkeypatch):
    """A file of texts beside a model, encoded four at a time."""
    monkeypatch.setattr(texts, "CHUNK", 4)
    (tmp_path / "texts.txt").write_text("\n".join(LINES) + "\n")
    return tmp_path


def encode(place, **changed):
    options = {"name": str(place / "tiny"), "source": place / "texts.txt"} | changed
    output = options.pop("output", place / "out" / "x.npz")
    return texts.encode_file(
        options.pop("name"), options.pop("source"), output, place / "cache", **options
    )


def test_the_output_is_a_space_of_the_texts(place):
    assert encode(place) == (10, 8)
    space = vectors.read(place / "out" / "x.npz")
    assert space.words == LINES
    model = bert.load(lambda name: (place / "tiny" / name).read_bytes())
    np.testing.assert_allclose(space.vectors, bert.encode(*model, LINES, max_length=20), atol=1e-6)
    assert [path.name for path in (place / "out").iterdir()] == ["x.npz"]
    encode(place, output=place / "cut.npz", max_length=3)
    cut = vectors.read(place / "cut.npz").vectors
    np.testing.assert_allclose(cut, bert.encode(*model, LINES, max_length=3), atol=1e-6)


def test_a_killed_run_goes_on_to_the_same_numbers(place, monkeypatch):
    encode(place, output=place / "whole.npz")
    asked, original = [], bert.encode

    def counted(model, tokenizer, some, **options):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(list(some))
        return original(model, tokenizer, some, **options)

    monkeypatch.setattr(bert, "encode", counted)
    with pytest.raises(KeyboardInterrupt):
        encode(place)
    assert asked == [LINES[:4], LINES[4:8]]
    assert [path.name for path in (place / "out").iterdir()] == ["x.npz.parts"]
    with pytest.raises(UserError, match="holds a broken-off run of other texts"):
        encode(place, max_length=3)
    asked.clear()
    encode(place)
    assert asked == [LINES[8:]]
    assert [path.name for path in (place / "out").iterdir()] == ["x.npz"]
    with np.load(place / "whole.npz") as whole, np.load(place / "out" / "x.npz") as resumed:
        np.testing.assert_array_equal(resumed["vectors"], whole["vectors"])


def test_what_is_there_is_kept(place, monkeypatch):
    encode(place)
    path = place / "out" / "x.npz"
    before = path.read_bytes()
    (place / "out" / "x.npz.parts").mkdir()  # of a run killed after its last write
    monkeypatch.setattr(bert, "encode", None)
    assert encode(place) == (10, 8)
    assert not (place / "out" / "x.npz.parts").exists()
    for changed in ({"max_length": 3}, {"source": place / "tiny" / "config.json"}):
        with pytest.raises(UserError, match="exists and is not what this run would write"):
            encode(place, **changed)
    path.write_bytes(b"mine")
    with pytest.raises(UserError, match="exists and is not"):
        encode(place)
    path.write_bytes(before)


def test_a_damaged_chunk_and_another_process(place, monkeypatch, caplog):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", stop)
        with pytest.raises(KeyboardInterrupt):
            encode(place)
    parts = place / "out" / "x.npz.parts"
    with (parts / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"Another process is writing .*x\.npz"):
            encode(place)
    content = (parts / "000001.npz").read_bytes()
    (parts / "000001.npz").write_bytes(content.replace(b"\x3f", b"\x3e"))  # of the floats
    assert encode(place) == (10, 8)
    assert "000001.npz is damaged: encoding its texts again" in caplog.text
    found = vectors.read(place / "out" / "x.npz").vectors
    np.testing.assert_array_equal(np.linalg.norm(found, axis=1).round(5), 1)


def lines(content):
    return lambda place: (place / "texts.txt").write_bytes(content)


def nothing(place):
    pass


WRONG = [
    (lambda place: (place / "texts.txt").unlink(), {}, "Cannot read .*texts.txt .No such file"),
    (nothing, {"source": Path("/")}, "Cannot read / .Is a directory"),
    (lines(b""), {}, "texts.txt is empty: give a file"),
    (lines(b"land\n\nsea\n"), {}, "texts.txt, line 2 is empty"),
    (lines(b"land\nsea\n \t\r\n"), {}, "texts.txt, line 3 is empty"),
    (lines(b"land\nsea\nl\xe4nd\n"), {}, "line 3 is not UTF-8 text"),
    (lines("land\n".encode("utf-16")), {}, "line 1 is not UTF-8 text"),
    (lines(b"l\0a\0n\0d\0"), {}, "line 1 is not UTF-8 text"),
    (lines(b"land\nsea\nland \r\n"), {}, "line 3 is the same text as line 1"),
    (nothing, {"name": "/nowhere"}, "neither minilm nor a folder with a readable config.json"),
    (lambda place: (place / "tiny" / "tokenizer.json").unlink(), {}, "readable tokenizer.json"),
    (lambda place: (place / "tiny" / "model.safetensors").write_bytes(b""), {}, "has to be a BERT"),
    (nothing, {"max_length": 21}, "max_length is 21: give 3 to 20, the positions of '.*tiny'"),
    (nothing, {"max_length": 0}, "max_length is 0: give 3 to 20"),
    (nothing, {"output": Path("x.npy")}, "x.npy is no .npz file"),
    (nothing, {"output": Path("/dev/null/x.npz")}, "Cannot write /dev/null/x.npz .Not a directory"),
    (nothing, {"output": Path("/proc/x.npz")}, "Cannot write /proc/x.npz "),
    (lambda place: (place / "out" / "x.npz").mkdir(parents=True), {}, "exists and is not what"),
]


@pytest.mark.parametrize(("change", "options", "message"), WRONG)
def test_what_a_user_can_mend(place, change, options, message):
    change(place)
    before = sorted(place.rglob("*"))
    with pytest.raises(UserError, match=message) as error:
        encode(place, **options)
    assert "\n" not in str(error.value)
    assert sorted(place.rglob("*")) == before


def test_texts_too_long_for_an_array(place, monkeypatch):
    monkeypatch.setattr(texts, "LARGEST", 1 << 9)
    with pytest.raises(UserError, match=r"line 8 has 20 characters.* of 10 texts"):
        encode(place)


def test_a_text_without_a_vector(place):
    model = bert.encode

    def silent(*arguments, **options):
        found = model(*arguments, **options)
        found[1] = np.nan
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert, "encode", silent)
        with pytest.raises(UserError, match=r"texts\.txt, line 2: the encoder gives that text no"):
            encode(place)
    assert list((place / "out").iterdir()) == []
    assert encode(place) == (10, 8)


def test_lines_end_in_either_way_and_may_begin_with_a_mark(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\xef\xbb\xbfland\r\n\xc2\x85 sea ")
    assert texts.read(path) == ["land", "\x85 sea"]


def run(*arguments):
    line = [sys.executable, "-m", "common.encode", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_the_command_line(tmp_path, folder):
    source, output = tmp_path / "texts.txt", tmp_path / "x.npz"
    source.write_text("land sea")
    done = run(f"--model={folder}", f"--input={source}", f"--output={output}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{output}: vectors [1, 8]\n"
    model = bert.load(lambda name: (folder / name).read_bytes())
    found = vectors.read(output).vectors
    np.testing.assert_allclose(found, bert.encode(*model, ["land sea"]), atol=1e-6)


def test_a_wrong_command_line():
    done = run("--input=texts.txt", "--output=x.npz", "--max_length=long")
    assert done.returncode == 2
    assert "max_length" in done.stderr and len(done.stderr.splitlines()) == 1


def test_minilm_comes_along():
    model = encoders.load(encoders.read_files("minilm", cache_dir(), []), "minilm")
    assert model[2:] == ("mean", 256, 512)
    assert model.tokenizer.encode("a bridge").tokens == ["[CLS]", "a", "bridge", "[SEP]"]
