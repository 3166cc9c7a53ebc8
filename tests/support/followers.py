"""Tables that follow the log of a coordinator while it is written: with the real job, and without Spark."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from following import Job

from coordinator_core.sources.segments import SegmentSource
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.runtime.errors import UsageError
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.ranges import ranges
from pipelines.tables.store import TableStore

_ERA = Era.named("4")
_FAR_ABOVE_ALL_ROWS = 1_000_000_000
_LOOK_EVERY_SECONDS = 0.2


class Follower(Protocol):
    """Keeps the tables in the folder `tables` up to date."""

    tables: Path

    def start(self) -> None: ...

    def expect_alive(self) -> None:
        """Raise the error that ended it."""

    def stop(self) -> None: ...


def reached(follower: Follower) -> Mapping[int, int]:
    """The next offset of every partition, from the last batch."""
    try:
        batch = TableStore(str(follower.tables)).last_batch()
    except UsageError:
        return {}
    return {} if batch is None else batch.next_offsets


class JobFollower:
    """`grouplake run --trigger 500ms` in a process."""

    def __init__(self, log: Path, tables: Path) -> None:
        self.tables = tables
        self._log = log
        self._job: Job | None = None

    def start(self) -> None:
        """Start the process without waiting: Spark takes a while."""
        self._job = Job(f"segments:{self._log}", self.tables, trigger="500ms")

    def expect_alive(self) -> None:
        """Assert that the job runs and that it logged no exception."""
        assert self._job is not None
        assert self._job.running, self._job.text
        assert self._job.tracebacks == [], self._job.text

    def stop(self) -> None:
        """Kill the process."""
        if self._job is not None:
            self._job.__exit__()


class ThreadFollower:
    """The work of the job in a thread, without Spark."""

    def __init__(self, log: Path, tables: Path) -> None:
        self.tables = tables
        self._log = log
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def expect_alive(self) -> None:
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            store = TableStore(str(self.tables))
            store.create()
            applier = BatchApplier(store, _ERA, _ERA.default_retention_ms, dict, bulk_rows=_FAR_ABOVE_ALL_ROWS)
            options = SourceOptions.parse({"path": f"segments:{self._log}", "era": _ERA.name})
            source, start = SegmentSource(self._log), dict[int, int]()
            while not self._over.wait(_LOOK_EVERY_SECONDS):
                end = source.end_offsets()
                if end != start:
                    changes = pa.Table.from_batches(list(read_ranges(options, ranges(start, end))), SCHEMA)
                    applier.apply_rows(changes)
                    start = end
        except BaseException as error:
            self._failure = error
