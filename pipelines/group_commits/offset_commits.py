"""Commits of the queries of a session: each finished batch goes to the committer of its group."""

import atexit
import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from pipelines.group_commits.committer import CommitState, CommittedGroup, GroupCommitter
from pipelines.group_commits.finished_batch import FinishedBatch, finished_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQueryManager

#: Stands for the name of the query in a group id.
NAME = "{name}"
#: What waits is committed for at most this time when a query or the process ends.
_FLUSH_SECONDS = 5.0
_log = logging.getLogger("grouplake.commits")

OpenGroup = Callable[[str], CommittedGroup]


class OffsetCommits:
    """Commits of queries of a session, until `stop`. For threads of Spark and of the caller."""

    def __init__(self, group_id: str, query_id: str | None, topics: Collection[str] | None, open_group: OpenGroup) -> None:
        self._group_id, self._query_id, self._topics, self._open_group = group_id, query_id, topics, open_group
        self._lock = threading.Lock()
        self._committers: dict[str, GroupCommitter] = {}
        self._groups_of_queries: dict[str, str] = {}
        self._unnamed: set[str] = set()
        self._remove: Callable[[], None] = lambda: None

    @property
    def states(self) -> Mapping[str, CommitState]:
        """Group → how far its commits are."""
        with self._lock:
            return {group_id: committer.state for group_id, committer in self._committers.items()}

    def progressed(self, progress_json: str) -> None:
        """Take the progress of a query. Never raises, and never waits for a broker."""
        try:
            batch = finished_batch(progress_json, self._topics)
            if batch is not None and self._query_id in (None, batch.query_id):
                self._offer(batch)
        except Exception as error:
            _log.warning("progress of a query that cannot be read: %s", error)

    def ended(self, query_id: str) -> None:
        """A query has ended. Never raises."""
        with self._lock:
            committer = self._committers.get(self._groups_of_queries.get(query_id, ""))
        if committer is not None:
            committer.query_ended()

    def stop(self, seconds: float = _FLUSH_SECONDS) -> bool:
        """Commit what waits, for at most this time per group, and end all commits.

        Returns:
            Whether the groups have the offsets of the newest batches.
        """
        atexit.unregister(self.stop)
        with contextlib.suppress(Exception):  # the session may have ended before
            self._remove()
        with self._lock:
            committers = list(self._committers.values())
        return all([committer.close(seconds) for committer in committers])

    def listen(self, streams: "StreamingQueryManager", listener: "StreamingQueryListener") -> None:
        """Receive the events of the queries of a session."""
        streams.addListener(listener)
        self._remove = lambda: streams.removeListener(listener)
        atexit.register(self.stop)

    def _offer(self, batch: FinishedBatch) -> None:
        with self._lock:
            if NAME in self._group_id and not batch.name:
                if batch.query_id not in self._unnamed:
                    self._unnamed.add(batch.query_id)
                    _log.warning("query %s has no name, and commits no offsets: set one with queryName", batch.query_id)
                return
            group_id = self._group_id.replace(NAME, batch.name)
            if group_id not in self._committers:
                self._committers[group_id] = GroupCommitter(self._open_group(group_id), _log.warning)
            self._groups_of_queries[batch.query_id] = group_id
            self._committers[group_id].offer(batch)
