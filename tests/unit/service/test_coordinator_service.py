"""Loops of log partitions over a log in memory, with a clock that the test moves: order, group commit, failures, drain."""

import asyncio
from collections.abc import Hashable, Sequence
from typing import Any

from eventually import equal_to, eventually_async
from expecting import expect
from memory_log import MemoryLog
from patience import PATIENCE_SECONDS
from running_service import PLACE, Running, commit, join, run

from coordinator_core.group_coordinator.group_events import MemberRemoved
from coordinator_core.group_coordinator.result import CoordinatorResult
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.api import CoordinatorRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import ListGroupsRequest
from coordinator_core.protocol.membership import HeartbeatRequest, JoinGroupRequest, Protocol
from coordinator_core.protocol.offsets import (
    OffsetToCommit,
    ProducerEpoch,
    TxnMarkerRequest,
    TxnMarkerResponse,
    TxnOffsetCommitRequest,
)
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.service.node.services import drain
from coordinator_core.service.runtime.reply_handles import FutureReply
from coordinator_core.service.settings import Fsync


def test_what_comes_together_is_appended_together() -> None:
    async def work(at: Running) -> None:
        answers = await asyncio.gather(*(at.send(commit(offset)) for offset in range(20)))
        assert {answer.errors[PLACE] for answer in answers} == {ErrorCode.NONE}
        assert at.at.appends == [20]
        assert at.at.flushes == 1
        assert await at.committed() == 19

    run(work, fsync=Fsync.ALWAYS)


def test_requests_come_while_the_disk_is_busy() -> None:
    async def work(at: Running) -> None:
        loop = asyncio.get_running_loop()
        held: asyncio.Future[None] = loop.create_future()
        flush = at.at.flush
        at.at.flush = lambda: (asyncio.run_coroutine_threadsafe(_wait(held), loop).result(), flush())[1]  # type: ignore[method-assign]  # of this log alone
        first = at.send(commit(1))
        await eventually_async("the disk is busy", lambda: at.at.appends, equal_to([1]), pause_seconds=0.001)
        more = [at.send(commit(offset)) for offset in (2, 3)]
        # both have been taken while the first one waits
        assert not first.done()
        held.set_result(None)
        await asyncio.gather(first, *more)
        assert at.at.appends == [1, 2]

    run(work, fsync=Fsync.ALWAYS)


async def _wait(held: "asyncio.Future[None]") -> None:
    await held


def test_an_append_that_is_refused_changes_nothing_and_the_next_one_may_succeed() -> None:
    async def work(at: Running) -> None:
        assert await at.commit(1) is ErrorCode.NONE
        at.at.refuses = "no space left"
        assert await at.commit(2) is ErrorCode.NOT_COORDINATOR
        assert at.heard.refusals == ["no space left"]
        at.at.refuses = None
        assert await at.committed() == 1
        assert await at.commit(3) is ErrorCode.NONE
        assert at.service.partitions_by_status == {"active": 2}

    run(work)


def test_a_log_that_fails_ends_its_partition_and_no_other() -> None:
    async def work(at: Running) -> None:
        parked = at.send(join("")), at.send(join("x"))
        await asyncio.sleep(0)
        at.at.broken = "input/output error"
        assert await at.commit(1) is ErrorCode.NOT_COORDINATOR
        assert at.service.partitions_by_status == {"failed": 1, "active": 1}
        assert at.heard.failures == ["input/output error"]
        assert (await at.send(HeartbeatRequest("g", 1, "x"))).error is ErrorCode.NOT_COORDINATOR
        await asyncio.gather(*parked)
        at.service.elect(at.number, 9)
        assert await at.commit(1) is ErrorCode.NOT_COORDINATOR

    run(work)


def test_a_flush_that_fails_refuses_what_it_was_for() -> None:
    async def work(at: Running) -> None:
        append = at.at.append

        def appended(batches: Sequence[AppendBatch], now_ms: int) -> list[int]:
            offsets = append(batches, now_ms)
            at.at.broken = "fsync: input/output error"
            return offsets

        at.at.append = appended  # type: ignore[method-assign]  # of this log alone
        assert await at.commit(1) is ErrorCode.NOT_COORDINATOR
        assert at.service.partitions_by_status["failed"] == 1

    run(work, fsync=Fsync.ALWAYS)


