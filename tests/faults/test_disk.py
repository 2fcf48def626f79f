"""A full or write-protected disk is one sentence and exit code 2, and the run can be resumed."""

import contextlib
import errno
import gc
import json
import logging
import os
import re
import resource
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl import logging as absl_logging
from absl.testing import flagsaver

from common.data.readers.vector_files import Block
from common.errors import UserError
from common.files import write_arrays, write_json
from common.run import cli, train
from common.run.workdir import Workdir
from isthmus.align import files
from tests.faults.killed_run import step
from tests.faults.readers import cached, data_set

LONG = np.array(["b" * 99])
VECTORS = ("x.npz", "x.npy", "x.vec", "x.parquet")


def write_vectors(name, folder):
    files.write_blocks(folder / name, iter([Block(["a", "b"], np.ones((2, 50)))]))


@contextlib.contextmanager
def file_limit(size):
    """Lets no file grow beyond `size` bytes: the kernel then fails writes as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def experiment(path):
    """Writes each kind of file that a run writes, each larger than the one before."""
    work = Workdir(path, {"a": 1})
    options = {"num_steps": 12, "chunk": 6, "work": work, "part": "fit"}

    def compute():
        state = train.run(step, jnp.zeros((40, 40)), jax.random.key(0), 0, **options)
        write_arrays(path / "anchors/fit.npz", {"x": np.asarray(state)})
        return [float(x) for x in state.ravel()]

    try:
        write_json(path / "results.json", work.part("fit", compute, "anchors/fit.npz") * 2)
    finally:
        work._lock.close()


@pytest.fixture(autouse=True)
def no_program_is_kept(monkeypatch):
    """JAX would leave parts of programs in the user's cache, and warn of them ever after."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    monkeypatch.setenv(name.upper(), "1e9")
    jax.config.update(name, 1e9)
    yield
    jax.config.update(name, before)


@pytest.fixture
def failure(monkeypatch, capsys, all_checkpoints):
    """A function that runs a command line which fails, and returns its one sentence."""

    def run(main):
        gc.collect()  # tasks of orbax that earlier tests have left, of which pytest warns
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["run"])
        # Without the handlers of imported libraries, whose stream is a file and has the limit too.
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
        handler = absl_logging.get_absl_handler().python_handler
        monkeypatch.setattr(handler, "stream", sys.stderr)
        monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # without pytest's
        with flagsaver.flagsaver(), pytest.raises(SystemExit) as left:
            cli.run(lambda argv: main())
        lines = capsys.readouterr().err.replace("\r", "\n").splitlines()
        assert not any("Traceback" in line or "Exception" in line for line in lines)
        assert left.value.code == 2
        (sentence,) = [line for line in lines if line.startswith("Cannot")]
        return sentence

    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed")
    experiment(path)
    return path


@pytest.mark.parametrize(
    ("size", "file"),
    [
        (60, "test_a_full_disk"),  # the log
        (130, "test_a_full_disk"),  # TensorBoard's events
        (4_000, "checkpoint .*/fit/6"),
        (20_000, r"fit\.json"),
        (60_000, r"results\.json"),
    ],
)
def test_a_full_disk(undisturbed, tmp_path, failure, size, file):
    with file_limit(size):
        sentence = failure(lambda: experiment(tmp_path))
    assert re.search(rf"Cannot (read or )?write .*{file}.*File too large", sentence), sentence
    assert not list(tmp_path.rglob("*.half"))
    for path in (path for path in tmp_path.rglob("*.json") if "checkpoints" not in path.parts):
        json.loads(path.read_text())
    experiment(tmp_path)
    for name in ("results.json", "parts/fit.json"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes()


def count(state, index, data, settings):
    """A step of a state of several arrays."""
    return [array + 1 for array in state], {"first": state[0].mean()}


def test_a_checkpoint_of_several_arrays_that_do_not_fit_is_one_sentence(tmp_path, failure):
    def fail():
        state = [jnp.full((40, 40), i) for i in range(20)]
        options = {"num_steps": 1, "chunk": 1, "work": Workdir(tmp_path, {}), "part": "fit"}
        train.run(count, state, 0, 0, **options)

    with file_limit(2_000):
        assert "checkpoints/fit/1 (File too large)" in failure(fail)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_file_that_cannot_be_replaced_is_kept(tmp_path, monkeypatch, failure, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    path = tmp_path / "results.json"
    path.write_text("[1]")
    monkeypatch.setattr(os, "replace", refuse)
    assert f"{path} ({os.strerror(code)})" in failure(lambda: write_json(path, [2]))
    assert list(tmp_path.iterdir()) == [path] and path.read_text() == "[1]"


@pytest.mark.parametrize(
    ("sentence", "write"),
    [
        (r"File too large.*ISTHMUS_CACHE", cached),
        (r"Cannot build .* \(File too large\)", data_set),
        *((rf"{name} \(File too large\)", partial(write_vectors, name)) for name in VECTORS),
        (r"x\.tsv \(File too large\)", lambda p: files.write_table(p / "x.tsv", {"a": LONG})),
    ],
)
def test_files_of_the_cache_and_of_alignments_that_do_not_fit_are_user_errors(
    tmp_path, sentence, write
):
    with file_limit(50), pytest.raises(UserError, match=sentence):
        write(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
