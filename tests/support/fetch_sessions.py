"""A node's fetch sessions with a clock that the test moves; topics are named after their ids."""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol.cluster import FetchedPartition, FetchPartition, FetchRequest, FetchResponse, ForgottenPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.service.topics.fetch_sessions import CachedPartition, Fetch, FetchSessions

IDS: Mapping[str, UUID] = {name: UUID(int=number) for number, name in enumerate(("foo", "bar", "zar"), 1)}
NAMES: Mapping[UUID, str] = {topic_id: name for name, topic_id in IDS.items()}

#: Name of a topic and number of a partition.
At = tuple[str, int]
FOO_0, FOO_1, BAR_0, BAR_1, ZAR_0 = ("foo", 0), ("foo", 1), ("bar", 0), ("bar", 1), ("zar", 0)


def requested(
    at: At, offset: int = 0, epoch: int = -1, *, by_id: bool = True, names: Mapping[UUID, str] = NAMES
) -> FetchPartition:
    """A partition of a request, as the wire reads it: the name is empty if `names` does not have the id."""
    topic, number = at
    if not by_id:
        return FetchPartition(topic, ZERO_UUID, number, offset, 100, epoch)
    return FetchPartition(names.get(IDS[topic], ""), IDS[topic], number, offset, 100, epoch)


def found(
    requested: FetchPartition, end: int = 10, error: ErrorCode = ErrorCode.NONE, records: bytes = b"", start: int | None = None
) -> FetchedPartition:
    topic, topic_id, number = requested[:3]
    if error is not ErrorCode.NONE:
        return FetchedPartition(topic, topic_id, number, error)
    return FetchedPartition(topic, topic_id, number, error, end, end if start is None else start, end, None, records)


def of(partitions: Iterable[FetchPartition | FetchedPartition]) -> list[At]:
    """The partitions by the names of their topics, empty for unknown ones."""
    return [(each.topic, each.partition) for each in partitions]


class Node:
    def __init__(self, slots: int = 10, eviction_ms: int = 1_000, most_partitions: int = 1_000) -> None:
        numbers = count(1)
        self.sessions = FetchSessions(slots, lambda: next(numbers), eviction_ms, most_partitions)
        self.now_ms = 0

    def begin(
        self,
        partitions: Iterable[FetchPartition] = (),
        session: tuple[int, int] = (0, 0),
        forgotten: Iterable[FetchPartition] = (),
        *,
        by_id: bool = True,
        names: Mapping[UUID, str] = NAMES,
    ) -> Fetch:
        """Begin a fetch; `session` is its id and epoch."""
        request = FetchRequest(
            tuple(partitions),
            session_id=session[0],
            session_epoch=session[1],
            forgotten=tuple(ForgottenPartition(*each[:3]) for each in forgotten),
            uses_topic_ids=by_id,
        )
        return self.sessions.begin(request, names, self.now_ms)

    def respond(self, fetch: Fetch, find: Callable[[FetchPartition], FetchedPartition] = found) -> FetchResponse:
        return fetch.respond(tuple(find(each) for each in fetch.partitions), self.now_ms)

    def create(self, size: int) -> int:
        """Create a session of this number of partitions."""
        partitions: dict[tuple[int | str, int], CachedPartition] = {
            (number, 0): CachedPartition(FetchPartition("t", UUID(int=number), 0, 0)) for number in range(1, size + 1)
        }
        return self.sessions.create(size, lambda: partitions, self.now_ms, uses_topic_ids=True)

    def touch(self, session_id: int, epoch: int) -> None:
        fetch = self.begin((), (session_id, epoch))
        assert fetch.error is ErrorCode.NONE
