"""Queries over the tables of one batch, with their results kept up to a number of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

from pipelines.query.engine import Snapshot
from pipelines.query.plain_strings import plain_strings

#: The rows of a reading statement.
Query = Callable[[str], pa.Table]


class KeptQueries:
    """Answers from several threads. One query runs at a time, so that equal queries run once."""

    def __init__(self, snapshot: Snapshot, max_bytes: int) -> None:
        self._snapshot = snapshot
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._results: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        #: Versions of the tables that are not part of a batch, and queries over these versions.
        self._reopened: tuple[tuple[int, ...], KeptQueries] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the kept results."""
        return self._bytes

    def query(self, sql: str, *, keep: bool = True) -> pa.Table:
        """The rows of a reading statement, with plain strings. Raises UsageError as `Snapshot.query` does.

        Without `keep` the result is not kept, because the caller keeps what it makes of it.
        """
        with self._lock:
            if sql in self._results:
                self._results.move_to_end(sql)
                return self._results[sql]
            rows = plain_strings(self._snapshot.query(sql))
            if keep:
                self._keep(sql, rows)
            return rows

    def reopened(self) -> Query:
        """A query function over the same batch, with the newest rows of the tables that are not part of a batch.

        Their results are kept until one of these tables changes.
        """
        with self._lock:
            versions = self._snapshot.alert_versions()
            if self._reopened is None or self._reopened[0] != versions:
                self._reopened = versions, KeptQueries(self._snapshot.reopened(), self._max_bytes)
            return self._reopened[1].query

    def _keep(self, sql: str, rows: pa.Table) -> None:
        if rows.nbytes > self._max_bytes:
            return
        self._results[sql] = rows
        self._bytes += rows.nbytes
        while self._bytes > self._max_bytes:
            _, removed = self._results.popitem(last=False)
            self._bytes -= removed.nbytes
