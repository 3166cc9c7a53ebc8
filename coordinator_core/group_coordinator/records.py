"""Builders of all records that the coordinator writes (`GroupCoordinatorRecordHelpers`)."""

from collections.abc import Iterable, Mapping

from coordinator_core.codec import Record
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.behaviour import Behaviour
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.protocol.offsets import OffsetToCommit

OFFSET_COMMIT = 1
GROUP_METADATA = 2
#: Value version with an expire timestamp.
_EXPIRING_OFFSET_VERSION = 1
#: First value version with each field.
_REBALANCE_TIMEOUT_SINCE = 1
_STATE_TIMESTAMP_SINCE = 2
_INSTANCE_ID_SINCE = 3
_LEADER_EPOCH_SINCE = 3
_TOPIC_ID_SINCE = 4
_NO_TIMESTAMP = -1
_NO_LEADER_EPOCH = -1
_NO_TIMEOUT = -1


def group_metadata(behaviour: Behaviour, group: ClassicGroup, assignments: Mapping[str, bytes]) -> Record:
    """Returns the record of a group with its members and their assignments, empty if absent (`newGroupMetadataRecord`).

    Fields that the value version lacks are left out: the record is applied as it would be read back.
    """
    protocol, version = group.protocol_name, behaviour.group_value_version
    timestamp = group.state_timestamp if version >= _STATE_TIMESTAMP_SINCE else None
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader,
        current_state_timestamp=_NO_TIMESTAMP if timestamp is None else timestamp,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id if version >= _INSTANCE_ID_SINCE else None,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms if version >= _REBALANCE_TIMEOUT_SINCE else _NO_TIMEOUT,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol or ""),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members
        ),
    )
    return Record(GROUP_METADATA, GroupMetadataKey(group.group_id), value, version)


def empty_group_metadata(behaviour: Behaviour, group: ClassicGroup) -> Record:
    """Returns the record of a newly created group without members (`newEmptyGroupMetadataRecord`)."""
    timestamp = _NO_TIMESTAMP if group.state_timestamp is None else group.state_timestamp
    value = GroupMetadataValue("", 0, None, None, timestamp)
    return Record(GROUP_METADATA, GroupMetadataKey(group.group_id), value, behaviour.group_value_version)


def group_tombstone(group_id: str) -> Record:
    """Returns the tombstone of a group."""
    return Record(GROUP_METADATA, GroupMetadataKey(group_id), None, None)


def offset_commit(
    behaviour: Behaviour,
    group_id: str,
    partition: TopicPartition,
    offset: OffsetToCommit,
    committed_ms: int,
    expires_ms: int | None,
) -> Record:
    """Returns the record of a commit, in the version with an expire timestamp if given (`newOffsetCommitRecord`).

    Fields that the value version lacks are left out: the record is applied as it would be read back.
    """
    version = behaviour.offset_value_version if expires_ms is None else _EXPIRING_OFFSET_VERSION
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch if version >= _LEADER_EPOCH_SINCE else _NO_LEADER_EPOCH,
        metadata=offset.metadata or "",
        commit_timestamp=committed_ms,
        expire_timestamp=_NO_TIMESTAMP if expires_ms is None else expires_ms,
        topic_id=offset.topic_id if version >= _TOPIC_ID_SINCE else ZERO_UUID,
    )
    return Record(OFFSET_COMMIT, OffsetCommitKey(group_id, partition.topic, partition.partition), value, version)


def offset_tombstones(group_id: str, partitions: Iterable[TopicPartition]) -> tuple[Record, ...]:
    """Returns the tombstones of offsets, sorted (`newOffsetCommitTombstoneRecord`)."""
    return tuple(Record(OFFSET_COMMIT, OffsetCommitKey(group_id, *partition), None, None) for partition in sorted(partitions))
