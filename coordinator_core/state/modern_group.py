"""Base of consumer, share and streams groups: a group is the set of its latest records.

`GroupMetadataManager.replay` of the Java coordinator keeps fields. Here the records are the state and every field is derived from
them, so that a group can be stored as records and rebuilt from them. This loses three facts that the coordinator keeps:

- A member without a current assignment has the epoch of a new member, even if it had such a record before.
- A group without a target assignment has the epoch of a new group, even if it had such a record before.
- A group is removed with its last record, even without a tombstone of its group epoch.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from coordinator_core.codec import Record
from coordinator_core.codec.messages.consumer import ConsumerGroupRegularExpressionKey
from coordinator_core.codec.messages.modern import MemberKey, TargetAssignmentMetadataValue
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.views import GroupView, MemberView

#: Group epoch and assignment epoch of a group without a record of them (`TargetAssignmentMetadata.INITIAL`; 4.1 began with 0).
INITIAL_EPOCH = 1
#: Member epoch of a member without a current assignment.
JOINING = 0


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """Record types of one group type, by role; records of `others` are kept without being interpreted.

    `topic_metadata` is the one of them with the metadata of the subscribed topics, which 4.1 replaced by a hash beside the epoch.
    """

    group_type: str
    epoch: int
    member: int
    target_metadata: int
    target: int
    current: int
    others: frozenset[int]
    topic_metadata: int | None = None

    @property
    def record_types(self) -> frozenset[int]:
        return self.others | {self.epoch, self.member, self.target_metadata, self.target, self.current}


class ModernGroup(ABC):
    """A group of KIP-848, KIP-932 or KIP-1071."""

    layout: ClassVar[GroupLayout]
    #: State of a reconciled member in its current assignment.
    stable_member = 0

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._entries: dict[tuple[int, str | None], tuple[LogRecord, Any]] = {}

    @property
    def records(self) -> Mapping[bytes, LogRecord]:
        """The raw records of the group, by key."""
        return {log_record.key: log_record for log_record, _ in self._entries.values() if log_record.key is not None}

    @property
    def is_backed(self) -> bool:
        """True while the group has at least one record."""
        return bool(self._entries)

    def put(self, log_record: LogRecord, record: Record) -> None:
        """Store a record with a value."""
        self._entries[record.record_type, _part_of_group(record)] = log_record, record.value

    def drop(self, record: Record) -> tuple[str, ...]:
        """Apply a tombstone other than that of the group epoch; returns a description of each missing earlier tombstone.

        Tombstones of unknown members have no effect (KAFKA-17306). A member tombstone removes all records of the member.
        """
        part = _part_of_group(record)
        missing: list[str] = []
        if record.record_type == self.layout.member and part is not None:
            for role, record_type in (("current assignment", self.layout.current), ("target assignment", self.layout.target)):
                if self._entries.pop((record_type, part), None) is not None:
                    missing.append(f"the {role} of member {part} is still there")
        elif record.record_type == self.layout.target_metadata and (targets := self._count(self.layout.target)):
            missing.append(f"the target assignments of {targets} members are still there")
        self._entries.pop((record.record_type, part), None)
        return tuple(missing)

    def remains(self) -> tuple[str, ...]:
        """Describe the records that should have been removed before the group."""
        found = (
            (len(self.member_ids()), "members"),
            (self._count(self.layout.target), "target assignments"),
            (self._count(self.layout.target_metadata), "target assignment epoch"),
        )
        return tuple(f"{count} {what} still there" for count, what in found if count)

    def member_ids(self) -> tuple[str, ...]:
        """Sorted ids of the members that have metadata or a current assignment."""
        roles = (self.layout.member, self.layout.current)
        return tuple(sorted({part for kind, part in self._entries if kind in roles and part is not None}))

    @property
    def group_epoch(self) -> int:
        value = self._value(self.layout.epoch)
        return INITIAL_EPOCH if value is None else int(value.epoch)

    @property
    def assignment_epoch(self) -> int:
        value: TargetAssignmentMetadataValue | None = self._value(self.layout.target_metadata)
        return INITIAL_EPOCH if value is None else value.assignment_epoch

    @property
    def topic_metadata(self) -> tuple[object, ...]:
        """Comparable metadata of the subscribed topics; empty without any."""
        epoch = self._value(self.layout.epoch)
        topics = None if self.layout.topic_metadata is None else self._value(self.layout.topic_metadata)
        return () if epoch is None and topics is None else (epoch and epoch.metadata_hash, topics)

    def state(self) -> str:
        """State of the group, computed as in `ConsumerGroup.maybeUpdateGroupState`."""
        members = self.member_ids()
        if not members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if all(self._is_reconciled(member) for member in members) else "Reconciling"

    @abstractmethod
    def protocol(self) -> str | None:
        """The assignor of the group."""

    @abstractmethod
    def subscribed_topics(self) -> tuple[str, ...] | None:
        """Topics whose offsets do not expire."""

    @abstractmethod
    def member_view(self, member_id: str, topic_names: Mapping[UUID, str]) -> MemberView:
        """One member."""

    def view(self, topic_names: Mapping[UUID, str]) -> GroupView:
        """The group in the state after loading; topic ids become names where `topic_names` has them."""
        return GroupView(
            group_id=self.group_id,
            group_type=self.layout.group_type,
            state=self.state(),
            generation=self.group_epoch,
            protocol_type=self.layout.group_type,
            protocol=self.protocol(),
            leader=None,
            state_timestamp=None,
            members=tuple(self.member_view(member_id, topic_names) for member_id in self.member_ids()),
            subscribed_topics=self.subscribed_topics(),
        )

    def _value(self, record_type: int, part: str | None = None) -> Any:
        entry = self._entries.get((record_type, part))
        return None if entry is None else entry[1]

    def _values(self, record_type: int) -> Iterator[Any]:
        return (value for (kind, _), (_, value) in self._entries.items() if kind == record_type)

    def _count(self, record_type: int) -> int:
        return sum(1 for kind, _ in self._entries if kind == record_type)

    def _is_reconciled(self, member_id: str) -> bool:
        current = self._value(self.layout.current, member_id)
        return current is not None and current.state == self.stable_member and current.member_epoch == self.assignment_epoch


def _part_of_group(record: Record) -> str | None:
    match record.key:
        case MemberKey():
            return record.key.member_id
        case ConsumerGroupRegularExpressionKey():
            return record.key.regular_expression
        case _:
            return None
