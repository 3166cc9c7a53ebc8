"""`--watch`: print again whenever a new batch is complete."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress

from pipelines.query.engine import Snapshot
from pipelines.query.output import plain
from pipelines.query.tables_age import tables_age

_CLEAR = "\x1b[2J\x1b[H"


def watch(root: str, seconds: float, show: Callable[[Snapshot], None]) -> None:
    """Show the newest batch under `root`, again when it becomes old, look for a newer one every `seconds`, return after Ctrl-C.

    On a terminal each batch replaces the one before it.
    """
    shown = None
    with suppress(KeyboardInterrupt):
        while True:
            snapshot = Snapshot.open(root)
            # a batch that becomes old is shown again: it says so, and its statuses are unknown
            state = snapshot.batch.batch_id, tables_age(snapshot, root).is_old
            if state != shown:
                shown = state
                if sys.stdout.isatty():
                    sys.stdout.write(_CLEAR)
                print(f"batch {snapshot.batch.batch_id}, complete at {plain(snapshot.batch.finished_at)}; Ctrl-C ends this")
                show(snapshot)
                sys.stdout.flush()
            time.sleep(seconds)
