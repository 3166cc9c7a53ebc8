"""Records as lines of the Scala brokers' console formatters (`OffsetsMessageFormatter`, `GroupMetadataMessageFormatter`).

They print types 0, 1 and 2, escape nothing and show only a part of a group. If releases of one era differ, the line is that of
the last release. Their members come from a hash map, in arbitrary order; here they have the order of the record.
"""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.records import Record

_TOMBSTONE = "NULL"


def classic_line(record: Record, era: str) -> str | None:
    """Return the line without its line end; None for types above 2, which the formatters do not print.

    `era` is "0.9", "0.10", "1", "2", "3", "4" or "redpanda"; Kafka 4 and Redpanda have no such formatter, so these eras use the
    line of 3.9's Scala class. Raises ValueError for other eras.
    """
    if era not in _OFFSET_TEXTS:
        raise ValueError(f"unknown era {era!r}: use one of {', '.join(_OFFSET_TEXTS)}")
    match record.key:
        case OffsetCommitKey(group, topic, partition):
            text = _OFFSET_TEXTS[era](record.value) if isinstance(record.value, OffsetCommitValue) else _TOMBSTONE
            return f"[{group},{topic},{partition}]::{text}"
        case GroupMetadataKey(group):
            if isinstance(record.value, GroupMetadataValue):
                return f"{group}::{_GROUP_TEXTS[era](group, record.value, record.value_version or 0)}"
            return f"{group}::{_TOMBSTONE}"
        case _:
            return None


def _option(value: Any) -> str:
    return "None" if value is None else f"Some({value})"


def _offset_until_2_0(value: OffsetCommitValue) -> str:
    metadata = value.metadata or "NO_METADATA"
    times = f"CommitTime {value.commit_timestamp},ExpirationTime {value.expire_timestamp}"
    return f"[OffsetMetadata[{value.offset},{metadata}],{times}]"


def _offset_text(value: OffsetCommitValue, has_leader_epoch: bool) -> str:
    leader_epoch = f"Optional[{value.leader_epoch}]" if has_leader_epoch else "Optional.empty"
    expire_timestamp = _option(None if value.expire_timestamp == -1 else value.expire_timestamp)
    return (
        f"OffsetAndMetadata(offset={value.offset}, leaderEpoch={leader_epoch}, metadata={value.metadata}, "
        f"commitTimestamp={value.commit_timestamp}, expireTimestamp={expire_timestamp})"
    )


def _offset_2_1_to_2_7(value: OffsetCommitValue) -> str:
    return _offset_text(value, has_leader_epoch=value.leader_epoch >= 0)


def _offset_since_2_8(value: OffsetCommitValue) -> str:
    return _offset_text(value, has_leader_epoch=value.leader_epoch != -1)


def _state(value: GroupMetadataValue) -> str:
    return "Stable" if value.members else "Empty"


def _group_0_9(group: str, value: GroupMetadataValue, _version: int) -> str:
    return f"[{group},{value.protocol_type},Stable,{_short_members(value)}]"


def _group_0_10(group: str, value: GroupMetadataValue, _version: int) -> str:
    protocol_type = _option(value.protocol_type if value.members else None)
    return f"[{group},{protocol_type},{_state(value)},{_short_members(value)}]"


def _short_members(value: GroupMetadataValue) -> str:
    members = (
        f"{member.member_id} -> [{member.member_id},{member.client_id},{member.client_host},{member.session_timeout}]"
        for member in value.members
    )
    return f"Map({', '.join(members)})"


def _group_text(group: str, value: GroupMetadataValue, members: list[str], map_name: str) -> str:
    pairs = (f"{member.member_id} -> {text}" for member, text in zip(value.members, members, strict=True))
    protocol_type = _option(value.protocol_type if value.members else value.protocol_type or None)
    return (
        f"GroupMetadata(groupId={group}, generation={value.generation}, protocolType={protocol_type}, "
        f"currentState={_state(value)}, members={map_name}({', '.join(pairs)}))"
    )


def _member_text(member: MemberMetadata, protocol: str | None, version: int, group_instance_id: str, end: str) -> str:
    rebalance_timeout = member.session_timeout if version == 0 else member.rebalance_timeout
    return (
        f"MemberMetadata(memberId={member.member_id}, {group_instance_id}clientId={member.client_id}, "
        f"clientHost={member.client_host}, sessionTimeoutMs={member.session_timeout}, "
        f"rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols=List({'null' if protocol is None else protocol}){end}"
    )


def _group_0_11_to_2_0(group: str, value: GroupMetadataValue, version: int) -> str:
    members = [_member_text(member, value.protocol, version, "", ", )") for member in value.members]
    return _group_text(group, value, members, "Map")


def _group_2_3(group: str, value: GroupMetadataValue, version: int) -> str:
    def instance(member: MemberMetadata) -> str:
        if version < 3:
            return "groupInstanceId=None, "
        return f"groupInstanceId=Some({'null' if member.group_instance_id is None else member.group_instance_id}), "

    members = [_member_text(member, value.protocol, version, instance(member), ", )") for member in value.members]
    return _group_text(group, value, members, "Map")


def _group_3_9(group: str, value: GroupMetadataValue, version: int) -> str:
    members = [
        _member_text(member, value.protocol, version, f"groupInstanceId={_option(member.group_instance_id)}, ", ")")
        for member in value.members
    ]
    return _group_text(group, value, members, "HashMap")


_OFFSET_TEXTS: Mapping[str, Callable[[OffsetCommitValue], str]] = {
    "0.9": _offset_until_2_0,
    "0.10": _offset_until_2_0,
    "1": _offset_until_2_0,
    "2": _offset_2_1_to_2_7,
    "3": _offset_since_2_8,
    "4": _offset_since_2_8,
    "redpanda": _offset_since_2_8,
}

_GROUP_TEXTS: Mapping[str, Callable[[str, GroupMetadataValue, int], str]] = {
    "0.9": _group_0_9,
    "0.10": _group_0_10,
    "1": _group_0_11_to_2_0,
    "2": _group_2_3,
    "3": _group_3_9,
    "4": _group_3_9,
    "redpanda": _group_3_9,
}
