"""Fetches that wait: for bytes, for time, for the end of a transaction, and for the deletion of a topic."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from patience import PATIENCE_SECONDS

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol.cluster import FetchedPartition, FetchPartition, FetchRequest, FetchResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.service.runtime.reply_handles import FutureReply
from coordinator_core.service.topics.fetch_purgatory import FetchPurgatory

#: Compared by identity, and never used otherwise.
PARTITION = cast(DataPartition, object())


class Partition:
    """What a fetch finds."""

    def __init__(self) -> None:
        self.records = b""
        self.error = ErrorCode.NONE
        self.reads = 0
        self.purgatory = FetchPurgatory(self.read)

    def read(self, _request: FetchRequest) -> tuple[FetchedPartition, ...]:
        self.reads += 1
        return (FetchedPartition("t", ZERO_UUID, 0, self.error, records=self.records),)

    def append(self, data: bytes, visible: bool = True) -> None:
        if visible:
            self.records += data
        self.purgatory.appended(PARTITION, len(data))

    def fetch(self, min_bytes: int, max_wait_ms: int) -> "asyncio.Future[FetchResponse]":
        reply_handle = FutureReply()
        request = FetchRequest((FetchPartition("t", ZERO_UUID, 0, 0),), max_wait_ms, min_bytes)
        self.purgatory.fetch(request, [PARTITION], reply_handle)
        return cast("asyncio.Future[FetchResponse]", reply_handle.future)


def run(test: Callable[[Partition], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Partition())

    asyncio.run(main())


def test_enough_bytes_are_answered_at_once() -> None:
    async def test(at: Partition) -> None:
        at.records = b"12345"
        assert at.fetch(5, 60_000).done()
        assert at.fetch(0, 60_000).done()
        assert at.fetch(99, 0).done()

    run(test)


def test_a_fetch_waits_for_its_bytes() -> None:
    async def test(at: Partition) -> None:
        waiting = at.fetch(6, 60_000)
        at.append(b"123")
        assert (waiting.done(), at.reads) == (False, 1)
        at.append(b"456")
        assert (await waiting).partitions[0].records == b"123456"
        at.append(b"789")
        assert at.reads == 2

    run(test)


def test_a_fetch_ends_after_its_time() -> None:
    async def test(at: Partition) -> None:
        waiting = at.fetch(6, 20)
        at.append(b"123")
        assert (await asyncio.wait_for(waiting, PATIENCE_SECONDS)).partitions[0].records == b"123"

    run(test)


def test_invisible_records_do_not_count() -> None:
    """Records of an open transaction, for a consumer with read_committed; the marker makes them visible."""

    async def test(at: Partition) -> None:
        waiting = at.fetch(3, 60_000)
        at.append(b"123", visible=False)
        assert not waiting.done()
        at.records = b"123"
        at.purgatory.changed(PARTITION)
        assert (await waiting).partitions[0].records == b"123"

    run(test)


def test_a_deleted_partition_is_reported() -> None:
    async def test(at: Partition) -> None:
        waiting = at.fetch(3, 60_000)
        at.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        at.purgatory.changed(PARTITION)
        assert (await waiting).partitions[0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(test)


def test_a_shutdown_answers_all() -> None:
    async def test(at: Partition) -> None:
        waiting = [at.fetch(3, 60_000), at.fetch(9, 60_000)]
        at.purgatory.close()
        assert [each.done() for each in waiting] == [True, True]

    run(test)
