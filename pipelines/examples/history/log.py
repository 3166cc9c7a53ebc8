"""A log of `__consumer_offsets` in memory, written record by record at given times."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coordinator_core.codec import Record, encode, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.messages.modern import GroupKey, MemberKey
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.records import Value
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.partitioner import partition_for

#: Partitions by topic name.
Assigned = Mapping[str, Iterable[int]]


@dataclass
class ExampleLog:
    """Records by log partition, in the order in which they were written; `in_order` sorts them by time.

    `topic_ids`: ids of the topics that have one. `log_partitions`: `offsets.topic.num.partitions` of the broker.
    """

    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    log_partitions: int = 50
    records: dict[int, list[LogRecord]] = field(default_factory=dict)

    def append(self, group: str, at: int, key: bytes | None, value: bytes | None, producer: int = -1) -> None:
        """Append a record of a group, in a transaction if a producer is given."""
        self._append(group, LogRecord(0, 0, at, key, value, producer, 0, producer != -1, False, 0))

    def _append(self, group: str, record: LogRecord) -> None:
        self.records.setdefault(partition_for(group, self.log_partitions), []).append(record)

    def commit(
        self, group: str, topic: str, partition: int, offset: int, at: int, *, leader_epoch: int = 7, producer: int = -1
    ) -> None:
        """Append an offset commit."""
        value = OffsetCommitValue(offset, leader_epoch, "", at, -1, self.topic_ids.get(topic, ZERO_UUID))
        self.append(group, at, *encode(Record(1, OffsetCommitKey(group, topic, partition), value, 4)), producer)

    def offset_tombstone(self, group: str, topic: str, partition: int, at: int) -> None:
        """Append the removal of an offset."""
        self.append(group, at, *encode(Record(1, OffsetCommitKey(group, topic, partition), None, None)))

    def commit_marker(self, group: str, at: int, producer: int) -> None:
        """Append the control record that commits a transaction of offsets."""
        key = (0).to_bytes(2, "big") + int(ControlType.COMMIT).to_bytes(2, "big", signed=True)
        self._append(group, LogRecord(0, 0, at, key, bytes(6), producer, 0, True, True, 0))

    def classic(
        self,
        group: str,
        generation: int,
        at: int,
        members: Iterable[MemberMetadata] = (),
        protocol: str = "range",
        *,
        sync_ms: int = 40,
    ) -> None:
        """Append a record of a classic group, `sync_ms` after all members had joined."""
        members = tuple(members)
        leader = members[0].member_id if members else None
        value = GroupMetadataValue("consumer", generation, protocol if members else None, leader, at - sync_ms, members)
        self.append(group, at, *encode(Record(2, GroupMetadataKey(group), value, 3)))

    def group_tombstone(self, group: str, at: int) -> None:
        """Append the removal of a classic group."""
        self.append(group, at, *encode(Record(2, GroupMetadataKey(group), None, None)))

    def modern(self, group: str, at: int, record_type: int, value: Value | None, member: str | None = None) -> None:
        """Append a record of a modern group; None is a tombstone."""
        key = GroupKey(group) if member is None else MemberKey(group, member)
        self.append(group, at, *encode(Record(record_type, key, value, None if value is None else 0)))

    def in_order(self) -> dict[int, list[LogRecord]]:
        """The records of each log partition in the order of their times, with their offsets, as a broker appends them."""
        return {partition: list(_numbered(partition, records)) for partition, records in self.records.items()}


def _numbered(partition: int, records: list[LogRecord]) -> Iterator[LogRecord]:
    for offset, r in enumerate(sorted(records, key=lambda record: record.timestamp)):
        # a call of the class takes a third of the time of `replace`
        yield LogRecord(
            partition, offset, r.timestamp, r.key, r.value, r.producer_id, 0, r.is_transactional, r.is_control, offset
        )


def random_id(name: str, run: int) -> UUID:
    """An id that looks random, and is the same in every build."""
    found = 0xCBF29CE484222325
    for byte in f"{name}{run}".encode():
        found = (found ^ byte) * 0x100000001B3 % 2**128
    return UUID(int=found)


def member(name: str, host: str, assigned: Assigned, *, instance: str | None = None, run: int = 1) -> MemberMetadata:
    """A member of a classic group, subscribed to the topics of its assignment. `run` counts its starts."""
    parts = tuple(ProtocolTopicPartitions(topic, tuple(partitions)) for topic, partitions in assigned.items())
    return MemberMetadata(
        f"{instance or name}-{random_id(name, run)}",
        instance,
        name,
        f"/{host}",
        60_000,
        45_000,
        encode_subscription(ConsumerProtocolSubscription(tuple(assigned)), 1),
        encode_assignment(ConsumerProtocolAssignment(parts), 0),
    )
