"""Queries over the tables of one batch, with their results kept up to a number of bytes."""

import threading
from collections.abc import Callable

import pyarrow as pa
from cachetools import LRUCache

from pipelines.query.engine import Snapshot

#: The rows of a reading statement.
Query = Callable[[str], pa.Table]


class QueryCache:
    """Answers from several threads. One query runs at a time, so that equal queries run once."""

    def __init__(self, snapshot: Snapshot, max_bytes: int) -> None:
        self._snapshot = snapshot
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._results: LRUCache[str, pa.Table] = LRUCache(max_bytes, lambda rows: rows.nbytes)
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
        with self._lock:
            kept = self._results.get(sql)
            if kept is not None:
                return kept
            rows = self._snapshot.query(sql)
            if keep and rows.nbytes <= self._max_bytes:
                self._results[sql] = rows
            return rows

    def reopened(self) -> Query:
        """A query function over the same batch, with the newest rows of the tables that are not part of a batch.

        Their results are kept until one of these tables changes.
        """
        with self._lock:
            versions = self._snapshot.alert_versions()
            if self._reopened is None or self._reopened[0] != versions:
                self._reopened = versions, QueryCache(self._snapshot.reopened(), self._max_bytes)
            return self._reopened[1].query
