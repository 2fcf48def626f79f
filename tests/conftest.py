"""One thread for each test process, as many of which as cores run at once; interrupted runs."""

import os

import hypothesis
import pytest

from common.run import train
from tests import xla_flags

hypothesis.settings.register_profile("any_speed", deadline=None)
hypothesis.settings.load_profile("any_speed")
os.environ.setdefault("XLA_FLAGS", xla_flags.FLAGS)
# Several devices are simulated in processes of their own, whose warnings pytest does not see.
os.environ.setdefault("PYTHONWARNINGS", "error::DeprecationWarning:common.parallel")


@pytest.fixture
def all_checkpoints(monkeypatch):
    """Trainings checkpoint after each chunk, however short it is."""
    monkeypatch.setattr(train, "SAVE_SECONDS", 0)


@pytest.fixture
def interrupted(monkeypatch, all_checkpoints):
    """Calls a function, and interrupts it before the n-th chunk of training steps."""

    def interrupted(n, call):
        chunk, calls = train._chunk, []

        def stopped(*args):
            calls.append(args)
            if len(calls) == n:
                raise KeyboardInterrupt
            return chunk(*args)

        with monkeypatch.context() as patch:
            patch.setattr(train, "_chunk", stopped)
            with pytest.raises(KeyboardInterrupt):
                call()

    return interrupted


@pytest.fixture
def assert_resumes(interrupted):
    """Interrupts a run before each of some chunks; then its results are those of a whole run."""

    def assert_resumes(run, workdir, whole, *chunks):
        for chunk in chunks:
            interrupted(chunk, run)
            assert list(workdir.glob("checkpoints/*/*")) and not (workdir / "table.md").exists()
        run()
        for name in ("results.json", "table.md"):
            assert (workdir / name).read_text() == (whole / name).read_text()

    return assert_resumes
