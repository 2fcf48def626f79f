"""Files cut short, gone or with a flipped bit: noticed, said, and made again to the same values."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow_datasets as tfds

from common import train
from common.data import kept, words
from common.data.wheels import WHEELS
from common.errors import UserError
from common.workdir import Workdir, read_arrays, write_arrays


def cut(content):
    return content[: len(content) // 2]


def empty(_):
    return b""


def flip(content):
    """One bit in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def hurt(path, how):
    if how is None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        path.write_bytes(how(path.read_bytes()))


def step(state, index, data, settings):
    noise = jax.random.normal(jax.random.key(index), state.shape)
    return 0.9 * state + noise, {"mean": noise.mean()}


def fit(path):
    work = Workdir(path, {})
    state = jnp.zeros((40, 40))
    state = train.run(step, state, 0, 0, num_steps=8, chunk=2, work=work, part="fit")
    work._lock.close()
    return work, np.asarray(state)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole"))


# The checkpoints that are hurt, a file in them (the largest, which has the arrays, where there are
# more), how, and the step from which the run goes on: without the hash the flip passes unnoticed.
CHECKPOINTS = {
    "array cut": ("8", "default/**/d/*", cut, 6),
    "array gone": ("8", "default/**/d/*", None, 6),
    "array flipped": ("8", "default/**/d/*", flip, 6),
    "half deleted": ("8", "default", None, 6),
    "tree cut": ("8", "default/_METADATA", cut, 6),
    "index flipped": ("8", "default/manifest.ocdbt", flip, 6),
    "both flipped": ("68", "default/**/d/*", flip, 0),
}


@pytest.mark.parametrize(("steps", "name", "how", "start"), CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    whole, tmp_path, caplog, steps, name, how, start
):
    work, state = whole
    shutil.copytree(work.path, tmp_path, dirs_exist_ok=True)
    for number in steps:
        folder = tmp_path / "checkpoints" / "fit" / number
        hurt(max(folder.glob(name), key=lambda path: path.stat().st_size), how)
    again, found = fit(tmp_path)
    np.testing.assert_array_equal(found, state)
    assert again.records() == work.records()
    said = [r.getMessage() for r in caplog.records if "is damaged" in r.getMessage()]
    assert len(said) == len(steps) and all("\n" not in sentence for sentence in said)
    kept_steps = {path.name for path in (tmp_path / "checkpoints" / "fit").iterdir()}
    assert kept_steps == {"6", "8"}


# What becomes of a part's file, and whether it is computed again.
PARTS = {
    "whole": (lambda content: content, False),
    "cut": (cut, True),
    "empty": (empty, True),
    "a digit": (lambda content: content.replace(b"0.25", b"0.35"), True),
    "a name": (lambda content: content.replace(b"mrr", b"nrr"), True),
    "no text": (lambda content: b"\xff" + content, True),
    "other JSON": (lambda content: b"[1]", True),
}


@pytest.mark.parametrize(("how", "again"), PARTS.values(), ids=PARTS)
def test_a_damaged_part_is_computed_again(tmp_path, caplog, how, again):
    calls = []

    def compute():
        calls.append(1)
        write_arrays(work.path / "anchors" / "a.npz", {"x": np.arange(5)})
        return {"mrr": (0.25, 1), 3: None}

    work = Workdir(tmp_path, {})
    first = work.part("a", compute, "anchors/a.npz")
    hurt(tmp_path / "parts" / "a.json", how)
    assert work.part("a", compute, "anchors/a.npz") == first == {"mrr": [0.25, 1], "3": None}
    assert len(calls) == 1 + again and ("is damaged" in caplog.text) == again
    hurt(tmp_path / "anchors" / "a.npz", flip)
    work.part("a", compute, "anchors/a.npz")
    assert len(calls) == 2 + again
    np.testing.assert_array_equal(read_arrays(tmp_path / "anchors" / "a.npz")["x"], np.arange(5))


def test_damaged_records_are_left_out(tmp_path):
    work = Workdir(tmp_path, {})
    for number in range(4):
        work.log("a", number, {"loss": 0.0})
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b"part", b"qart")
    lines[2] = lines[2].replace(b"loss", b"\xffoss")
    path.write_bytes(b"\n".join([*lines, b"7", b'{"part": "a", "st']))
    assert [record["step"] for record in work.records()] == [0, 2, 3]
    work.forget("a", after=9)
    assert len(path.read_text().splitlines()) == 3


def test_any_flipped_bit_of_kept_arrays_is_mended(tmp_path, monkeypatch):
    arrays = {"a": np.arange(3.0), "b": np.array(["x", "yz"])}
    monkeypatch.setattr(kept.logging, "info", print)
    monkeypatch.setattr(kept.logging, "warning", print)
    kept.arrays(tmp_path, "name", 1, lambda: arrays)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for place in range(0, len(content), 2):
        flipped = bytes([content[place] ^ (1 << place % 8)])
        path.write_bytes(content[:place] + flipped + content[place + 1 :])
        found = kept.arrays(tmp_path, "name", 1, lambda: arrays)
        assert found.keys() == arrays.keys(), place
        assert all(np.array_equal(found[name], arrays[name]) for name in arrays), place


def test_arrays_that_are_not_there_are_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"x\.npz is damaged \(FileNotFoundError\): delete it"):
        read_arrays(tmp_path / "x.npz")


class TinyRows(words.Embedded):
    """An embedded set of a few rows."""

    VERSION = tfds.core.Version("1.0.0")
    built = 0

    def _holds(self):
        features = {"row": tfds.features.Scalar(dtype=np.int32), "text": tfds.features.Text()}
        return WHEELS["bbc"], features

    def _generate_examples(self):
        type(self).built += 1
        for row in range(9):
            yield row, {"row": row, "text": f"text {row}" * 500}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("*array_record*", flip),
        ("*array_record*", cut),
        ("*array_record*", None),
        ("dataset_info.json", cut),
        ("dataset_info.json", None),
    ],
)
def test_a_damaged_data_set_is_built_again(tmp_path, caplog, name, how):
    def read():
        return words.examples(TinyRows(cache=tmp_path), tmp_path, "row")

    first = read()
    (path,) = (tmp_path / "tfds" / "tiny_rows" / "1.0.0").glob(name)
    content = path.read_bytes()
    # Most of a small file of records is padding.
    hurt(path, (lambda _: flip(content[:400]) + content[400:]) if how is flip else how)
    before = TinyRows.built
    assert json.dumps(read(), default=str) == json.dumps(first, default=str)
    assert TinyRows.built == before + 1 and "is damaged" in caplog.text
