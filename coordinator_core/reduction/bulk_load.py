"""Load of a log partition from its beginning, by reduction.

The result is that of `GroupState.apply` for every record, in a fraction of the time: only the last commit of each key becomes an
object, and only when its group is read.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from uuid import UUID

import pyarrow as pa

from coordinator_core.codec import ClassicGroupDecoder
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.loaded_commits import loaded_commits
from coordinator_core.reduction.partition_reduction import PartitionReducer, Reduction
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.era import Era
from coordinator_core.state.garbage_collection import no_garbage_collection
from coordinator_core.state.group_state import GroupState
from coordinator_core.state.offsets import CommittedOffset, Producer

_NO_PRODUCER = -1
#: Loaded state does not depend on producer epochs.
_NO_EPOCH = -1
_COLUMNS = (
    *("group_id", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "commit_timestamp"),
    *("expire_timestamp", "topic_id", "producer_id", "log_offset"),
)
_OTHERS = (
    *("log_offset", "record_timestamp", "key", "value", "producer_id"),
    *("is_transactional", "is_control", "batch_offset"),
)


def load_columns(state: GroupState, partition: int, pieces: Iterable[RecordColumns]) -> tuple[Anomaly, ...]:
    """Load a whole log partition, in pieces in log order, into a state without it. Returns the anomalies that `apply` reports."""
    return load_reduction(state, reduce_columns(state.era, partition, pieces))


def reduce_columns(era: Era, partition: int, pieces: Iterable[RecordColumns]) -> Reduction:
    """Reduce a whole log partition, in pieces in log order."""
    reducer = PartitionReducer(era, partition)
    for columns in pieces:
        reducer.add(columns)
    return reducer.finish()


def load_reduction(state: GroupState, reduction: Reduction) -> tuple[Anomaly, ...]:
    """Load a whole log partition from its reduction, which starts at the beginning of the log."""
    with no_garbage_collection():
        return _load(state, reduction)


def _load(state: GroupState, reduction: Reduction) -> tuple[Anomaly, ...]:
    partition, offsets = reduction.partition, state.offsets
    rows = partial(_commits, partition, state.era, state.retention_ms)
    for group, commits in loaded_commits(reduction.commits.select(list(_COLUMNS)), rows).items():
        if group in offsets.committed:
            offsets.committed[group].update(commits)
        else:
            offsets.committed[group] = commits
    for group, partition_key, commit in rows(reduction.pending):
        offsets.pending.setdefault(Producer(partition, commit.producer_id), {}).setdefault(group, {})[partition_key] = commit
    groups, last = (reduction.group_activity.column(name).to_pylist() for name in ("group_id", "last_value_offset"))
    offsets.last_commit_at.update({group: at for group, at in zip(groups, last, strict=True) if at >= 0})
    return tuple(_apply_others(state, partition, reduction.others))


def _commits(
    partition: int, era: Era, retention_ms: int, table: pa.Table
) -> Iterable[tuple[str, TopicPartition, CommittedOffset]]:
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    epochs = {raw: _leader_epoch(era, raw) for raw in set(columns[4])}
    ids: dict[str | None, UUID | None] = {text: None if text is None else uuid_from_text(text) for text in set(columns[8])}
    default_ms = retention_ms if era.expiry_defaults_at_load else None
    for group, topic, number, offset, epoch, metadata, at, expires, topic_id, producer, log_offset in zip(*columns, strict=True):
        expiry = expires if expires != -1 else None if default_ms is None else at + default_ms
        owner = _NO_PRODUCER if producer is None else producer
        yield (
            group,
            TopicPartition(topic, number),
            CommittedOffset(offset, epochs[epoch], metadata, at, expiry, ids[topic_id], owner, partition, log_offset),
        )


def _leader_epoch(era: Era, raw: int) -> int | None:
    return era.leader_epoch(OffsetCommitValue(0, raw, "", 0, -1, ZERO_UUID))


def _apply_others(state: GroupState, partition: int, others: pa.Table) -> Iterator[Anomaly]:
    decoder = ClassicGroupDecoder()
    columns = (others.column(name).to_pylist() for name in _OTHERS)
    for offset, timestamp, key, value, producer_id, is_transactional, is_control, batch_offset in zip(*columns, strict=True):
        record = LogRecord(
            partition, offset, timestamp, key, value, producer_id, _NO_EPOCH, is_transactional, is_control, batch_offset
        )
        yield from state.apply(record, None if is_control else decoder.decode(key, value))
