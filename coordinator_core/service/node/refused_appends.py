"""Partitions whose log refuses appends, as on a full disk: /health reports them until the disk accepts writes again."""

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from coordinator_core.service.runtime.observer import Observer

#: Seconds between two probes, and without a refusal before a successful probe counts: a small file may still fit.
PROBE_SECONDS, QUIET_SECONDS = 1.0, 3.0
_PROBE_FILE = ".grouplake-probe"
_PROBE_BYTES = 64 * 1024


class RefusedAppends(Observer):
    """Reasons by TOPIC-NUMBER. `now` is a clock in seconds; `accepted` is called with the partitions that take appends again.

    A partition may get no further request, so success is not awaited: a file in the directory of the logs is the probe. Without a
    directory, for a log on brokers, a while without a refusal is enough.
    """

    def __init__(self, directory: Path | None, now: Callable[[], float], accepted: Callable[[Iterable[str]], None]) -> None:
        self._path = None if directory is None else directory / _PROBE_FILE
        self._now = now
        self._accepted = accepted
        self._last = 0.0
        self.reasons: dict[str, str] = {}

    def append_refused(self, partition: int | str, batches: int, reason: str) -> None:  # noqa: ARG002 - of the observer
        """Note a refusal."""
        self.reasons[f"{OFFSETS_TOPIC}-{partition}" if isinstance(partition, int) else partition] = reason
        self._last = self._now()

    async def check(self) -> None:
        """Forget the refusals once the directory takes a file, and no append was refused for a while."""
        if not self.reasons or self._now() - self._last < QUIET_SECONDS:
            return
        if await asyncio.to_thread(self._takes_a_file):
            self._accepted(self.reasons)
            self.reasons.clear()

    def _takes_a_file(self) -> bool:
        if self._path is None:
            return True
        try:
            with self._path.open("wb", buffering=0) as file:
                written = file.write(bytes(_PROBE_BYTES))
                os.fsync(file.fileno())
        except OSError:
            written = 0
        self._path.unlink(missing_ok=True)
        return written == _PROBE_BYTES
