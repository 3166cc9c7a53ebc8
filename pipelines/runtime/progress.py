"""Progress lines of long operations."""

import sys
import threading
from collections import deque
from collections.abc import Callable

#: Receives one line of text.
Progress = Callable[[str], None]


def no_progress(_line: str) -> None:
    """Drop a line."""


def print_progress(line: str) -> None:
    """Print a line to standard error: standard output holds results only."""
    print(line, file=sys.stderr, flush=True)


class RecentProgress:
    """Passes lines on and keeps the newest ones, for readers who do not see the terminal. For any number of threads."""

    def __init__(self, progress: Progress, kept: int = 12) -> None:
        """`kept` limits the number of lines."""
        self._progress = progress
        self._lines: deque[str] = deque(maxlen=kept)
        self._lock = threading.Lock()

    def __call__(self, line: str) -> None:
        with self._lock:
            self._lines.append(line)
        self._progress(line)

    def lines(self) -> tuple[str, ...]:
        """The newest lines, oldest first."""
        with self._lock:
            return tuple(self._lines)
