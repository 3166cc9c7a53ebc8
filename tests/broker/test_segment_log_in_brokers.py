"""Brokers accept the folder of the coordinator's own log: they start on it and report the same end offsets."""

from pathlib import Path

import pytest
from appended_logs import NOW_MS, batches_of, opened
from log_builder import Log, member

from coordinator_core.log.compression import Compression
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import LogInUse
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.sources.kafka import KafkaSource
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

pytestmark = [pytest.mark.broker, pytest.mark.slow]

PARTITIONS = 2


def written() -> list[AppendBatch]:
    """Commits inside and outside of transactions, a group, tombstones."""
    log = Log()
    for number in range(20):
        log.commit(number % 4, number, group="billing")
        log.commit(number % 3, number, group="ledger", producer=7)
        log.marker(7, number % 2)
    log.group([member("m1")], group="billing")
    log.offset_tombstone(0, group="billing")
    return batches_of(log.records)


@pytest.mark.parametrize("version", ["3.9.1", "4.1.1"])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_broker_starts_with_it_and_has_the_same_end(tmp_path: Path, version: str, compression: Compression) -> None:
    log = opened(
        tmp_path,
        SegmentLogSettings(segment_bytes=2000, compression=compression, delete_retention_ms=0),
        partitions=PARTITIONS,
    )
    for number in range(PARTITIONS):
        partition = log.partition(number)
        for batch in written():
            partition.append([batch], NOW_MS)
        if number == 1:
            partition.roll()
            assert partition.clean(NOW_MS).segments_before > partition.clean(NOW_MS + 1).segments_after
        partition.flush()
    ends = {number: log.partition(number).end_offset for number in range(PARTITIONS)}
    records = {number: [record.offset for record in log.partition(number).read()] for number in range(PARTITIONS)}
    log.close()
    with PrivateBroker(version, offsets_partitions=PARTITIONS, properties={"log.cleaner.enable": "false"}) as broker:
        with Clients(broker.bootstrap) as clients:
            clients.create_topics(["orders"], 1)
            clients.commit(clients.consumer("makes-the-offsets-topic"), [("orders", 0, 1)])
        broker.stop()
        broker.place_segments(tmp_path)
        broker.start()
        with pytest.raises(LogInUse):
            opened(broker.data, SegmentLogSettings(), partitions=PARTITIONS)
        with KafkaSource(f"kafka://{broker.bootstrap}/__consumer_offsets") as served:
            assert served.end_offsets() == ends
            read: dict[int, list[int]] = {number: [] for number in ends}
            for number, columns in served.read_many({number: (0, end) for number, end in ends.items()}):
                assert columns.damages == ()
                read[number] += columns.offset.tolist()
        assert read == records
