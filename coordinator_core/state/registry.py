"""Groups by id, from the group records of a log (types 2–23), by the rules of an era's loader."""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from coordinator_core.codec import Record
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.modern import PartitionMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitKey
from coordinator_core.codec.messages.share import ShareGroupStatePartitionMetadataValue
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.anomaly import Anomaly, AnomalyKind
from coordinator_core.state.classic_group import LoadedClassicGroup
from coordinator_core.state.consumer_group import ConsumerGroup
from coordinator_core.state.era import Era
from coordinator_core.state.modern_group import ModernGroup
from coordinator_core.state.share_group import ShareGroup
from coordinator_core.state.streams_group import StreamsGroup

Group = LoadedClassicGroup | ModernGroup

_MODERN_KINDS: tuple[type[ModernGroup], ...] = (ConsumerGroup, ShareGroup, StreamsGroup)
KIND_OF_RECORD: Mapping[int, type[ModernGroup]] = MappingProxyType(
    {record_type: kind for kind in _MODERN_KINDS for record_type in kind.layout.record_types}
)
#: Types that may replace a simple group; a share group record for one is an IllegalStateException.
_REPLACES_SIMPLE_GROUPS = frozenset({ConsumerGroup, StreamsGroup})


class GroupRegistry:
    """The groups of one or more log partitions.

    `apply` accepts records in any order: it reports those that a coordinator would reject, and the later record wins.
    Applying the `records` of a group in offset order to an empty registry gives an equal group.

    Not reported: a current assignment with a partition that another member still has at the same or a later epoch. Brokers up
    to 4.3 reject such logs although log cleaning alone produces them (KAFKA-19862).
    """

    def __init__(self, era: Era) -> None:
        self._era = era
        self._topic_names: dict[UUID, str] = {}
        self.groups: dict[str, Group] = {}
        #: Id of a removed group → log offset of the removal. Eras with `hides_offsets_without_group` hide the commits before it.
        self.removed_at: dict[str, int] = {}

    def topic_names(self) -> Mapping[UUID, str]:
        """Names of topic ids from records of types 4, 9 and 15 (`partition_metadata`), including replaced records."""
        return MappingProxyType(self._topic_names)

    def apply(self, log_record: LogRecord, record: Record) -> tuple[Anomaly, ...]:
        """Replay one record (`GroupMetadataManager.replay`); records of offset commits have no effect here."""
        if isinstance(record.key, OffsetCommitKey):
            return ()
        self._learn_topic_names(record)
        if not self._era.reads(record.record_type, record.value_version):
            return (unread(self._era, log_record, record),)
        if isinstance(record.key, GroupMetadataKey):
            return self._apply_classic(log_record, record.key.group, record)
        kind = KIND_OF_RECORD[record.record_type]
        if record.value is None:
            return self._apply_tombstone(log_record, record.key.group_id, record, kind)
        return self._apply_modern(log_record, record.key.group_id, record, kind)

    def _apply_classic(self, log_record: LogRecord, group_id: str, record: Record) -> tuple[Anomaly, ...]:
        if not isinstance(record.value, GroupMetadataValue):
            self._remove(group_id, log_record.offset)
            return ()
        before = self.groups.get(group_id)
        known = before if isinstance(before, LoadedClassicGroup) else None
        group = LoadedClassicGroup(self._era, group_id, log_record, record.value, record.value_version, known)
        self._add(group_id, group)
        found = [
            *(
                (AnomalyKind.DUPLICATE_INSTANCE_ID, f"two members have group.instance.id {each!r}")
                for each in group.duplicate_instance_ids()
            ),
            *((AnomalyKind.BAD_SUBSCRIPTION, detail) for detail in group.refused_subscriptions()),
        ]
        return tuple(Anomaly(kind, group_id, log_record.offset, detail) for kind, detail in found)

    def _apply_modern(self, log_record: LogRecord, group_id: str, record: Record, kind: type[ModernGroup]) -> tuple[Anomaly, ...]:
        group = self.groups.get(group_id)
        if type(group) is kind:
            group.put(log_record, record)
            return ()
        fresh = kind(group_id)
        fresh.put(log_record, record)
        self._add(group_id, fresh)
        if group is None or (isinstance(group, LoadedClassicGroup) and group.is_simple and kind in _REPLACES_SIMPLE_GROUPS):
            return ()
        detail = f"record of a {kind.layout.group_type} group replaces a {type_name(group)} group"
        return (Anomaly(AnomalyKind.GROUP_TYPE, group_id, log_record.offset, detail),)

    def _apply_tombstone(
        self, log_record: LogRecord, group_id: str, record: Record, kind: type[ModernGroup]
    ) -> tuple[Anomaly, ...]:
        group = self.groups.get(group_id)
        ends_group = record.record_type == kind.layout.epoch
        if group is None or (isinstance(group, LoadedClassicGroup) and group.is_simple):
            if ends_group:
                self._remove(group_id, log_record.offset)
            return ()
        if not isinstance(group, kind):
            detail = f"tombstone of a {kind.layout.group_type} group record for a {type_name(group)} group"
            return (Anomaly(AnomalyKind.GROUP_TYPE, group_id, log_record.offset, detail),)
        if ends_group:
            missing = group.remains()
            self._remove(group_id, log_record.offset)
        else:
            missing = group.drop(record)
            if not group.is_backed:
                del self.groups[group_id]
        return tuple(Anomaly(AnomalyKind.EARLY_TOMBSTONE, group_id, log_record.offset, detail) for detail in missing)

    def _add(self, group_id: str, group: Group) -> None:
        self.groups[group_id] = group
        self.removed_at.pop(group_id, None)

    def _remove(self, group_id: str, offset: int) -> None:
        self.groups.pop(group_id, None)
        self.removed_at[group_id] = offset

    def _learn_topic_names(self, record: Record) -> None:
        match record.value:
            case PartitionMetadataValue(topics=topics):
                self._topic_names.update((topic.topic_id, topic.topic_name) for topic in topics)
            case ShareGroupStatePartitionMetadataValue() as value:
                for topics_with_state in (value.initializing_topics, value.initialized_topics, value.deleting_topics):
                    self._topic_names.update((topic.topic_id, topic.topic_name) for topic in topics_with_state)
            case _:
                pass


def type_name(group: Group) -> str:
    """The name of the group's type."""
    return group.layout.group_type if isinstance(group, ModernGroup) else "classic"


def group_id_of(record: Record) -> str:
    """The group id of a record."""
    key = record.key
    return key.group if isinstance(key, OffsetCommitKey | GroupMetadataKey) else key.group_id


def unread(era: Era, log_record: LogRecord, record: Record) -> Anomaly:
    """Build the report about a record that the loader of the era does not know."""
    known = era.value_versions.get(record.record_type)
    what = f"record type {record.record_type}" if known is None else f"value version {record.value_version}"
    detail = f"{what} is unknown to era {era.name} ({era.releases})"
    return Anomaly(AnomalyKind.UNREAD, group_id_of(record), log_record.offset, detail)
