"""Fetch sessions (KIP-227): a consumer sends only the partitions that changed, and gets only those that have something new.

A full fetch creates a session. Each incremental fetch after it has the session's epoch, which increases by one with every
request. Sessions are in memory only: a consumer whose session is unknown begins with a full fetch again.
"""

from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from coordinator_core.protocol.cluster import FetchedPartition, FetchPartition, FetchRequest, FetchResponse, ForgottenPartition
from coordinator_core.protocol.error_code import ErrorCode

#: `FetchMetadata.INVALID_SESSION_ID`, `INITIAL_EPOCH`, `FINAL_EPOCH`.
NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_HIGHEST_EPOCH = (1 << 31) - 1
_UNKNOWN = -1
#: `KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`.
EVICTION_MS = 120_000
#: Most partitions in all sessions together, which take about 0.5 KB each. Brokers limit the number of sessions only.
MOST_PARTITIONS = 200_000

#: Topic id, or name without an id, and number of a partition.
_Key = tuple[int | str, int]
TopicNames = Mapping[UUID, str]


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request after this one (`FetchMetadata.nextEpoch`)."""
    return 1 if epoch == _HIGHEST_EPOCH else epoch + 1


def _key(partition: FetchPartition | FetchedPartition | ForgottenPartition) -> _Key:
    return partition.topic_id.int or partition.topic, partition.partition


class CachedPartition:
    """A partition of a session: as it was requested last, and the offsets that the consumer has last received."""

    __slots__ = ("high_watermark", "log_start_offset", "requested")

    def __init__(self, requested: FetchPartition, high_watermark: int = _UNKNOWN, log_start_offset: int = _UNKNOWN) -> None:
        self.requested = requested
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset

    def resolve(self, names: TopicNames) -> None:
        """Set the name of a topic that was unknown by its id; a known name stays."""
        requested = self.requested
        if not requested.topic and requested.topic_id in names:
            self.requested = requested._replace(topic=names[requested.topic_id])

    def update(self, found: FetchedPartition) -> bool:
        """Take over what is sent; False if the consumer has it already."""
        is_new = (
            bool(found.records)
            or found.high_watermark != self.high_watermark
            or found.log_start_offset != self.log_start_offset
            or found.error is not ErrorCode.NONE
        )
        # once the error is gone, the partition is sent again
        self.high_watermark = found.high_watermark if found.error is ErrorCode.NONE else _UNKNOWN
        self.log_start_offset = found.log_start_offset
        return is_new


class FetchSession:
    """The partitions of one consumer, in the order in which they are read; `epoch` is that of the next request."""

    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "uses_topic_ids")

    def __init__(self, session_id: int, partitions: dict[_Key, CachedPartition], now_ms: int, *, uses_topic_ids: bool) -> None:
        self.id = session_id
        self.partitions = partitions
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.uses_topic_ids = uses_topic_ids

    def update(self, request: FetchRequest) -> None:
        """Add, replace and forget partitions."""
        for requested in request.partitions:
            cached = self.partitions.get(_key(requested))
            if cached is None:
                self.partitions[_key(requested)] = CachedPartition(requested)
            else:
                # a topic that was deleted since keeps its name
                cached.requested = requested if requested.topic else requested._replace(topic=cached.requested.topic)
        for forgotten in request.forgotten:
            self.partitions.pop(_key(forgotten), None)


class Fetch(Protocol):
    """A fetch between its request and its response."""

    @property
    def partitions(self) -> tuple[FetchPartition, ...]:
        """The partitions to read, in this order."""

    @property
    def error(self) -> ErrorCode:
        """Error of the session; then nothing is read."""

    def respond(self, found: tuple[FetchedPartition, ...], now_ms: int) -> FetchResponse:
        """Return the response for what was found in the partitions."""


class SessionlessFetch:
    """A fetch that has no session and creates none."""

    error = ErrorCode.NONE

    def __init__(self, partitions: tuple[FetchPartition, ...]) -> None:
        self.partitions = partitions

    def respond(self, found: tuple[FetchedPartition, ...], _now_ms: int) -> FetchResponse:
        return FetchResponse(found)


class SessionError:
    """A fetch whose session is unknown, or expects another epoch; the response has no partitions."""

    partitions: tuple[FetchPartition, ...] = ()

    def __init__(self, error: ErrorCode) -> None:
        self.error = error

    def respond(self, _found: tuple[FetchedPartition, ...], _now_ms: int) -> FetchResponse:
        return FetchResponse((), self.error)


class FullFetch:
    """A fetch of all partitions that its request has; its response creates a session, if there is room."""

    error = ErrorCode.NONE

    def __init__(self, sessions: "FetchSessions", request: FetchRequest) -> None:
        self._sessions = sessions
        self._requested = {_key(each): each for each in request.partitions}
        self._uses_topic_ids = request.uses_topic_ids
        self.partitions = tuple(self._requested.values())

    def respond(self, found: tuple[FetchedPartition, ...], now_ms: int) -> FetchResponse:
        def cached() -> dict[_Key, CachedPartition]:
            return {
                key: CachedPartition(self._requested[key], each.high_watermark, each.log_start_offset)
                for key, each in ((_key(each), each) for each in found)
            }

        session_id = self._sessions.create(len(found), cached, now_ms, uses_topic_ids=self._uses_topic_ids)
        return FetchResponse(found, session_id=session_id)


class IncrementalFetch:
    """A fetch of all partitions of a session; its response has those that have something new."""

    error = ErrorCode.NONE

    def __init__(self, session: FetchSession, names: TopicNames) -> None:
        self._session = session
        self._epoch = session.epoch
        if session.uses_topic_ids:
            for cached in session.partitions.values():
                cached.resolve(names)

    @property
    def partitions(self) -> tuple[FetchPartition, ...]:
        return tuple(cached.requested for cached in self._session.partitions.values())

    def respond(self, found: tuple[FetchedPartition, ...], _now_ms: int) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:
            # a second request of the session came meanwhile, over another connection
            return FetchResponse((), ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
        sent = []
        for each in found:
            key = _key(each)
            if session.partitions[key].update(each):
                sent.append(each)
                if each.records:
                    # read last the next time, so that no partition starves
                    session.partitions[key] = session.partitions.pop(key)
        return FetchResponse(tuple(sent), session_id=session.id)


class FetchSessions:
    """The sessions of a node (`FetchSessionCache`), at most `slots`.

    `new_id` returns random positive numbers. A new session replaces one that was not used for `eviction_ms`, or a smaller one
    that is older than that; otherwise there is none, and the consumer continues with full fetches.
    """

    def __init__(
        self, slots: int, new_id: Callable[[], int], eviction_ms: int = EVICTION_MS, most_partitions: int = MOST_PARTITIONS
    ) -> None:
        self._slots = slots
        self._new_id = new_id
        self._eviction_ms = eviction_ms
        self._most_partitions = most_partitions
        self._sessions: dict[int, FetchSession] = {}
        #: Number of partitions in all sessions.
        self.total_partitions = 0
        #: Number of sessions that were replaced by new ones.
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._sessions

    def begin(self, request: FetchRequest, names: TopicNames, now_ms: int) -> Fetch:
        """Return the fetch of a request; `names` has the topics by their ids."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.remove(request.session_id)
            if request.session_epoch == FINAL_EPOCH:
                return SessionlessFetch(request.partitions)
            return FullFetch(self, request)
        session = self._sessions.get(request.session_id)
        if session is None:
            return SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return SessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids is not request.uses_topic_ids:
            return SessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._continue(session, request, names, now_ms)

    def _continue(self, session: FetchSession, request: FetchRequest, names: TopicNames, now_ms: int) -> Fetch:
        size = len(session.partitions)
        session.update(request)
        self.total_partitions += len(session.partitions) - size
        if not session.partitions:
            self.remove(session.id)
            return SessionlessFetch(request.partitions)
        if self.total_partitions > self._most_partitions:
            self.remove(session.id)
            return SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.last_used_ms = now_ms
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetch(session, names)

    def create(
        self, size: int, partitions: Callable[[], dict[_Key, CachedPartition]], now_ms: int, *, uses_topic_ids: bool
    ) -> int:
        """Create a session of this size and return its id; NO_SESSION if the limits allow no further one."""
        if self.total_partitions + size > self._most_partitions:
            return NO_SESSION
        if len(self._sessions) >= self._slots and not self._evict(size, now_ms):
            return NO_SESSION
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, partitions(), now_ms, uses_topic_ids=uses_topic_ids)
        self._sessions[session_id] = session
        self.total_partitions += len(session.partitions)
        return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        """Remove one session that may be replaced by one of this size; False if there is none."""
        sessions = self._sessions.values()
        oldest = min(sessions, key=lambda session: (session.last_used_ms, session.id), default=None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            found = oldest
        else:
            older = (session for session in sessions if session.last_used_ms - session.created_ms > self._eviction_ms)
            smallest = min(older, key=lambda session: (len(session.partitions), session.id), default=None)
            if smallest is None or size <= len(smallest.partitions):
                return False
            found = smallest
        self.remove(found.id)
        self.evictions += 1
        return True

    def remove(self, session_id: int) -> None:
        """Remove a session, if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.total_partitions -= len(session.partitions)
