"""Progress bars in a terminal and in a log."""

import io

import pytest

from common import progress
from common.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("total", [3, None])
def test_a_log_gets_lines_and_a_terminal_a_bar(monkeypatch, total):
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr("sys.stderr", stream)
        outer = progress_bar(["a"], desc="spaces")
        for _ in outer:  # a bar within a bar moves the cursor
            with progress_bar(desc="reading", total=total, unit="word") as bar:
                for _ in range(3):
                    bar.update(1)
        shown = stream.getvalue()
        assert ("\r" in shown) == stream.isatty()
        if not stream.isatty():
            lines = shown.splitlines()
            last = "reading: 3 of 3 (00:00, 00:00 left)" if total else "reading: 3 (00:00)"
            assert lines[0] == "spaces: 0 of 1 (00:00, ? left)" and last in lines
            assert all(lines) and "\x1b" not in shown
