"""The phases of a batch, for the column `phase_ms` of the table `batches` and for traces.

`observe_batches` receives every batch of the process when it is complete or has failed, wherever in the job it was made.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class TimedPhase:
    """One duration of a phase, in ns since the epoch. `rows` is the number of rows that it wrote, if known."""

    name: str
    started_ns: int
    ended_ns: int
    rows: int | None = None
    has_failed: bool = False


@dataclass(frozen=True)
class EndedBatch:
    """A batch that is complete, with its id and numbers of records; or one that has failed, with its error."""

    started_ns: int
    ended_ns: int
    phases: tuple[TimedPhase, ...]
    batch_id: int | None = None
    records_read: int = 0
    records_kept: int = 0
    error: BaseException | None = None


#: Receives batches in the thread that ends them, which it must not block; it raises nothing.
BatchObserver = Callable[[EndedBatch], None]

_observers: list[BatchObserver] = []


@contextmanager
def observe_batches(observer: BatchObserver) -> Iterator[None]:
    """Call `observer` with each batch of this process that ends meanwhile."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


class Phases:
    """Start time of a batch, and milliseconds by phase. A phase that is timed repeatedly has the sum."""

    def __init__(self, started_at: datetime) -> None:
        self.started_at = started_at
        self.ms: dict[str, int] = {}
        self._began_ns = time.time_ns()
        self._timed: list[TimedPhase] = []
        self._is_ended = False

    @contextmanager
    def timed(self, name: str, rows: int | None = None) -> Iterator[None]:
        """Add the duration of the `with` block to phase `name`. An error that leaves the block ends the batch as failed."""
        started_ns, started = time.time_ns(), time.monotonic_ns()
        failed: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failed = error
            raise
        finally:
            took_ns = time.monotonic_ns() - started
            self.ms[name] = self.ms.get(name, 0) + round(took_ns / 1_000_000)
            self._timed.append(TimedPhase(name, started_ns, started_ns + took_ns, rows, failed is not None))
            if failed is not None:
                self.failed(failed)

    def add(self, name: str, started_ms: int, ended_ms: int) -> None:
        """Add a phase that took place elsewhere, with its times in ms since the epoch."""
        self.ms[name] = ended_ms - started_ms
        self._timed.append(TimedPhase(name, started_ms * 1_000_000, ended_ms * 1_000_000))

    def finished(self, batch_id: int, records_read: int, records_kept: int) -> None:
        """Report the batch as complete."""
        self._end(batch_id=batch_id, records_read=records_read, records_kept=records_kept)

    def failed(self, error: BaseException) -> None:
        """Report the batch as failed."""
        self._end(error=error)

    def _end(
        self,
        *,
        batch_id: int | None = None,
        records_read: int = 0,
        records_kept: int = 0,
        error: BaseException | None = None,
    ) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        started_ns = min((self._began_ns, *(phase.started_ns for phase in self._timed)))
        ended = EndedBatch(started_ns, time.time_ns(), tuple(self._timed), batch_id, records_read, records_kept, error)
        for observer in _observers:
            observer(ended)