def test_flushes_at_intervals_find_what_was_appended() -> None:
    async def work(at: Running) -> None:
        assert await at.commit(1) is ErrorCode.NONE
        assert at.at.flushes == 0
        await eventually_async("the log is flushed", lambda: at.at.flushes, pause_seconds=0.001)
        at.at.broken = "gone"
        at.service.loops[at.number].is_dirty = True
        await eventually_async("the failure is heard of", lambda: at.heard.failures, pause_seconds=0.001)

    run(work, fsync=Fsync.INTERVAL, fsync_interval_ms=1)


def test_elections_and_resignations() -> None:
    async def work(at: Running) -> None:
        assert await at.commit(5) is ErrorCode.NONE
        parked = at.send(join(""))
        member_id = (await parked).member_id
        waiting = at.send(join(member_id))
        at.service.resign(at.number, 2)
        assert await at.commit(6) is ErrorCode.NOT_COORDINATOR
        await waiting
        at.service.elect(at.number, 1)
        assert await at.commit(6) is ErrorCode.NOT_COORDINATOR
        at.service.elect(at.number, 3)
        assert await at.commit(6) in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE)
        await at.active()
        assert await at.committed() in (5, 6)
        at.service.resign(at.number, None)
        assert await at.commit(7) is ErrorCode.NOT_COORDINATOR

    run(work)


def test_a_partition_is_refused_while_it_loads_and_others_answer() -> None:
    async def life() -> None:
        at = Running()
        loop = asyncio.get_running_loop()
        held: asyncio.Future[None] = loop.create_future()
        read = at.at.read_columns
        begun: list[bool] = []

        def read_when_released() -> Any:
            begun.append(True)
            asyncio.run_coroutine_threadsafe(_wait(held), loop).result()
            return read()

        at.at.read_columns = read_when_released  # type: ignore[method-assign]  # of this log alone
        at.service.start()
        await eventually_async("the partition loads", lambda: begun, pause_seconds=0.001)
        assert await at.commit(1) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await at.send(ListGroupsRequest())).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        held.set_result(None)
        await at.active()
        assert await at.commit(1) is ErrorCode.NONE
        assert [group.group_id for group in (await at.send(ListGroupsRequest())).groups] == ["g"]
        await at.service.stop()

    asyncio.run(life())


def test_a_log_that_cannot_be_read_fails_the_partition() -> None:
    async def life() -> None:
        at = Running()
        at.at.unreadable = "input/output error"
        await at.start()
        assert at.service.partitions_by_status == {"failed": 1, "active": 1}
        assert at.heard.failures == ["input/output error"]
        await at.service.stop()

    asyncio.run(life())


def test_timers_follow_the_clock_that_is_given() -> None:
    async def work(at: Running) -> None:
        member_id = (await at.send(join(""))).member_id
        assert not at.heard.emitted[1:]
        at.now_ms += 10_001
        at.service.loops[at.number]._timer_fired()
        await eventually_async(
            "the member is removed",
            lambda: at.heard.emitted,
            lambda emitted: any(isinstance(fact, MemberRemoved) for fact in emitted),
            pause_seconds=0.001,
        )
        assert at.heard.emitted[-1] == MemberRemoved("g", member_id, "did not rejoin with its member id in time")

    run(work)


def test_a_timer_goes_off_by_itself() -> None:
    async def work(at: Running) -> None:
        member_id = (await at.send(join(""))).member_id
        response = await asyncio.wait_for(at.send(join(member_id)), PATIENCE_SECONDS)
        assert (response.error, response.generation) == (ErrorCode.NONE, 1)

    run(work)


