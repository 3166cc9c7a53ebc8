"""A log of `__consumer_offsets`, written record by record in a test, and the state that it loads to.

Records pass through bytes: they are encoded when appended and decoded when replayed.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from loaded_logs import replay
from record_log import RecordLog

from coordinator_core.codec import Record, encode, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.messages.modern import GroupKey, MemberKey, TargetAssignmentMetadataValue
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState

GROUP = "group"
TOPIC = "foo"
NOW_MS = 1_700_000_000_000
MEMBER_KEYED = {5, 7, 8, 10, 13, 14, 19, 21, 22}


class Log(RecordLog):
    """One partition of the topic. Methods return the record that they append."""

    def commit(
        self,
        partition: int,
        offset: int,
        *,
        group: str = GROUP,
        topic: str = TOPIC,
        producer: int = -1,
        version: int = 3,
        record_type: int = 1,
        at: int = NOW_MS,
        expires: int = -1,
        leader_epoch: int = -1,
        topic_id: UUID = ZERO_UUID,
    ) -> LogRecord:
        """An offset commit, in a transaction if a producer is given; value version 1 if it has an expire time."""
        value = OffsetCommitValue(offset, leader_epoch, "", at, expires, topic_id)
        key = OffsetCommitKey(group, topic, partition)
        return self.append(Record(record_type, key, value, version if expires == -1 else 1), producer=producer)

    def offset_tombstone(self, partition: int, *, group: str = GROUP, topic: str = TOPIC, producer: int = -1) -> LogRecord:
        return self.append(Record(1, OffsetCommitKey(group, topic, partition), None, None), producer=producer)

    def group(
        self,
        members: Iterable[MemberMetadata] = (),
        *,
        group: str = GROUP,
        generation: int = 5,
        protocol_type: str = "consumer",
        protocol: str | None = "range",
        leader: str | None = None,
        version: int = 3,
        timestamp: int = -1,
    ) -> LogRecord:
        """A classic group; without members it has no protocol either."""
        members = tuple(members)
        value = GroupMetadataValue(protocol_type, generation, protocol if members else None, leader, timestamp, members)
        return self.append(Record(2, GroupMetadataKey(group), value, version))

    def group_tombstone(self, group: str = GROUP) -> LogRecord:
        return self.append(Record(2, GroupMetadataKey(group), None, None))

    def modern(self, record_type: int, value: Any, *, group: str = GROUP, member: str = "m1") -> LogRecord:
        """A record of types 3–15 or 17–23; None is a tombstone."""
        key = MemberKey(group, member) if record_type in MEMBER_KEYED else GroupKey(group)
        return self.append(Record(record_type, key, value, None if value is None else 0))

    def consumer_member(
        self,
        member: str = "m1",
        *,
        group: str = GROUP,
        topics: Iterable[str] = (TOPIC,),
        epoch: int = 1,
        assignment_epoch: int = 1,
    ) -> None:
        """A consumer group with one Stable member: types 5, 3, 6 and 8."""
        metadata = ConsumerGroupMemberMetadataValue(
            None, None, "client", "/127.0.0.1", tuple(topics), classic_member_metadata=None
        )
        self.modern(5, metadata, group=group, member=member)
        self.modern(3, ConsumerGroupMetadataValue(epoch), group=group)
        self.modern(6, TargetAssignmentMetadataValue(assignment_epoch), group=group)
        self.modern(8, ConsumerGroupCurrentMemberAssignmentValue(epoch, epoch - 1, 0), group=group, member=member)

    def marker(self, producer: int, control_type: int = ControlType.COMMIT) -> LogRecord:
        """The control record that ends a transaction."""
        key = (0).to_bytes(2, "big") + int(control_type).to_bytes(2, "big", signed=True)
        record = self._record(key, bytes(6), producer)
        return self._append(record._replace(is_control=True))

    def append(self, record: Record, *, producer: int = -1) -> LogRecord:
        return self.raw(*encode(record), producer=producer)

    def raw(self, key: bytes | None, value: bytes | None, *, producer: int = -1) -> LogRecord:
        """Arbitrary bytes."""
        return self._append(self._record(key, value, producer))

    def load(self, era: str = "3") -> GroupState:
        """The state after the whole log; expects no anomalies."""
        state, anomalies = self.load_with_anomalies(era)
        assert anomalies == []
        return state

    def load_with_anomalies(self, era: str = "3") -> tuple[GroupState, list[Anomaly]]:
        return replay(self.records, era, NOW_MS)

    def _record(self, key: bytes | None, value: bytes | None, producer: int) -> LogRecord:
        return LogRecord(self.partition, self.end, NOW_MS, key, value, producer, 0, producer != -1, False, self.end)

    def _append(self, record: LogRecord) -> LogRecord:
        self.records.append(record)
        return record


def member(
    member_id: str = "m1",
    *,
    topics: Iterable[str] = (TOPIC,),
    instance_id: str | None = None,
    subscription: bytes | None = None,
    rebalance_timeout: int = 60_000,
    session_timeout: int = 10_000,
) -> MemberMetadata:
    """A member of a classic consumer group, assigned partition 0 of its topics."""
    topics = tuple(topics)
    assignment = ConsumerProtocolAssignment(tuple(ProtocolTopicPartitions(topic, (0,)) for topic in topics))
    return MemberMetadata(
        member_id,
        instance_id,
        "client",
        "/127.0.0.1",
        rebalance_timeout,
        session_timeout,
        encode_subscription(ConsumerProtocolSubscription(topics), 1) if subscription is None else subscription,
        encode_assignment(assignment, 0),
    )


def offsets(state: GroupState, group: str = GROUP) -> dict[int, int]:
    """Committed offsets of TOPIC, as OffsetFetch returns them."""
    return {p.partition: commit.offset for p, commit in state.committed(group).items() if p.topic == TOPIC}


def pending(state: GroupState, group: str = GROUP) -> dict[int, dict[int, int]]:
    """Pending offsets: partition → producer → offset."""
    return {p.partition: {i: commit.offset for i, commit in by.items()} for p, by in state.pending(group).items()}


def retention_ms(era: str) -> int:
    return Era.named(era).default_retention_ms
