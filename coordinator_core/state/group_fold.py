"""Group records folded one after the other, with what each of them changed."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec import Record
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from coordinator_core.state.history import Change, changes
from coordinator_core.state.registry import GroupRegistry, group_id_of
from coordinator_core.state.views import GroupView

#: What a record that a loader would not take is called in the history.
ANOMALY = "anomaly"


class Told(NamedTuple):
    """A change of a group, and the group after it: before it where the record removed the group, None where there was none."""

    group_id: str
    change: Change
    group: GroupView | None


class GroupFold:
    """The registry of an era, and how each group looked after its last record."""

    def __init__(self, era: Era) -> None:
        self.registry = GroupRegistry(era)
        self._views: dict[str, GroupView | None] = {}

    def view(self, group_id: str, topic_names: Mapping[UUID, str]) -> GroupView | None:
        """The group as it is now, None if there is none."""
        group = self.registry.groups.get(group_id)
        return None if group is None else group.view(topic_names)

    def apply(self, log_record: LogRecord, record: Record, topic_names: Mapping[UUID, str]) -> tuple[Told, ...]:
        """Applies a record and tells what it changed."""
        group_id = group_id_of(record)
        before = self._views[group_id] if group_id in self._views else self.view(group_id, topic_names)
        anomalies = self.registry.apply(log_record, record)
        after = self._views[group_id] = self.view(group_id, topic_names)
        shown = after or before
        odd = (Change(ANOMALY, None, anomaly.detail) for anomaly in anomalies)
        return tuple(Told(group_id, change, shown) for change in (*changes(before, after), *odd))

    def settle(self, log_record: LogRecord, record: Record, topic_names: Mapping[UUID, str]) -> None:
        """Applies a record whose changes are told elsewhere."""
        self.registry.apply(log_record, record)
        group_id = group_id_of(record)
        self._views[group_id] = self.view(group_id, topic_names)
