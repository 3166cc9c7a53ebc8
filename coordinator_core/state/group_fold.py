"""Fold of group records in log order, with the changes that each record makes: in words, and of members and owners."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec import Record
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from coordinator_core.state.history import Change, changes
from coordinator_core.state.membership import MembershipChanges, membership_changes
from coordinator_core.state.modern_group import ModernGroup
from coordinator_core.state.registry import GroupRegistry, group_id_of
from coordinator_core.state.views import GroupView

#: Name, in the history, of a record that a broker would reject while loading.
ANOMALY = "anomaly"


class GroupChange(NamedTuple):
    """A change of a group. `group` is the group after it, before it for a removal, None for a group that never existed."""

    group_id: str
    change: Change
    group: GroupView | None


class AppliedRecord(NamedTuple):
    """Effect of one group record."""

    changes: tuple[GroupChange, ...]
    membership: MembershipChanges


class GroupFold:
    """The registry of an era, and the view of each group after its last record."""

    def __init__(self, era: Era) -> None:
        self.registry = GroupRegistry(era)
        self._views: dict[str, GroupView | None] = {}

    def view(self, group_id: str, topic_names: Mapping[UUID, str]) -> GroupView | None:
        """The current group, None if it does not exist."""
        group = self.registry.groups.get(group_id)
        return None if group is None else group.view(topic_names)

    def apply(self, log_record: LogRecord, record: Record, topic_names: Mapping[UUID, str]) -> AppliedRecord:
        """Apply a record and return its changes."""
        group_id = group_id_of(record)
        before = self._views[group_id] if group_id in self._views else self.view(group_id, topic_names)
        topics_before = self._topic_metadata(group_id)
        anomalies = self.registry.apply(log_record, record)
        after = self._views[group_id] = self.view(group_id, topic_names)
        topics_changed = bool(topics_before) and self._topic_metadata(group_id) not in ((), topics_before)
        shown = after or before
        rejected = (Change(ANOMALY, None, anomaly.detail) for anomaly in anomalies)
        return AppliedRecord(
            tuple(GroupChange(group_id, change, shown) for change in (*changes(before, after), *rejected)),
            membership_changes(before, after, topics_changed=topics_changed),
        )

    def apply_state_only(self, log_record: LogRecord, record: Record, topic_names: Mapping[UUID, str]) -> None:
        """Apply a state-only record: its changes are reported elsewhere."""
        self.registry.apply(log_record, record)
        group_id = group_id_of(record)
        self._views[group_id] = self.view(group_id, topic_names)

    def _topic_metadata(self, group_id: str) -> tuple[object, ...]:
        group = self.registry.groups.get(group_id)
        return group.topic_metadata if isinstance(group, ModernGroup) else ()
