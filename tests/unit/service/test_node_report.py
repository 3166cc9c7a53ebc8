"""What /health and /metrics report of topics with data and of transactions."""

import asyncio
import errno
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from data_partitions import batch
from served_coordinator import Served
from transaction_harness import ID, PARTITIONS, START_MS, TransactionHarness, metadata
from wire_connection import Wire

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import FetchPartition, FetchRequest, ProducePartition, ProduceRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import AddPartitionsToTxnRequest, InitProducerIdRequest
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.service.settings import Fsync
from coordinator_core.service.topics.fetch_sessions import FetchSessions
from coordinator_core.state.transaction_state import COMPLETE_ABORT, EMPTY, ONGOING, PREPARE_COMMIT
from coordinator_core.transaction_coordinator.events import ProducerFenced
from coordinator_core.transaction_coordinator.transaction_counts import TransactionCounts, count_transactions

#: Room for one batch in a segment.
PLAIN = TopicConfig({"segment.bytes": "100"})
COMPACTED = TopicConfig({"cleanup.policy": "compact", "segment.bytes": "100"})
TOPICS = {"orders": (2, PLAIN), "prices": (1, COMPACTED)}


def produce(wire: Wire, topic: str, partition: int, values: Sequence[bytes | None], **producer: Any) -> ErrorCode:
    request = ProduceRequest((ProducePartition(topic, ZERO_UUID, partition, batch(values, **producer)),))
    error: ErrorCode = wire.ask(apis.PRODUCE, 11, request).partitions[0].error
    return error


def begun(wire: Wire, transactional_id: str, partition: TopicPartition) -> ProducerEpoch:
    """The producer of a transaction with this partition."""
    made = wire.ask(apis.INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id, 60_000))
    if made.error in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        return begun(wire, transactional_id, partition)
    producer: ProducerEpoch = made.producer
    added = wire.ask(apis.ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest(transactional_id, producer, (partition,)))
    assert added.errors == {partition: ErrorCode.NONE}
    return producer


def test_metrics_of_topics_with_data(tmp_path: Path) -> None:
    def work(at: Served) -> None:
        wire = Wire(at.address.port)
        for values in ([b"a", b"b"], [b"c"]):
            assert produce(wire, "orders", 1, values) is ErrorCode.NONE
            assert produce(wire, "prices", 0, values, producer=7, sequence=0 if len(values) == 2 else 2) is ErrorCode.NONE
        wire.close()

        def of(name: str) -> dict[tuple[str, int], float]:
            labels = [(topic, number) for topic, (partitions, _) in TOPICS.items() for number in range(partitions)]
            text = at.get("/metrics")[1]
            return {
                (topic, number): at.metric(f'{name}{{partition="{number}",topic="{topic}"}}')
                for topic, number in labels
                if f'{name}{{partition="{number}",topic="{topic}"}}' in text
            }

        orders, prices = at.store.topics["orders"].partitions, at.store.topics["prices"].partitions
        (first, second) = prices[0].log.segments
        assert of("log_end_offset") == {("orders", 0): 0, ("orders", 1): 3, ("prices", 0): 3}
        assert of("log_start_offset") == {("orders", 0): 0, ("orders", 1): 0, ("prices", 0): 0}
        assert of("log_segments") == {("orders", 0): 1, ("orders", 1): 2, ("prices", 0): 2}
        assert of("log_size_bytes") == {
            ("orders", 0): 0,
            ("orders", 1): sum(segment.size for segment in orders[1].log.segments),
            ("prices", 0): first.size + second.size,
        }
        assert of("log_dirty_bytes") == {("prices", 0): first.size}
        assert of("producer_ids") == {("orders", 0): 0, ("orders", 1): 0, ("prices", 0): 1}
        assert at.metric('partitions{status="active",topic="orders"}') == 2
        prices[0].log.clean(0)
        assert of("log_dirty_bytes") == {("prices", 0): 0}

    served(tmp_path, work)


def test_metrics_of_transactions(tmp_path: Path) -> None:
    def work(at: Served) -> None:
        wire = Wire(at.address.port)
        place = TopicPartition("orders", 0)
        begun(wire, "open", place)
        begun(wire, "fenced", place)
        begun(wire, "fenced", place)
        wire.close()
        assert at.metric('transactions{state="Ongoing"}') == 2
        assert 0 < at.metric("oldest_transaction_seconds") < 60
        assert at.metric("pending_markers") == at.metric("late_transaction_partitions") == 0
        assert at.metric("producers_fenced_total") == 1
        assert [line["transactional_id"] for line in at.events("producer fenced")] == ["fenced"]
        assert at.metric('errors_total{api="INIT_PRODUCER_ID",error="CONCURRENT_TRANSACTIONS"}') >= 1
        assert at.metric('partitions{status="active",topic="__transaction_state"}') == 2

    served(tmp_path, work)


