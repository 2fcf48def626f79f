"""Files of a run or of the cache that are cut, deleted or changed are detected and made again."""

import shutil
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from common.data import array_cache
from common.errors import UserError
from common.files import read_arrays, write_arrays
from common.run import train
from common.run.workdir import Workdir
from tests.faults.killed_run import step


def cut(content):
    return content[: len(content) // 2]


def flip(content):
    """Flips one bit in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def damage(path, how):
    """Rewrites a file by `how`; deletes it if that is None."""
    if how:
        path.write_bytes(how(path.read_bytes()))
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def fit(path):
    work = Workdir(path, {})
    options = {"num_steps": 8, "chunk": 2, "work": work, "part": "fit"}
    with mock.patch.object(train, "SAVE_SECONDS", 0):  # a checkpoint after each chunk
        state = train.run(step, jnp.zeros((40, 40)), jax.random.key(0), 0, **options)
    work._lock.close()
    return work, np.asarray(state)


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("undamaged"))


@pytest.mark.parametrize(
    ("steps", "name", "how"),
    [
        ("8", "default/**/d/*", cut),
        ("8", "default/_METADATA", cut),
        ("8", "default", None),
        ("68", "default/**/d/*", flip),  # undetected by the storage format, detected by our hash
    ],
)
def test_training_resumes_from_the_checkpoint_before_a_damaged_one(
    undamaged, tmp_path, caplog, steps, name, how
):
    work, state = undamaged
    shutil.copytree(work.path, tmp_path, dirs_exist_ok=True)
    for number in steps:
        files = (tmp_path / "checkpoints/fit" / number).glob(name)
        damage(max(files, key=lambda path: path.stat().st_size), how)  # the one with the arrays
    again, resumed = fit(tmp_path)
    np.testing.assert_array_equal(resumed, state)
    assert again.metrics.records() == work.metrics.records()
    warnings = [r.getMessage() for r in caplog.records if "is damaged" in r.getMessage()]
    assert len(warnings) == len(steps) and not any("\n" in text for text in warnings)
    assert {path.name for path in (tmp_path / "checkpoints/fit").iterdir()} == {"6", "8"}
    aside = tmp_path / "checkpoints/fit-damaged"
    assert {path.name for path in aside.iterdir()} == set(steps)
    train.forget_checkpoints(again, "fit")
    assert not list((tmp_path / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied"), "fit/8 .Permission denied.: correct that"),
        (ValueError("PERMISSION_DENIED: Error opening"), "fit/8 .permission denied.: correct that"),
        (MemoryError(), None),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_kept(undamaged, tmp_path, error, sentence):
    shutil.copytree(undamaged[0].path, tmp_path, dirs_exist_ok=True)
    restore = mock.Mock(side_effect=error)
    with (
        mock.patch.object(ocp.CheckpointManager, "restore", restore),
        pytest.raises(UserError if sentence else MemoryError, match=sentence),
    ):
        fit(tmp_path)
    assert {path.name for path in (tmp_path / "checkpoints/fit").iterdir()} == {"6", "8"}


def test_a_checkpoint_of_another_precision_is_kept(undamaged, tmp_path):
    shutil.copytree(undamaged[0].path, tmp_path, dirs_exist_ok=True)
    with jax.enable_x64(True), pytest.raises(UserError, match=r"fit/8 holds .*float32.40,40.*X64"):
        fit(tmp_path)
    assert {path.name for path in (tmp_path / "checkpoints/fit").iterdir()} == {"6", "8"}


def test_an_array_that_cannot_be_read_is_kept_and_not_called_damaged(tmp_path):
    work = Workdir(tmp_path, {})
    write_arrays(tmp_path / "a.npz", {"x": np.arange(5)})
    work.part("one", dict, "a.npz")
    array_cache.load_or_compute(tmp_path, "a", 1, dict)
    with mock.patch.object(Path, "read_bytes", side_effect=PermissionError(13, "No")):
        for read in (
            lambda: read_arrays(tmp_path / "a.npz"),
            lambda: array_cache.load_or_compute(tmp_path, "a", 1, dict),
            lambda: work.part("one", dict, "a.npz"),
        ):
            with pytest.raises(PermissionError):
                read()
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.npz")["x"], np.arange(5))


DAMAGED_PARTS = {
    "cut": cut,
    "another digit": lambda content: content.replace(b"0.25", b"0.35"),
    "another name": lambda content: content.replace(b"mrr", b"nrr"),
    "another encoding": lambda content: b"\xff" + content,
    "other JSON": lambda content: b"[1]",
}


@pytest.mark.parametrize("how", DAMAGED_PARTS.values(), ids=DAMAGED_PARTS)
def test_a_damaged_part_is_computed_again(tmp_path, caplog, how):
    calls = []

    def compute():
        calls.append(1)
        write_arrays(work.path / "a.npz", {"x": np.arange(5)})
        return {"mrr": (0.25, 1), 3: None}

    work = Workdir(tmp_path, {})
    for damaged, calls_expected in ((None, 1), (None, 1), ("parts/a.json", 2), ("a.npz", 3)):
        if damaged:
            damage(tmp_path / damaged, flip if damaged == "a.npz" else how)
        assert work.part("a", compute, "a.npz") == {"mrr": [0.25, 1], "3": None}
        assert len(calls) == calls_expected and ("is damaged" in caplog.text) == bool(damaged)
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.npz")["x"], np.arange(5))
