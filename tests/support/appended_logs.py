"""Batches for the coordinator's own log, made from the records of a test, and a comparison of what its folder loads to."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from loaded_logs import replay
from log_builder import Log

from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_type
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.partition_log import PartitionLog
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings

TOPIC = "__consumer_offsets"
NOW_MS = 1_700_000_000_000
RecordParts = tuple[bytes | None, bytes | None, int, bool, bool]


def opened(directory: Path, settings: SegmentLogSettings, partitions: int = 1) -> SegmentLog:
    return SegmentLog.open(directory, TOPIC, partitions, settings)


def folder_of(directory: Path, partition: int = 0) -> Path:
    return directory / f"{TOPIC}-{partition}"


def commit(key: bytes, value: bytes | None) -> AppendBatch:
    return AppendBatch([(key, value)])


def batches_of(records: Iterable[LogRecord]) -> list[AppendBatch]:
    """Put neighbouring records of one producer into one batch; each marker gets a batch of its own."""
    batches = []
    for (producer, _, _), neighbours in groupby(records, key=_batch_key):
        batch = list(neighbours)
        owner = None if producer == -1 else (producer, 0)
        if batch[0].is_control:
            batches.append(AppendBatch((), owner, ControlType(control_type(batch[0].key) or 0)))
        else:
            batches.append(AppendBatch([(record.key or b"", record.value) for record in batch], owner))
    return batches


def _batch_key(record: LogRecord) -> tuple[int, bool, int]:
    return record.producer_id, record.is_control, record.offset if record.is_control else -1


def what(record: LogRecord) -> RecordParts:
    """A record without its position and time. Of a marker's value the coordinator epoch is left out, which no loader reads."""
    value = None if record.is_control else record.value
    return record.key, value, record.producer_id, record.is_transactional, record.is_control


def by_offset(log: PartitionLog) -> dict[int, RecordParts]:
    return {record.offset: what(record) for record in log.read()}


def loads_alike(records: Sequence[LogRecord], model: Sequence[LogRecord]) -> None:
    """Assert that both load to the same groups and offsets, less what brokers too lose by cleaning (`test_state_compaction`)."""
    (after, _), (before, _) = replay(records, "4"), replay(model, "4")
    assert after.offsets.committed == before.offsets.committed
    assert after.offsets.pending == before.offsets.pending
    views = {g: group.view({}) for g, group in before.registry.groups.items()}
    assert {g: group.view({}) for g, group in after.registry.groups.items()} == views
    assert {g: dict(after.committed(g)) for g in views} == {g: dict(before.committed(g)) for g in views}


def whole_log(log: Log) -> list[AppendBatch]:
    return batches_of(log.records)
