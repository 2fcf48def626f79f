"""Progress bars: redrawn in a terminal or a notebook, a line now and then in a log."""

import contextlib
import sys
import time
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

LOG_SECONDS = 30  # between two lines
LOG_FORMAT = "{desc}: {n_fmt} of {total_fmt} ({elapsed}, {remaining} left)"
LOG_FORMAT_WITHOUT_TOTAL = "{desc}: {n_fmt} ({elapsed})"

# Standard error may be None, closed, or an object that has little of a file.
WITHOUT_STREAM = contextlib.suppress(AttributeError, ValueError, OSError)


def is_terminal() -> bool:
    """Whether standard error is a terminal."""
    with WITHOUT_STREAM:
        return sys.stderr.isatty()
    return False


def progress_bar(items: Iterable | None = None, **options: Any) -> tqdm:
    """The bar of tqdm, with its options, for standard error; without items, call `update`."""
    if is_terminal():
        return tqdm(items, **options)
    has_total = options.get("total") is not None or hasattr(items, "__len__")
    log = {
        "file": _Lines(),
        "mininterval": LOG_SECONDS,
        "maxinterval": LOG_SECONDS,
        "bar_format": LOG_FORMAT if has_total else LOG_FORMAT_WITHOUT_TOTAL,
    }
    return _Log(items, **log | options)


class _Log(tqdm):
    """A bar that is not drawn again sooner than every `mininterval` seconds, whoever asks.

    `set_postfix` draws a bar at each call; a line of a log does not even show what it sets.
    """

    def refresh(self, *args: Any, **options: Any) -> bool | None:
        """Draws the bar if it is time to."""
        drawn = getattr(self, "last_print_t", None)  # None: it has never been drawn
        if drawn is None or time.time() - drawn >= self.mininterval:
            return super().refresh(*args, **options)
        return None


class _Lines:
    """A file for tqdm that writes each state as a line, without the codes that move the cursor."""

    def write(self, text: str) -> None:
        if line := text.replace("\x1b[A", "").strip():
            with WITHOUT_STREAM:
                sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        with WITHOUT_STREAM:
            sys.stderr.flush()
