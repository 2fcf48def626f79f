"""Processes that begin at once with one empty cache read the same from it, and leave it whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import shared_cache

ROOT = Path(__file__).parents[2]
NUMBER = 2


@pytest.mark.slow
def test_processes_fill_one_cache_at_once(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.faults.shared_cache", folder, str(NUMBER)]
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **options) for _ in range(NUMBER)]
    alone = shared_cache.fill(tmp_path / "alone")
    files = sorted(path.relative_to(tmp_path / "alone") for path in (tmp_path / "alone").rglob("*"))
    for process in running:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        assert json.loads(out) == [alone] * shared_cache.ROUNDS
    for i in range(shared_cache.ROUNDS):
        cache = folder / f"cache-{i}"
        assert sorted(path.relative_to(cache) for path in cache.rglob("*")) == files
