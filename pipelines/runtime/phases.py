"""The phases of a batch, for the column `phase_ms` of the table `batches`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime


class Phases:
    """Start time of a batch, and milliseconds by phase. A phase that is timed repeatedly has the sum."""

    def __init__(self, started_at: datetime) -> None:
        self.started_at = started_at
        self.ms: dict[str, int] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the duration of the `with` block to phase `name`, also when the block raises."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.ms[name] = self.ms.get(name, 0) + round((time.monotonic() - started) * 1000)
