"""Partitions of `__consumer_offsets` refuse markers and commits with stale epochs, as every partition of a broker does."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from appended_logs import NOW_MS, opened
from running_service import PLACE, Running, commit, run

from coordinator_core.log.entries import ControlType
from coordinator_core.producers.rules import ProducerError
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetToCommit, ProducerEpoch, TxnMarkerRequest, TxnOffsetCommitRequest
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.service.runtime.reply_handles import FutureReply

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT
STALE, FENCED, NONE = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.NONE
PRODUCER = 7


def transactional(offset: int, epoch: int) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest("g", "id", ProducerEpoch(PRODUCER, epoch), {PLACE: OffsetToCommit(offset)})


def marker(at: Running, epoch: int, coordinator_epoch: int = 1, version: int = 0, kind: ControlType = COMMIT) -> Any:
    reply = FutureReply()
    request = TxnMarkerRequest(ProducerEpoch(PRODUCER, epoch), kind, coordinator_epoch, version)
    at.service.end_transaction(at.number, request, reply)
    return reply.future


def test_stale_epochs() -> None:
    async def work(at: Running) -> None:
        assert (await at.send(transactional(5, 2))).errors[PLACE] is NONE
        assert (await marker(at, 1)).error is STALE
        assert await at.committed() == -1
        assert (await marker(at, 2)).error is NONE
        assert await at.committed() == 5
        assert (await marker(at, 2, coordinator_epoch=0)).error is FENCED
        assert (await at.send(transactional(6, 1))).errors[PLACE] is STALE
        assert (await marker(at, 3)).error is NONE
        assert (await at.send(transactional(7, 2))).errors[PLACE] is STALE
        assert await at.committed() == 5

    run(work)


def test_stale_epochs_within_one_append() -> None:
    """Each write is checked after the ones before it, and the others are appended."""

    async def work(at: Running) -> None:
        found = await asyncio.gather(
            at.send(commit(4)),
            at.send(transactional(5, 3)),
            marker(at, 2, kind=ABORT),
            at.send(transactional(6, 2)),
            marker(at, 4),
            marker(at, 3),
        )
        errors = [each.errors[PLACE] if hasattr(each, "errors") else each.error for each in found]
        assert errors == [NONE, NONE, STALE, STALE, NONE, STALE]
        assert at.at.appends == [3]
        assert await at.committed() == 5

    run(work)


@pytest.mark.parametrize(("version", "error"), [(0, NONE), (2, STALE)])
def test_markers_of_version_2_have_a_greater_epoch(version: int, error: ErrorCode) -> None:
    async def work(at: Running) -> None:
        await at.send(transactional(5, 2))
        assert (await marker(at, 2, version=version)).error is error
        assert (await marker(at, 3, version=version)).error is NONE
        # a repetition
        assert (await marker(at, 3, version=version)).error is NONE

    run(work)


def test_epochs_survive_a_restart(tmp_path: Path) -> None:
    records = [(b"key", b"value")]
    log = opened(tmp_path, SegmentLogSettings())
    log.partition(0).append([AppendBatch(records, (PRODUCER, 2)), AppendBatch((), (PRODUCER, 3), COMMIT, 5)], NOW_MS)
    log.close()
    log = opened(tmp_path, SegmentLogSettings())
    stale = [
        AppendBatch(records, (PRODUCER, 2)),
        AppendBatch((), (PRODUCER, 2), ABORT, 5),
        AppendBatch((), (PRODUCER, 3), ABORT, 4),
    ]
    fine = [AppendBatch(records), AppendBatch(records, (PRODUCER, 3)), AppendBatch((), (PRODUCER, 3), ABORT, 5)]
    rejected = log.partition(0).check_producers([*stale, *fine], NOW_MS)
    assert {position: reason.error for position, reason in rejected.items()} == {
        0: ProducerError.INVALID_PRODUCER_EPOCH,
        1: ProducerError.INVALID_PRODUCER_EPOCH,
        2: ProducerError.TRANSACTION_COORDINATOR_FENCED,
    }
    log.close()
