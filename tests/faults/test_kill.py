"""A run that is killed by SIGKILL at named points resumes, and ends with the same files."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import killed_run

ROOT = Path(__file__).parents[2]
POINTS = list(killed_run.POINTS)


@contextlib.contextmanager
def runs(workdir):
    """A function that runs in another process, and returns the exit code."""
    command = [sys.executable, "-m", "tests.faults.killed_run", workdir]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdin and process.stdout

        def run(kill_at=""):
            process.stdin.write(f"{kill_at}\n")
            return int(process.stdout.readline())

        yield run
        process.stdin.close()


def checkpoints(workdir, part):
    """Steps of a part's complete checkpoints."""
    complete = (workdir / "checkpoints" / part).glob("*/_CHECKPOINT_METADATA")
    return sorted(int(path.parent.name) for path in complete if path.parent.name.isdigit())


@pytest.mark.slow
def test_a_run_killed_at_every_point_in_turn_ends_with_the_same_numbers(tmp_path, all_checkpoints):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    killed_run.main(whole)
    left, times = {}, []
    with runs(killed) as run:
        for point in sorted([*POINTS, "checkpoint"], key=POINTS.index):
            assert run(point) == -signal.SIGKILL, point
            parts = sorted(path.stem for path in (killed / "parts").glob("*.json"))
            left[point] = parts, checkpoints(killed, "walk-0"), checkpoints(killed, "walk-1")
            if point == "checkpoint":  # the second run starts from 18 and does not write it again
                times.append((killed / "checkpoints/walk-0/18").stat().st_mtime_ns)
        assert left == {
            "start": ([], [], []),
            "first checkpoint": ([], [], []),
            "checkpoint": ([], [12, 18], []),
            "part file": ([], [30, 36], []),
            "between parts": (["walk-0"], [], []),
            "results": (["walk-0", "walk-1"], [], []),
        }
        assert times[0] == times[1]
        assert not (killed / "results.json").exists()
        parts = {path: path.stat().st_mtime_ns for path in (killed / "parts").iterdir()}
        assert run() == 0
    assert parts == {path: path.stat().st_mtime_ns for path in parts}  # they are not repeated
    for name in ("results.json", "metrics.jsonl", "config.json", "parts/walk-0.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert not list(killed.rglob("*.half"))
