"""A disk that is full or locked: one sentence, exit code 2, no half files, and the run goes on."""

import contextlib
import errno
import json
import os
import re
import resource
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import flagsaver

from anchor_opt import align_files
from common import cli, train
from common.data import kept, words
from common.errors import UserError
from common.workdir import Workdir, read_arrays, replacing, write_arrays, write_json
from tests.faults.test_damage import TinyRows


@contextlib.contextmanager
def room(size):
    """No file may grow beyond so many bytes: the kernel refuses as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def step(state, index, data, settings):
    noise = jax.random.normal(jax.random.key(index), state.shape)
    return state + noise, {"mean": noise.mean()}


def experiment(path):
    """Writes all that a run writes, each file larger than the one before."""
    work = Workdir(path, {"a": 1})
    state = jnp.zeros((40, 40))

    def compute():
        found = train.run(step, state, 0, 0, num_steps=12, chunk=6, work=work, part="fit")
        write_arrays(path / "anchors" / "fit.npz", {"x": np.asarray(found)})
        return [float(x) for x in found.ravel()]

    try:
        write_json(path / "results.json", work.part("fit", compute, "anchors/fit.npz") * 2)
    finally:
        work._lock.close()


def leave(main, monkeypatch):
    """The exit code of a command line."""
    monkeypatch.setattr(sys, "argv", ["run"])
    with flagsaver.flagsaver(), pytest.raises(SystemExit) as left:
        cli.run(lambda argv: main())
    return left.value.code


def sentence(capsys):
    lines = capsys.readouterr().err.replace("\r", "\n").splitlines()
    (said,) = [line for line in lines if line.startswith("Cannot")]
    assert not any("Traceback" in line or "Exception" in line for line in lines)
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole")
    experiment(path)
    return path


# Bytes that a file may have, and the first that is larger.
ROOM = {
    "log": (60, r"Cannot write .*/test_a_full_disk_log_0 \(File"),
    "events": (130, r"Cannot write .*/test_a_full_disk_events_0 \(File"),
    "checkpoint": (4_000, "checkpoint .*/fit/6"),
    "part": (20_000, r"fit\.json"),
    "results": (60_000, r"results\.json"),
}


@pytest.mark.parametrize(("size", "says"), ROOM.values(), ids=ROOM)
def test_a_full_disk(whole, tmp_path, monkeypatch, capsys, size, says):
    with room(size):
        assert leave(lambda: experiment(tmp_path), monkeypatch) == 2
    said = sentence(capsys)
    assert re.search(says, said) and "File too large" in said, said
    assert not list(tmp_path.rglob("*.half"))
    for path in (path for path in tmp_path.rglob("*.json") if "checkpoints" not in path.parts):
        json.loads(path.read_text())
    assert not leave(lambda: experiment(tmp_path), monkeypatch)
    for name in ("results.json", "parts/fit.json"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


def test_events_that_do_not_fit_are_an_error(tmp_path):
    """TensorBoard's own writer waits here for a thread that has died."""
    work = Workdir(tmp_path, {})
    with room(6000), pytest.raises(OSError, match="File too large"):
        for number in range(100):
            work.log("a", number, {f"value {i}": 1.0 for i in range(5)})
    work._lock.close()


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES], ids=errno.errorcode.get
)
def test_a_disk_that_refuses(tmp_path, monkeypatch, capsys, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    (tmp_path / "results.json").write_text("[1]")
    monkeypatch.setattr(os, "replace", refuse)
    assert leave(lambda: write_json(tmp_path / "results.json", [2]), monkeypatch) == 2
    said = f"Cannot write {tmp_path}/results.json ({os.strerror(code)}): make room, or choose"
    assert sentence(capsys).startswith(said)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json").read_text() == "[1]"


def test_other_errors_keep_their_traceback(monkeypatch):
    def main():
        raise OSError(errno.ENOENT, "a bug of ours")

    monkeypatch.setattr(sys, "argv", ["run"])
    with flagsaver.flagsaver(), pytest.raises(OSError, match="a bug of ours"):
        cli.run(lambda argv: main())


def test_the_cache_and_the_files_of_align(tmp_path):
    with room(50), pytest.raises(UserError, match=r"File too large.*ISTHMUS_CACHE"):
        kept.arrays(tmp_path, "name", 1, lambda: {"a": np.ones(99)})
    for name in ("x.npz", "x.vec"):
        with room(50), pytest.raises(UserError, match=rf"Cannot write .*{name} \(File too large\)"):
            align_files.write_space(tmp_path / name, ["a", "b"], np.ones((2, 50)))
    with room(50), pytest.raises(UserError, match=r"x\.tsv \(File too large\)"):
        align_files.write_table(tmp_path / "x.tsv", ("a",), [("b" * 99,)])
    assert not list(tmp_path.iterdir())


def test_a_data_set_that_does_not_fit(tmp_path):
    """The writer of records has errors of its own."""
    with room(100), pytest.raises(UserError, match=r"Cannot build .* \(File too large\): point"):
        words.examples(TinyRows(cache=tmp_path), tmp_path, "row")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(words.examples(TinyRows(cache=tmp_path), tmp_path, "row")) == 9


def test_a_file_that_another_process_is_writing(tmp_path):
    path = tmp_path / "a.npz"
    with replacing(path) as file:
        file.write(b"first")
        with pytest.raises(BlockingIOError, match=r"a\.npz"):
            write_json(path, [1])
        # The cache: what was computed is there all the same.
        found = kept.arrays(tmp_path, "b", 1, lambda: {"x": np.ones(2)})
        (kept_at,) = tmp_path.glob("b-*.npz")
        kept_at.unlink()
        with replacing(kept_at):
            again = kept.arrays(tmp_path, "b", 1, lambda: {"x": np.ones(2)})
    np.testing.assert_array_equal(found["x"], again["x"])
    assert path.read_bytes() == b"first"
    (tmp_path / "a.npz.half").write_bytes(b"of a process that was killed, and longer")
    write_arrays(path, {"x": np.arange(3)})
    np.testing.assert_array_equal(read_arrays(path)["x"], np.arange(3))
    assert not list(tmp_path.glob("*.half"))
