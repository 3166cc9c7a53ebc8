"""One signal on its way to a collector: what was sent, what was dropped, and a line when that begins and ends."""

import time
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from pipelines.otlp.failure_reason import FailureReasons, reason_of_error
from pipelines.otlp.rejections import Rejections
from pipelines.otlp.settings import Signal, SignalSettings
from pipelines.runtime.progress import Progress

_NOUNS = {Signal.METRICS: "data points", Signal.TRACES: "spans"}


class Exporter(Protocol):
    """What the exporters of both signals have in common."""

    def export(self, data: Any, /) -> Enum:
        """Send data, with retries. Returns a member named SUCCESS or FAILURE."""
        ...

    def shutdown(self) -> None:
        """End, and abort retries of another thread."""
        ...


class Channel:
    """An exporter with its count of dropped items, rejected ones among them. `send` is for one thread at a time."""

    def __init__(
        self,
        settings: SignalSettings,
        exporter: Exporter,
        rejections: Rejections,
        reasons: FailureReasons,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._exporter = exporter
        self._rejections = rejections
        self._reasons = reasons
        self._progress = progress
        self._clock = clock
        self._failing_since: float | None = None
        self._dropped_before = 0
        self._rejecting_since: float | None = None
        self._rejected = 0
        #: Whether the present pass had a request that was taken, and one of which items were rejected.
        self._has_taken = self._has_rejected = False
        self._is_closed = False
        self.dropped = 0

    def send(self, data: object) -> bool:
        """Send data; False if the collector did not take them, which the caller counts with `drop`."""
        is_taken, reason = self._exported(data)
        self._count_rejected(self._rejections.take())
        if is_taken:
            self._has_taken = True
            self._recovered()
        elif self._failing_since is None:
            self._failing_since = self._clock()
            self._dropped_before = self.dropped
            noun = _NOUNS[self._settings.signal]
            self._progress(f"otlp: {self._settings.shown} does not take {noun} ({reason}): they are dropped until it does")
        return is_taken

    def drop(self, count: int) -> None:
        """Count items that were not sent."""
        self.dropped += count

    def end_pass(self) -> None:
        """End a pass over all that is new. Rejections are over after one that had none."""
        if self._rejecting_since is not None and self._has_taken and not self._has_rejected:
            seconds = self._clock() - self._rejecting_since
            self._rejecting_since = None
            shown, noun = self._settings.shown, _NOUNS[self._settings.signal]
            self._progress(f"otlp: {shown} rejects no {noun} any more, after {seconds:.0f} s: {self._rejected:,} were dropped")
        self._has_taken = self._has_rejected = False

    def close(self) -> None:
        """End the exporter, from any thread. Nothing more is sent."""
        self._is_closed = True
        self._exporter.shutdown()

    def report_end(self) -> None:
        """Count the dropped items that no line has counted yet in one."""
        if self._failing_since is not None:
            self._progress(f"otlp: {self._settings.shown} did not take {self._counted()}")
        if self._rejecting_since is not None:
            self._progress(f"otlp: {self._settings.shown} rejected {self._rejected:,} {_NOUNS[self._settings.signal]}")

    def _exported(self, data: object) -> tuple[bool, str]:
        """Whether the data were taken, and the reason if not."""
        if self._is_closed:
            return False, "the process ends"
        try:
            is_taken = self._exporter.export(data).name == "SUCCESS"
        except Exception as error:  # of an encoder, or of a client library: the export must go on
            return False, reason_of_error(error)
        return is_taken, self._reasons.take()

    def _count_rejected(self, count: int) -> None:
        if not count:
            return
        self.dropped += count
        self._has_rejected = True
        if self._rejecting_since is None:
            self._rejecting_since, self._rejected = self._clock(), 0
            shown, noun = self._settings.shown, _NOUNS[self._settings.signal]
            self._progress(f"otlp: {shown} rejects some {noun}: they are dropped until it takes all")
        self._rejected += count

    def _recovered(self) -> None:
        if self._failing_since is not None:
            seconds = self._clock() - self._failing_since
            self._failing_since = None
            shown, noun, counted = self._settings.shown, _NOUNS[self._settings.signal], self._counted()
            self._progress(f"otlp: {shown} takes {noun} again, after {seconds:.0f} s: {counted} were dropped")

    def _counted(self) -> str:
        return f"{self.dropped - self._dropped_before:,} {_NOUNS[self._settings.signal]}"
