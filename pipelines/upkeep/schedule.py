"""Maintenance by a job: at an interval and on request while it follows the log, otherwise once at its end when it is due."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from deltalake.exceptions import DeltaError

from pipelines.runtime.errors import AnotherWriter, GrouplakeError
from pipelines.runtime.progress import Progress
from pipelines.tables.object_stores import reason_of
from pipelines.tables.store import TableStore, query
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance
from pipelines.upkeep.requests import ACCEPTED, DONE, FAILED, Request, RequestFiles
from pipelines.upkeep.steps import MaintenanceInSteps

#: Phase of a batch that ends a maintenance, by the job or by `grouplake maintain`.
_IS_MAINTENANCE = "array_has(map_keys(phase_ms), 'age')"


class MaintenanceSchedule:
    """Maintenance of the tables under `root` in a thread of its own, table by table under `lock`.

    `interval_seconds`: 0 for maintenance on request only. The interval counts from the last maintenance of the tables, so that a
    restart does not postpone it.
    """

    def __init__(
        self,
        root: str,
        limits: Maintenance,
        interval_seconds: int,
        lock: threading.Lock,
        claim: Callable[[], TablesWriter],
        progress: Progress,
        clock_ms: Callable[[], int],
    ) -> None:
        self._root, self._limits, self._interval = root, limits, timedelta(seconds=interval_seconds)
        self._lock, self._claim, self._progress, self._clock_ms = lock, claim, progress, clock_ms
        self._requests = RequestFiles(root)
        self._next_look = 0.0
        self._begins_at: datetime | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._fenced: AnotherWriter | None = None

    def maintain_if_due(self) -> None:
        """Start maintenance if the interval has passed or a command requests it. Returns at once.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        if self._fenced is not None:
            raise self._fenced
        if self.is_running:
            return
        request = self._request()
        if request is not None:
            self._start(request)
        elif self._is_due():
            self._start(None)

    @property
    def is_running(self) -> bool:
        """Whether the tables are being maintained."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Wait for maintenance in progress, which ends with the present table."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def query_ended(self) -> None:
        """Maintain if that is due, in this thread.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        if self._is_due():
            self._stopped.clear()
            self._maintain(None)
        if self._fenced is not None:
            raise self._fenced

    def _request(self) -> Request | None:
        if time.monotonic() < self._next_look:
            return None
        self._next_look = time.monotonic() + self._requests.look_seconds
        try:
            request = self._requests.request()
            if request is not None:
                self._requests.write_answer(request, ACCEPTED)
        except GrouplakeError as error:
            self._progress(f"cannot look for requests for maintenance: {error}")
            self._next_look += self._interval.total_seconds() or 3_600
            return None
        return request

    def _is_due(self) -> bool:
        if not self._interval:
            return False
        if self._begins_at is None:
            self._begins_at = (_last_maintenance(self._root) or self._now) + self._interval
        return self._now >= self._begins_at

    def _start(self, request: Request | None) -> None:
        self._thread = threading.Thread(target=self._maintain, args=(request,), name="maintenance")
        self._thread.start()

    def _maintain(self, request: Request | None) -> None:
        self._begins_at = self._now + self._interval
        limits = self._limits if request is None else request.limits
        try:
            lines = MaintenanceInSteps(self._root, self._hold, limits, self._now).run(self._stopped.is_set)
            if lines is not None:
                self._progress(lines[-1])
            self._answer(request, DONE if lines else FAILED, lines or ("the job was stopped before the end of the maintenance",))
        except AnotherWriter as error:
            self._fenced = error
            self._answer(request, FAILED, (str(error),))
        except (GrouplakeError, DeltaError, OSError) as error:
            # such as a full disk, which ends the job only if it refuses a batch, too
            reason = str(error) if isinstance(error, GrouplakeError) else reason_of(error)
            again = f"; the next attempt is in {self._interval}" if self._interval else ""
            self._progress(f"maintenance failed: {reason}{again}")
            self._answer(request, FAILED, (reason,))

    def _answer(self, request: Request | None, state: str, lines: tuple[str, ...]) -> None:
        if request is not None:
            # without an answer the command reports that the job did not finish
            with suppress(GrouplakeError):
                self._requests.write_answer(request, state, lines)

    @contextmanager
    def _hold(self) -> Iterator[TablesWriter]:
        with self._lock:
            yield self._claim()

    @property
    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock_ms() / 1000, UTC)


def _last_maintenance(root: str) -> datetime | None:
    """End of the newest maintenance in `batches`, or of the first batch; None before that."""
    store = TableStore(root)
    if not store.exists():
        return None
    ends = query(
        {"batches": store.table("batches")},
        f"SELECT max(finished_at) FILTER (WHERE {_IS_MAINTENANCE}) AS maintained, min(finished_at) AS first FROM batches",
    )
    found: datetime | None = ends["maintained"][0].as_py() or ends["first"][0].as_py()
    return found
