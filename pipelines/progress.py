"""How long work tells how far it is."""

import sys
from collections.abc import Callable

#: Takes one line for people.
Progress = Callable[[str], None]


def print_progress(line: str) -> None:
    """Progress goes to standard error, so that standard output stays what was asked for."""
    print(line, file=sys.stderr, flush=True)