def test_transactions_end_in_the_partition_that_is_named() -> None:
    async def work(at: Running) -> None:
        producer = ProducerEpoch(7, 0)
        pending = TxnOffsetCommitRequest("g", "tx", producer, {PLACE: OffsetToCommit(9)})
        assert (await at.send(pending)).errors[PLACE] is ErrorCode.NONE
        assert await at.committed() == -1
        for number, error in ((at.number, ErrorCode.NONE), (77, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
            reply_handle = FutureReply()
            at.service.end_transaction(number, TxnMarkerRequest(producer, ControlType.COMMIT), reply_handle)
            assert expect(TxnMarkerResponse, await reply_handle.future).error is error
        assert await at.committed() == 9

    run(work)


def test_stopping_answers_waiting_requests() -> None:
    async def life() -> None:
        at = Running(fsync=Fsync.ALWAYS)
        await at.start()
        under_way = [at.send(commit(offset)) for offset in range(5)]
        assert await drain([at.service], 5)
        assert all(each.done() for each in under_way)
        member_id = (await at.send(join(""))).member_id
        waiting = at.send(JoinGroupRequest("g", member_id, "consumer", (Protocol("range", b""),), 10_000, 10_000))
        await at.service.stop()
        assert (await waiting).error in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
        assert (await at.send(commit(1))).errors[PLACE] is ErrorCode.COORDINATOR_NOT_AVAILABLE
        again = Running(at.log)
        await again.start()
        assert await again.committed() == 4
        await again.service.stop()

    asyncio.run(life())


def test_a_bug_in_a_handler_is_an_answer() -> None:
    async def work(at: Running) -> None:
        def broken(request: CoordinatorRequest, reply: Hashable, now_ms: int) -> CoordinatorResult:  # noqa: ARG001 - named as those of `handle`
            raise RuntimeError("a bug")

        shard = at.service.shards[at.number]
        handle, shard.handle = shard.handle, broken  # type: ignore[method-assign]  # of this shard alone
        assert await at.commit(1) is ErrorCode.UNKNOWN_SERVER_ERROR
        shard.handle = handle  # type: ignore[method-assign]  # as it was
        assert await at.commit(1) is ErrorCode.NONE

    run(work)


def broken(*_: Any) -> Any:
    raise RuntimeError("a bug")


def test_an_unexpected_error_of_a_flush_fails_the_partition_and_answers() -> None:
    async def work(at: Running) -> None:
        at.log.flush = broken  # type: ignore[method-assign, assignment]  # fails on purpose
        assert await asyncio.wait_for(at.commit(1), PATIENCE_SECONDS) is ErrorCode.NOT_COORDINATOR
        assert at.service.partitions_by_status == {"failed": 1, "active": 1}
        assert (at.heard.bugs, at.heard.failures) == ([f"partition {at.number}: a bug"], ["RuntimeError: a bug"])

    run(work, fsync=Fsync.ALWAYS)


def test_a_log_that_answers_for_too_few_partitions_does_not_end_the_flusher() -> None:
    async def work(at: Running) -> None:
        at.log.flush = lambda _: []  # type: ignore[method-assign, assignment]  # fails on purpose
        assert await asyncio.wait_for(at.commit(1), PATIENCE_SECONDS) is ErrorCode.NOT_COORDINATOR

    run(work, fsync=Fsync.ALWAYS)


def test_requests_are_answered_after_a_failure_that_fails_itself() -> None:
    async def work(at: Running) -> None:
        shard = at.service.shards[at.number]
        shard.timers_due = shard.unload = broken  # type: ignore[method-assign, assignment]  # fails on purpose
        at.service.loops[at.number]._timer_fired()
        assert await asyncio.wait_for(at.commit(1), PATIENCE_SECONDS) is ErrorCode.NOT_COORDINATOR
        assert at.heard.bugs == [f"partition {at.number}: a bug", f"partition {at.number}, unloading: a bug"]
        assert at.service.partitions_by_status == {"failed": 1, "active": 1}
        del shard.unload

    run(work)


def test_producers_expire() -> None:
    """Every 10 minutes, and at the start those that the log has restored."""
    log = MemoryLog(2)

    async def ends(at: Running, producer_id: int) -> None:
        reply_handle = FutureReply()
        request = TxnMarkerRequest(ProducerEpoch(producer_id, 0), ControlType.COMMIT)
        at.service.end_transaction(at.number, request, reply_handle)
        assert expect(TxnMarkerResponse, await reply_handle.future).error is ErrorCode.NONE

    def known(at: Running) -> set[int]:
        return {entry.producer_id for entry in at.service.producers(at.number)}

    async def work(at: Running) -> None:
        await ends(at, 1000)
        at.now_ms += 600
        await ends(at, 1001)
        await at.service._expire_producers()
        assert known(at) == {1000, 1001}
        at.now_ms += 600
        await at.service._expire_producers()
        assert known(at) == {1001}

    run(work, log, producer_id_expiration_ms=1_000)

    async def after_a_restart() -> None:
        for later_ms, found in ((1_000, {1001}), (1_600, set[int]())):
            at = Running(log, producer_id_expiration_ms=1_000)
            at.now_ms += later_ms
            await at.start()
            assert known(at) == found
            await at.service.stop()

    asyncio.run(after_a_restart())
