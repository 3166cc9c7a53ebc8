"""Progress lines of long operations."""

import sys
from collections.abc import Callable

#: Receives one line of text.
Progress = Callable[[str], None]


def no_progress(_line: str) -> None:
    """Drop a line."""


def print_progress(line: str) -> None:
    """Print a line to standard error: standard output holds results only."""
    print(line, file=sys.stderr, flush=True)
