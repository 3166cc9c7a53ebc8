"""Committed and pending offsets, from the offset commits and the transaction markers of a log (types 0 and 1).

A transactional commit is pending until the marker of its producer; COMMIT makes it replace an older commit. Releases define
"older" by different offsets: the first offset of the batch (0.11.0–1.0.1), the first record still present in the batch (1.0.2 and
later), or the record itself (Java). Comparing record offsets is right for every era: batches never interleave, so records of
different batches compare alike in all three, and records of one batch belong to one transaction or to no transaction. (Two
batches with the same first offset cannot exist in one log.)
"""

from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.state.era import Era, TombstoneScope


class Producer(NamedTuple):
    """A producer in one log partition: a marker ends the transaction in its own partition only."""

    log_partition: int
    producer_id: int


class CommittedOffset(NamedTuple):
    """An offset commit as loaded, with its log position. Times in ms.

    `expire_timestamp` is the explicit one or, up to 2.0, the default of the loader; None for none.
    `producer_id` is -1 outside of transactions.
    """

    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    topic_id: UUID | None
    producer_id: int
    log_partition: int
    log_offset: int


Offsets = dict[str, MutableMapping[TopicPartition, CommittedOffset]]


class OffsetState:
    """Committed and pending offsets, including those that an era hides."""

    def __init__(self, era: Era, retention_ms: int) -> None:
        self._era = era
        self._retention_ms = retention_ms
        self.committed: Offsets = {}
        self.pending: dict[Producer, Offsets] = {}
        #: Group id → log offset of its last commit, including pending and superseded commits. The Java coordinator creates a
        #: simple group for a commit of an unknown group, so a removed group exists again after a later commit.
        self.last_commit_at: dict[str, int] = {}

    def apply(self, log_record: LogRecord, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Replay a commit, or a tombstone (value None), as `OffsetMetadataManager.replay` or the Scala loader does."""
        partition = TopicPartition(key.topic, key.partition)
        producer = self._transaction_of(log_record)
        if value is None:
            self._remove(key.group, partition, producer)
            return
        commit = self._commit(log_record, value)
        self.last_commit_at[key.group] = max(log_record.offset, self.last_commit_at.get(key.group, -1))
        layer = self.committed if producer is None else self.pending.setdefault(producer, {})
        layer.setdefault(key.group, {})[partition] = commit

    def end_transaction(self, log_record: LogRecord, control_type: int) -> None:
        """Apply a transaction marker to the pending commits of its producer in this log partition."""
        unknown = control_type not in (ControlType.COMMIT, ControlType.ABORT)
        if unknown and self._era.tombstone_scope is TombstoneScope.JAVA:
            return
        ended = self.pending.pop(Producer(log_record.partition, log_record.producer_id), {})
        if control_type != ControlType.COMMIT:
            return
        for group_id, commits in ended.items():
            committed = self.committed.setdefault(group_id, {})
            for partition, commit in commits.items():
                current = committed.get(partition)
                if current is None or current.log_offset < commit.log_offset:
                    committed[partition] = commit

    def committed_of(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Committed offsets of a group."""
        return MappingProxyType(self.committed.get(group_id, {}))

    def pending_of(self, group_id: str) -> Mapping[TopicPartition, Mapping[int, CommittedOffset]]:
        """Pending commits of a group, by partition and producer id."""
        found: dict[TopicPartition, dict[int, CommittedOffset]] = {}
        for producer, groups in self.pending.items():
            for partition, commit in groups.get(group_id, {}).items():
                found.setdefault(partition, {})[producer.producer_id] = commit
        return MappingProxyType(found)

    def groups_with_commits(self) -> frozenset[str]:
        """Groups with committed offsets."""
        return frozenset(group_id for group_id, commits in self.committed.items() if commits)

    def groups_with_pending(self) -> frozenset[str]:
        """Groups with pending commits."""
        return frozenset(self._pending_groups())

    def _pending_groups(self) -> Iterator[str]:
        return (group_id for groups in self.pending.values() for group_id, commits in groups.items() if commits)

    def _transaction_of(self, log_record: LogRecord) -> Producer | None:
        if not self._era.knows_transactions:
            return None
        java = self._era.tombstone_scope is TombstoneScope.JAVA
        transactional = log_record.producer_id != -1 if java else log_record.is_transactional
        return Producer(log_record.partition, log_record.producer_id) if transactional else None

    def _commit(self, log_record: LogRecord, value: OffsetCommitValue) -> CommittedOffset:
        return CommittedOffset(
            offset=value.offset,
            leader_epoch=self._era.leader_epoch(value),
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp,
            expire_timestamp=self._era.expire_timestamp(value, self._retention_ms),
            topic_id=None if value.topic_id == ZERO_UUID else value.topic_id,
            producer_id=log_record.producer_id,
            log_partition=log_record.partition,
            log_offset=log_record.offset,
        )

    def _remove(self, group_id: str, partition: TopicPartition, producer: Producer | None) -> None:
        if self._era.tombstone_scope is TombstoneScope.JAVA:
            self._remove_from(self.committed, group_id, partition)
            for groups in self.pending.values():
                self._remove_from(groups, group_id, partition)
        elif producer is None:
            self._remove_from(self.committed, group_id, partition)
        else:
            self._remove_from(self.pending.get(producer, {}), group_id, partition)

    @staticmethod
    def _remove_from(groups: Offsets, group_id: str, partition: TopicPartition) -> None:
        commits = groups.get(group_id)
        if commits is not None and commits.pop(partition, None) is not None and not commits:
            del groups[group_id]
