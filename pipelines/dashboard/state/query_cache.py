"""Queries over the tables of one batch, with their results kept up to a number of bytes."""

import threading
from collections.abc import Callable

import pyarrow as pa
from cachetools import LRUCache

from pipelines.dashboard.state.parallel import WORKERS
from pipelines.dashboard.state.single_flight import SingleFlight
from pipelines.query.engine import Snapshot

#: The rows of a reading statement.
Query = Callable[[str], pa.Table]


class QueryCache:
    """Answers from several threads. Equal queries run once, a few different ones at the same time."""

    def __init__(self, snapshot: Snapshot, max_bytes: int) -> None:
        self._snapshot = snapshot
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._results: LRUCache[str, pa.Table] = LRUCache(max_bytes, lambda rows: rows.nbytes)
        self._slots = threading.BoundedSemaphore(WORKERS)
        self._running: SingleFlight[str, pa.Table] = SingleFlight()
        #: Versions of the tables that are not part of a batch, and queries over these versions.
        self._reopened: tuple[tuple[int, ...], QueryCache] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the kept results."""
        return int(self._results.currsize)

    def query(self, sql: str, *, keep: bool = True) -> pa.Table:
        """The rows of a reading statement. Raises UsageError as `Snapshot.query` does.

        Without `keep` the result is not kept, because the caller keeps what it makes of it.
        """
        kept = self._kept(sql)
        return self._running.load(sql, lambda: self._read(sql, keep)) if kept is None else kept

    def _read(self, sql: str, keep: bool) -> pa.Table:
        # another thread may have read it since the look
        rows = self._kept(sql)
        if rows is None:
            with self._slots:
                rows = self._snapshot.query(sql)
            if keep and rows.nbytes <= self._max_bytes:
                with self._lock:
                    self._results[sql] = rows
        return rows

    def _kept(self, sql: str) -> pa.Table | None:
        with self._lock:
            return self._results.get(sql)

    def reopened(self) -> Query:
        """A query function over the same batch, with the newest rows of the tables that are not part of a batch.

        Their results are kept until one of these tables changes.
        """
        with self._lock:
            versions = self._snapshot.alert_versions()
            if self._reopened is None or self._reopened[0] != versions:
                self._reopened = versions, QueryCache(self._snapshot.reopened(), self._max_bytes)
            return self._reopened[1].query
