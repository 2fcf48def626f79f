"""A run that is killed by SIGKILL at named points resumes, and ends with the same files."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.killed_run import POINTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(workdir, *kill_at):
    """The exit code of a run in another process."""
    command = [sys.executable, "-m", "tests.faults.killed_run", workdir, *kill_at]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed")
    assert run(workdir) == 0
    return workdir


def checkpoints(workdir, part):
    """Steps of a part's complete checkpoints."""
    complete = (workdir / "checkpoints" / part).glob("*/_CHECKPOINT_METADATA")
    return sorted(int(path.parent.name) for path in complete if path.parent.name.isdigit())


def test_a_run_killed_at_every_point_in_turn_ends_with_the_same_numbers(undisturbed, tmp_path):
    left = {}
    for point in POINTS:
        assert run(tmp_path, point) == -signal.SIGKILL, point
        parts = sorted(path.stem for path in (tmp_path / "parts").glob("*.json"))
        left[point] = parts, checkpoints(tmp_path, "walk-0"), checkpoints(tmp_path, "walk-1")
    assert left == {
        "start": ([], [], []),
        "first checkpoint": ([], [], []),
        "checkpoint": ([], [12, 18], []),
        "part file": ([], [30, 36], []),
        "between parts": (["walk-0"], [], []),
        "results": (["walk-0", "walk-1"], [], []),
    }
    assert not (tmp_path / "results.json").exists()
    assert run(tmp_path) == 0
    for name in ("results.json", "metrics.jsonl", "config.json", "parts/walk-0.json"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert not list(tmp_path.rglob("*.half"))


def test_finished_parts_and_steps_are_not_repeated(undisturbed, tmp_path):
    parts = list((undisturbed / "parts").iterdir())
    times = [path.stat().st_mtime_ns for path in parts]
    assert run(undisturbed) == 0
    assert times == [path.stat().st_mtime_ns for path in parts]
    times = []
    for _ in range(2):  # the second run starts from checkpoint 18 and does not write it again
        assert run(tmp_path, "checkpoint") == -signal.SIGKILL
        times.append((tmp_path / "checkpoints/walk-0/18").stat().st_mtime_ns)
    assert times[0] == times[1]
