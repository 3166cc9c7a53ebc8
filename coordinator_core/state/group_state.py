"""Fold of the records of `__consumer_offsets` into group state, as the loader of an era does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coordinator_core.codec import Record, Undecodable, UnknownType
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.record_batch import control_type
from coordinator_core.state.anomaly import Anomaly, AnomalyKind
from coordinator_core.state.era import Era
from coordinator_core.state.offsets import CommittedOffset, OffsetState
from coordinator_core.state.registry import GroupRegistry, unread
from coordinator_core.state.views import GroupView, simple_group

_NO_OFFSETS: Mapping[TopicPartition, CommittedOffset] = MappingProxyType({})


@dataclass(frozen=True)
class StateSnapshot:
    """All groups and offsets of a state, as comparable values."""

    groups: Mapping[str, GroupView]
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    pending: Mapping[str, Mapping[TopicPartition, Mapping[int, CommittedOffset]]]


class GroupState:
    """State of the groups of one or more log partitions.

    `now_ms` is the time of the load, which becomes the state timestamp of simple groups. `retention_ms` is
    `offsets.retention.minutes` in ms, from which loaders up to 2.0 compute expire timestamps. Records of a log partition must be
    applied in the order of their offsets.

    `apply` accepts every record: one that would fail a broker's load is reported and skipped.
    """

    def __init__(self, era: Era, now_ms: int, retention_ms: int | None = None) -> None:
        self.era = era
        self.now_ms = now_ms
        self.retention_ms = era.default_retention_ms if retention_ms is None else retention_ms
        self.offsets = OffsetState(era, self.retention_ms)
        self.registry = GroupRegistry(era)

    def apply(self, log_record: LogRecord, decoded: Record | Undecodable | None) -> tuple[Anomaly, ...]:
        """Apply one record. `decoded` is the result of the codec; it is ignored for control records."""
        if log_record.is_control:
            return self._apply_control(log_record)
        if not isinstance(decoded, Record):
            return (_undecodable(log_record, decoded),)
        if not isinstance(decoded.key, OffsetCommitKey):
            return self.registry.apply(log_record, decoded)
        if not self.era.reads(decoded.record_type, decoded.value_version):
            return (unread(self.era, log_record, decoded),)
        value = decoded.value if isinstance(decoded.value, OffsetCommitValue) else None
        self.offsets.apply(log_record, decoded.key, value)
        return ()

    def finish_load(self) -> tuple[Anomaly, ...]:
        """Check the loaded groups as Scala brokers do: their loader fails when a removed group still has pending commits and
        nothing else (KAFKA-4704). The Java coordinator has no such step."""
        if self.era.hides_offsets_without_group or not self.era.simple_groups:
            return ()
        revived = self.offsets.groups_with_pending() - self.offsets.groups_with_commits() - self.registry.groups.keys()
        return tuple(
            Anomaly(
                AnomalyKind.UNEXPECTED_UNLOAD,
                group_id,
                self.registry.removed_at[group_id],
                "the group was removed, but transactional commits of it are still pending",
            )
            for group_id in sorted(revived & self.registry.removed_at.keys())
        )

    def has_group(self, group_id: str) -> bool:
        """True if the coordinator has an object for the group."""
        return group_id in self.registry.groups or group_id in self._simple_groups(group_id)

    def groups(self) -> Mapping[str, GroupView]:
        """All groups in the state after loading, including simple groups."""
        topic_names = self.registry.topic_names()
        views = {group_id: group.view(topic_names) for group_id, group in self.registry.groups.items()}
        views |= {group_id: simple_group(group_id, self.now_ms) for group_id in self._simple_groups()}
        return MappingProxyType(views)

    def group(self, group_id: str) -> GroupView | None:
        """The group of that id, None if the coordinator has none."""
        group = self.registry.groups.get(group_id)
        if group is not None:
            return group.view(self.registry.topic_names())
        return simple_group(group_id, self.now_ms) if self._simple_groups(group_id) else None

    def committed(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """The answer of OffsetFetch for all partitions of a group: empty for a group that the era hides."""
        if self.era.hides_offsets_without_group and not self.has_group(group_id):
            return _NO_OFFSETS
        return self.offsets.committed_of(group_id)

    def pending(self, group_id: str) -> Mapping[TopicPartition, Mapping[int, CommittedOffset]]:
        """Transactional commits of a group before their marker, by partition and producer id."""
        return self.offsets.pending_of(group_id)

    def snapshot(self) -> StateSnapshot:
        """The whole state as comparable values."""
        groups = self.groups()
        with_commits = sorted(self.offsets.groups_with_commits())
        return StateSnapshot(
            groups=dict(groups),
            committed={g: dict(found) for g in with_commits if (found := self.committed(g))},
            pending={g: {tp: dict(by) for tp, by in self.pending(g).items()} for g in sorted(self.offsets.groups_with_pending())},
        )

    def _simple_groups(self, only: str | None = None) -> frozenset[str]:
        """Groups without a group record, all or the one of id `only`.

        Scala brokers create them at the end of the load, for committed and pending offsets. The Java coordinator creates one at
        each commit of an unknown group, and keeps it even if the commit is aborted or removed later.
        """
        if not self.era.simple_groups:
            return frozenset()
        if self.era.hides_offsets_without_group:
            commits, removals = self.offsets.last_commit_at, self.registry.removed_at
            candidates = commits.keys() if only is None else commits.keys() & {only}
            ids = {g for g in candidates if commits[g] > removals.get(g, -1)}
        else:
            ids = set(self.offsets.groups_with_commits() | self.offsets.groups_with_pending())
            ids = ids if only is None else ids & {only}
        return frozenset(ids - self.registry.groups.keys())

    def _apply_control(self, log_record: LogRecord) -> tuple[Anomaly, ...]:
        if not self.era.knows_transactions:
            detail = f"era {self.era.name} ({self.era.releases}) does not support control records"
            return (Anomaly(AnomalyKind.BAD_CONTROL_RECORD, None, log_record.offset, detail),)
        ended_by = control_type(log_record.key)
        if ended_by is None:
            return (
                Anomaly(
                    AnomalyKind.BAD_CONTROL_RECORD,
                    None,
                    log_record.offset,
                    f"control record key of {len(log_record.key or b'')} bytes: a control type needs 4",
                ),
            )
        self.offsets.end_transaction(log_record, ended_by)
        return ()


def _undecodable(log_record: LogRecord, outcome: Undecodable | None) -> Anomaly:
    kind = AnomalyKind.UNREAD if isinstance(outcome, UnknownType) else AnomalyKind.UNDECODABLE
    return Anomaly(kind, None, log_record.offset, "not decoded" if outcome is None else outcome.reason)
