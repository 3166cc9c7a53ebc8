"""The records that describe a polled group: those that its coordinator would load the same group from.

State of groups is made of records (`GroupRegistry`), so a poll becomes state by the code that reads the log. A field that no
answer has keeps the value that Kafka's own code uses for "unknown": generation -1, no leader, timeouts and times of -1.
"""

from collections.abc import Iterable, Mapping, Set

from coordinator_core.codec import Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.group_polls.group_poll import ClassicGroupAnswer, ClassicMemberAnswer, GroupAnswer
from coordinator_core.group_polls.modern_records import LAYOUTS, encoded_record, modern_group_records
from coordinator_core.state.era import Era
from coordinator_core.state.views import UNKNOWN_GENERATION

#: Key → value.
GroupRecords = Mapping[bytes, bytes]

_COMMIT, _CLASSIC = 1, 2
#: The newest version with fields that an answer has: leader epoch of a commit, instance ids of members.
_NEWEST_VERSION = 3
_UNKNOWN_MS = -1
#: The generation of a group that never had a member.
_NO_GENERATION = 0
#: Record types by role, of all types of groups.
_MEMBERS, _TARGETS = {each.member for each in LAYOUTS}, {each.target for each in LAYOUTS}
_CURRENT, _TARGET_EPOCHS = {each.current for each in LAYOUTS}, {each.target_metadata for each in LAYOUTS}
_OTHERS, _EPOCHS = {other for each in LAYOUTS for other in each.others}, {each.epoch for each in LAYOUTS}
#: In the order in which coordinators remove the records of a group: those of members first.
_REMOVAL_ORDER = (_CURRENT, _TARGETS, _MEMBERS, _TARGET_EPOCHS, _OTHERS, _EPOCHS, {_CLASSIC})
_WRITE_ORDER = ({_CLASSIC}, _MEMBERS, _OTHERS, _EPOCHS, _TARGETS, _TARGET_EPOCHS, _CURRENT)

#: States of a classic group between two generations. The log has no record until the next one is complete.
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "AwaitingSync")


def is_rebalancing(answer: GroupAnswer) -> bool:
    """True for a classic group between two generations: DescribeGroups reports no subscriptions and assignments then."""
    return isinstance(answer, ClassicGroupAnswer) and answer.state in _REBALANCING


def commit_version(era: Era) -> int:
    """The version of the value of commits (type 1) that the loader of an era reads."""
    return min(_NEWEST_VERSION, era.value_versions[_COMMIT][-1])


def is_simple(answer: GroupAnswer) -> bool:
    """True for a group without protocol type and members (`ClassicGroup.isSimpleGroup`)."""
    return isinstance(answer, ClassicGroupAnswer) and not answer.protocol_type and not answer.members


def group_records(era: Era, group_id: str, answer: GroupAnswer) -> dict[bytes, bytes]:
    """The records of a group, in versions of the era; none for a simple group, which exists by its offsets."""
    if not isinstance(answer, ClassicGroupAnswer):
        return dict(modern_group_records(group_id, answer))
    return {} if is_simple(answer) else dict([_classic(era, group_id, answer)])


def simple_group_records(era: Era, group_id: str) -> dict[bytes, bytes]:
    """The record of a simple group that has no offsets either."""
    value = GroupMetadataValue("", _NO_GENERATION, None, None)
    return dict([encoded_record(_CLASSIC, GroupMetadataKey(group_id), value, _classic_version(era))])


def without_members(era: Era, group_id: str, records: GroupRecords) -> dict[bytes, bytes]:
    """The records of a group of which a coordinator has offsets, but no description: a classic group has no members then.

    Azure Event Hubs answers so after the last member has left.
    """
    found = dict(records)
    for key, value in records.items():
        record = decode(key, value)
        if isinstance(record, Record) and isinstance(record.value, GroupMetadataValue):
            empty = ClassicGroupAnswer("Empty", record.value.protocol_type, "", ())
            found.update([_classic(era, group_id, empty)])
    return found


def last_generation(records: GroupRecords) -> ClassicGroupAnswer | None:
    """The last complete generation of a classic group, as an answer would have it; None for records of other groups."""
    for key, value in records.items():
        record = decode(key, value)
        if isinstance(record, Record) and isinstance(record.value, GroupMetadataValue):
            logged = record.value
            members = (
                ClassicMemberAnswer(
                    each.member_id,
                    each.group_instance_id,
                    each.client_id,
                    each.client_host,
                    each.subscription,
                    each.assignment,
                )
                for each in logged.members
            )
            return ClassicGroupAnswer("Stable", logged.protocol_type, logged.protocol or "", tuple(members))
    return None


def record_type(key: bytes) -> int:
    """The type of a record by its key."""
    return int.from_bytes(key[:2], "big")


def changed_records(before: GroupRecords, after: GroupRecords) -> list[tuple[bytes, bytes | None]]:
    """The records that lead from one state of a group to another: removals first, in the order of a coordinator.

    Another type of group has none of the records of the group before.
    """
    is_other_type = bool(before) and bool(after) and is_classic(before) != is_classic(after)
    gone = _sorted((key for key in before if key not in after), _REMOVAL_ORDER)
    new = _sorted((key for key, value in after.items() if is_other_type or before.get(key) != value), _WRITE_ORDER)
    return [*((key, None) for key in gone), *((key, after[key]) for key in new)]


def group_removal(group_id: str, before: GroupRecords) -> list[tuple[bytes, bytes | None]]:
    """The records that remove a group: a tombstone of type 2 for one without records, as a coordinator writes it."""
    if not before:
        return [(encode(Record(_CLASSIC, GroupMetadataKey(group_id), None, None))[0], None)]
    return changed_records(before, {})


def is_classic(records: GroupRecords) -> bool:
    """True for the records of a classic group."""
    return any(record_type(key) == _CLASSIC for key in records)


def _sorted(keys: Iterable[bytes], order: tuple[Set[int], ...]) -> list[bytes]:
    return sorted(keys, key=lambda key: (_place(record_type(key), order), key))


def _place(kind: int, order: tuple[Set[int], ...]) -> int:
    return next((place for place, kinds in enumerate(order) if kind in kinds), -1)


def _classic(era: Era, group_id: str, answer: ClassicGroupAnswer) -> tuple[bytes, bytes]:
    members = tuple(
        MemberMetadata(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            rebalance_timeout=_UNKNOWN_MS,
            session_timeout=_UNKNOWN_MS,
            subscription=each.subscription,
            assignment=each.assignment,
        )
        for each in answer.members
    )
    value = GroupMetadataValue(answer.protocol_type, UNKNOWN_GENERATION, answer.protocol or None, None, members=members)
    return encoded_record(_CLASSIC, GroupMetadataKey(group_id), value, _classic_version(era))


def _classic_version(era: Era) -> int:
    return min(_NEWEST_VERSION, era.value_versions[_CLASSIC][-1])
