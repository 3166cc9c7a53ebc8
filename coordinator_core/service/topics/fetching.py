"""Fetch requests: their sessions, and the wait for records."""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace

from coordinator_core.protocol.api import Response
from coordinator_core.protocol.cluster import FetchPartition, FetchRequest, FetchResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.topics.fetch_purgatory import FetchPurgatory
from coordinator_core.service.topics.fetch_sessions import Fetch, FetchSessions
from coordinator_core.service.topics.topic_reads import fetch_partitions
from coordinator_core.service.topics.topic_registry import TopicRegistry

_HIGHEST_SESSION_ID = (1 << 31) - 1


class Fetching:
    """Answers Fetch requests, with at most `session_slots` sessions."""

    def __init__(self, topics: TopicRegistry, session_slots: int, now_ms: Callable[[], int]) -> None:
        self._topics = topics
        self._now_ms = now_ms
        self.sessions = FetchSessions(session_slots, lambda: 1 + secrets.randbelow(_HIGHEST_SESSION_ID))
        self.purgatory = FetchPurgatory(lambda request: fetch_partitions(self._topics, request))

    def fetch(self, request: FetchRequest, reply_handle: ReplyHandle) -> None:
        """Answer the request, now or later."""
        fetch = self.sessions.begin(request, self._topics.names, self._now_ms())
        if fetch.error is not ErrorCode.NONE:
            reply_handle.answer(fetch.respond((), self._now_ms()))
            return
        partitions = fetch.partitions
        whole = request if partitions is request.partitions else replace(request, partitions=partitions)
        self.purgatory.fetch(whole, self._with_data(whole.partitions), _SessionReply(fetch, self._now_ms, reply_handle))

    def _with_data(self, partitions: Iterable[FetchPartition]) -> Iterable[DataPartition]:
        for each in partitions:
            topic = self._topics.find(each.topic or None, each.topic_id)
            found = None if topic is None else self._topics.partition(topic.name, each.partition)
            if found is not None:
                yield found


class _SessionReply:
    """The reply handle of a fetch, which leaves the choice of partitions to its session."""

    __slots__ = ("_fetch", "_now_ms", "_reply_handle")

    def __init__(self, fetch: Fetch, now_ms: Callable[[], int], reply_handle: ReplyHandle) -> None:
        self._fetch = fetch
        self._now_ms = now_ms
        self._reply_handle = reply_handle

    def answer(self, response: Response) -> None:
        """Receive the response for all partitions of the session."""
        assert isinstance(response, FetchResponse)
        self._reply_handle.answer(self._fetch.respond(response.partitions, self._now_ms()))
