"""One thread for each test process, as many of which as cores run at once; interrupted runs."""

import ctypes
import gc
import os

import hypothesis
import jax
import jaxtyping
import numpy as np
import pytest
from absl import app
from xdist.scheduler import LoadFileScheduling

# Annotations are checked at each call in these packages, which are imported below or later.
jaxtyping.install_import_hook(
    ["common", "isthmus", "anchor_opt", "frontier", "lpl", "embed_match", "wasserstein_embed"],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",  # an int is a float
)

from common.data import packages  # noqa: E402
from common.run import train  # noqa: E402
from tests import xla_flags  # noqa: E402
from tests.samples import bert_files  # noqa: E402

hypothesis.settings.register_profile(
    "any_speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any_speed")
os.environ.setdefault("XLA_FLAGS", xla_flags.FLAGS)
# Read when a process starts, as the workers do. By default glibc keeps memory for each thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MALLOC_ARENA_MAX", "1")
# Several devices are simulated in processes of their own, whose warnings pytest does not see.
os.environ.setdefault("PYTHONWARNINGS", "error::DeprecationWarning:common.parallel")
# Once in a process, so not in a test that restores the flags afterwards.
app.define_help_flags()


def pytest_configure(config):
    """The test processes, those that they start, and later tests share compiled programs."""
    programs = os.environ.setdefault(
        "JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("programs"))
    )
    seconds = os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    jax.config.update("jax_compilation_cache_dir", programs)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", float(seconds))


class OneLargeFile(LoadFileScheduling):
    """Files that need a gigabyte are run one after the other, by one process."""

    LARGE = ("test_bert.py", "test_distributed.py", "test_multilingual.py")

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return "large" if file.endswith(self.LARGE) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return OneLargeFile(config, log)


def pytest_collection_finish():
    """What was imported stays: collections of garbage, at the end of each file, leave it out."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)  # by the default a tenth of the time goes to collections


def pytest_collection_modifyitems(items):
    """A test is `fast` if it has neither of the other markers."""
    for item in items:
        if not any(item.iter_markers("network")) and not any(item.iter_markers("slow")):
            item.add_marker("fast")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Data that are read by a test without the marker `network` are an error that says so."""
    with pytest.MonkeyPatch.context() as patch:
        if not any(item.iter_markers("network")):
            patch.setenv(packages.CACHE_VARIABLE, f"{os.devnull}/the-test-is-not-marked-network")
        return (yield)


@pytest.fixture(scope="module", autouse=True)
def no_program_is_left():
    """Compiled programs end with the file that uses them: those of all files fill gigabytes."""
    yield
    jax.clear_caches()
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc returns no freed memory by itself
        libc.malloc_trim(0)


@pytest.fixture
def all_checkpoints(monkeypatch):
    """Trainings checkpoint after each chunk, however short it is."""
    monkeypatch.setattr(train, "SAVE_SECONDS", 0)


@pytest.fixture
def folder(tmp_path):
    """A folder with a BERT whose vocabulary are four words."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    rng = np.random.default_rng(0)
    files = bert_files(lambda shape: rng.normal(scale=0.5, size=shape).astype(np.float32))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
