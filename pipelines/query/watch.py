"""`--watch`: print again whenever a new batch is complete."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress

from pipelines.query.engine import Snapshot
from pipelines.query.output import plain

_CLEAR = "\x1b[2J\x1b[H"


def watch(root: str, seconds: float, show: Callable[[Snapshot], None]) -> None:
    """Show the newest batch under `root`, look for a newer one every `seconds`, and return after Ctrl-C.

    On a terminal each batch replaces the one before it.
    """
    shown = None
    with suppress(KeyboardInterrupt):
        while True:
            snapshot = Snapshot.open(root)
            if snapshot.batch.batch_id != shown:
                shown = snapshot.batch.batch_id
                if sys.stdout.isatty():
                    sys.stdout.write(_CLEAR)
                print(f"batch {shown}, complete at {plain(snapshot.batch.finished_at)}; Ctrl-C ends this")
                show(snapshot)
                sys.stdout.flush()
            time.sleep(seconds)