def test_metrics_of_fetch_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third consumer replaces one of the first two; a fetch without session has no effect."""

    def work(at: Served) -> None:
        def found() -> list[float]:
            names = ("sessions", "partitions_cached", "session_evictions_total")
            return [at.metric(f"incremental_fetch_{name}") for name in names]

        wire = Wire(at.address.port)
        assert found() == [0, 0, 0]
        for epoch, partitions, expected in ((-1, 1, [0, 0, 0]), (0, 2, [1, 2, 0]), (0, 1, [2, 3, 0]), (0, 1, [2, 2, 1])):
            requested = tuple(FetchPartition("orders", ZERO_UUID, number, 0) for number in range(partitions))
            response = wire.ask(apis.FETCH, 12, FetchRequest(requested, session_epoch=epoch))
            assert (response.session_id > 0) is (epoch == 0)
            assert found() == expected
        wire.close()

    # a session may be replaced without two minutes of disuse
    monkeypatch.setattr("coordinator_core.service.topics.fetching.FetchSessions", partial(FetchSessions, eviction_ms=-1))
    served(tmp_path, work, max_incremental_fetch_session_cache_slots=2)


def test_an_unexpected_error_of_an_fsync_fails_a_partition_with_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("a bug")

    def work(at: Served) -> None:
        monkeypatch.setattr("coordinator_core.segment_log.flushing.sync_files", failing)
        wire = Wire(at.address.port)
        assert produce(wire, "orders", 0, [b"a"]) is ErrorCode.KAFKA_STORAGE_ERROR
        wire.close()
        assert at.events("unexpected error")[0]["where"] == "fsync of orders-0"
        assert "RuntimeError: a bug" in at.health()[1]["failed_partitions"]["orders-0"]
        monkeypatch.undo()

    served(tmp_path, work, fsync=Fsync.ALWAYS)


@pytest.mark.parametrize("fsync", [Fsync.ALWAYS, Fsync.INTERVAL])
def test_a_failed_partition_with_data_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: Fsync) -> None:
    def failing() -> Any:
        def sync(_descriptors: Any, errors: Any) -> None:
            errors[:] = errno.EIO

        return sync

    def work(at: Served) -> None:
        wire = Wire(at.address.port)
        monkeypatch.setattr("coordinator_core.segment_log.flushing.sync_files", failing)
        first = produce(wire, "orders", 0, [b"a"])
        assert first is (ErrorCode.KAFKA_STORAGE_ERROR if fsync is Fsync.ALWAYS else ErrorCode.NONE)
        wait_for_failure(at)
        assert produce(wire, "orders", 0, [b"b"]) is ErrorCode.KAFKA_STORAGE_ERROR
        wire.close()
        (failed,) = at.events("partition failed")
        assert (failed["partition"], failed["level"]) == ("orders-0", "error")
        assert at.health() == (
            503,
            {
                "status": "failed",
                "partitions": {"active": 6, "failed": 1},
                "failed_partitions": {"orders-0": failed["reason"]},
            },
        )
        assert at.metric('partitions{status="failed",topic="orders"}') == 1
        assert at.events("unexpected error") == []

    served(tmp_path, work, fsync=fsync, fsync_interval_ms=5)


def test_a_failed_partition_of_the_transaction_log_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(at: Served) -> None:
        number = partition_for("t", 2)

        def append(_batches: list[AppendBatch], _now_ms: int) -> list[int]:
            raise PartitionFailed("the disk is gone")

        monkeypatch.setattr(at.transaction_log.partition(number), "append", append)
        wire = Wire(at.address.port)
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        while error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # until the first producer ids are allocated
            error = wire.ask(apis.INIT_PRODUCER_ID, 4, InitProducerIdRequest("t", 60_000)).error
        wire.close()
        assert error is not ErrorCode.NONE
        code, found = at.health()
        assert (code, found["status"]) == (503, "failed")
        assert found["failed_partitions"] == {f"__transaction_state-{number}": "the disk is gone"}
        assert at.metric('partitions{status="failed",topic="__transaction_state"}') == 1

    served(tmp_path, work)


def test_counts_of_a_log_partition() -> None:
    at = TransactionHarness(
        metadata(ONGOING),
        metadata(PREPARE_COMMIT, transactional_id="decided", start_ms=START_MS - 5),
        metadata(EMPTY, transactional_id="new"),
        metadata(COMPLETE_ABORT, transactional_id="ended", start_ms=START_MS - 100),
    )
    counted = count_transactions([at.shard.context])
    assert counted.states == {"Ongoing": 1, "PrepareCommit": 1, "Empty": 1, "CompleteAbort": 1}
    assert (counted.pending_markers, counted.oldest_start_ms) == (len(PARTITIONS), START_MS - 5)
    assert count_transactions([]) == TransactionCounts()


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_producer_is_fenced_once_the_log_has_the_abort(is_stored: bool) -> None:
    at = TransactionHarness()
    at.init()
    producer = at.producer()
    at.add(producer)
    at.append_error = None if is_stored else ErrorCode.COORDINATOR_NOT_AVAILABLE
    at.init()
    fenced = ProducerFenced(ID, producer.producer_id, producer.producer_epoch)
    assert at.events == ([fenced] if is_stored else [])


def wait_for_failure(at: Served) -> None:
    asyncio.run(at.eventually("the partition has failed", lambda: at.events("partition failed")))


def served(folder: Path, work: Any, **settings: Any) -> None:
    """Run `work` in a thread beside the coordinator."""
    Served(folder, TOPICS, **settings).run(lambda at: asyncio.to_thread(work, at))
