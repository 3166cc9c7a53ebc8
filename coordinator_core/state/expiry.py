"""The expiry sweep of an era: the offsets and groups it removes, and the tombstones it writes. Pure; times in ms.

In all eras an offset is expired when `now_ms >= expires_at(...)`. Brokers up to 2.0 compare `expireTimestamp < now`, so for
them `expires_at` is one millisecond after the expire timestamp.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey
from coordinator_core.codec.messages.modern import GroupKey
from coordinator_core.codec.messages.offsets import OffsetCommitKey
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.state.era import Era, ExpiryRule, GroupRemoval
from coordinator_core.state.group_state import GroupState

Tombstone = tuple[bytes, None]


class ExpiringGroup(Protocol):
    """The fields of a group that decide expiry; `GroupView` has them, and so may a row of a table."""

    @property
    def group_type(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def generation(self) -> int | None: ...
    @property
    def protocol_type(self) -> str | None: ...
    @property
    def state_timestamp(self) -> int | None: ...
    @property
    def subscribed_topics(self) -> Collection[str] | None: ...


class OffsetTimes(Protocol):
    """The fields of a committed offset that decide expiry; `CommittedOffset` has them."""

    @property
    def commit_timestamp(self) -> int: ...
    @property
    def expire_timestamp(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class SweptGroup:
    """The effect of a sweep on one group.

    `group_removed` may be set without a tombstone for the group: Scala brokers write none for a group that never had a record
    (generation 0).
    """

    group_id: str
    offsets: tuple[TopicPartition, ...]
    group_removed: bool
    tombstones: tuple[Tombstone, ...]


def expires_at(
    era: Era, retention_ms: int, group: ExpiringGroup | None, topic: str, offset: OffsetTimes, *, pending: bool = False
) -> int | None:
    """First time at which the sweep of the era removes a committed offset if nothing changes until then; None for never.

    `group` is None where the coordinator has no group object; `pending` is true when an open transaction has a commit for the
    partition. Follows `OffsetAndMetadata` expiry up to 2.0, `GroupMetadata.removeExpiredOffsets` and, from 4.0 on,
    `OffsetMetadataManager.cleanupExpiredOffsets` with the `offsetExpirationCondition` of the group.
    """
    return _RULES[era.expiry_rule](_ExpiryInput(retention_ms, group, topic, offset, pending))


def sweep_group(
    era: Era,
    retention_ms: int,
    now_ms: int,
    group_id: str,
    group: ExpiringGroup | None,
    offsets: Mapping[TopicPartition, OffsetTimes],
    pending: Collection[TopicPartition] = (),
    record_keys: Iterable[bytes] = (),
) -> SweptGroup:
    """Sweep a group at `now_ms`, with its committed offsets and its pending partitions.

    `record_keys` are the keys of the records of a modern group (`records` of the registry's group); its tombstones have them
    in the order of `createGroupTombstoneRecords`.
    """
    expired = tuple(
        sorted(
            partition
            for partition, offset in offsets.items()
            if (at := expires_at(era, retention_ms, group, partition.topic, offset, pending=partition in pending)) is not None
            and now_ms >= at
        )
    )
    removed = group is not None and _can_be_removed(era, group) and len(expired) == len(offsets) and not pending
    tombstones = [encode(Record(1, OffsetCommitKey(group_id, p.topic, p.partition), None, None)) for p in expired]
    if removed and group is not None:
        tombstones += _group_tombstones(era, group_id, group, record_keys)
    return SweptGroup(group_id, expired, removed, tuple((key, None) for key, _ in tombstones))


def expire(state: GroupState, now_ms: int, retention_ms: int | None = None) -> tuple[SweptGroup, ...]:
    """Sweep a whole state. The result has the groups that change, in the order of their ids."""
    retention = state.retention_ms if retention_ms is None else retention_ms
    views = state.groups()
    ids = views.keys() if state.era.hides_offsets_without_group else views.keys() | state.offsets.groups_with_commits()
    swept = []
    for group_id in sorted(ids):
        backing = state.registry.groups.get(group_id)
        result = sweep_group(
            state.era,
            retention,
            now_ms,
            group_id,
            views.get(group_id),
            state.committed(group_id),
            state.pending(group_id).keys(),
            () if backing is None else backing.records.keys(),
        )
        if result.offsets or result.group_removed:
            swept.append(result)
    return tuple(swept)


class _ExpiryInput(NamedTuple):
    retention_ms: int
    group: ExpiringGroup | None
    topic: str
    offset: OffsetTimes
    pending: bool

    def after(self, base_ms: int) -> int:
        """The explicit expire timestamp, or else `base_ms` plus the retention."""
        return base_ms + self.retention_ms if self.offset.expire_timestamp is None else self.offset.expire_timestamp


def _by_timestamp(check: _ExpiryInput) -> int | None:
    """0.9–2.0: by the expire timestamp alone."""
    return check.after(check.offset.commit_timestamp) + 1


def _by_group_state(check: _ExpiryInput) -> int | None:
    """2.1–2.3 (KIP-211): in Empty groups since they became empty, in simple groups since the commit, in other groups never."""
    group = check.group
    if group is None:
        return None
    if group.group_type == "simple":
        return check.after(check.offset.commit_timestamp)
    if group.state == "Empty":
        return check.after(check.offset.commit_timestamp if group.state_timestamp is None else group.state_timestamp)
    return None


def _by_subscription(check: _ExpiryInput) -> int | None:
    """2.4–3.9 (KIP-496): as in 2.1–2.3, and in Stable consumer groups the offsets of unsubscribed topics."""
    group = check.group
    if group is not None and group.group_type == "classic" and group.state == "Stable" and group.protocol_type == "consumer":
        subscribed = group.subscribed_topics
        unsubscribed = subscribed is not None and check.topic not in subscribed
        return check.after(check.offset.commit_timestamp) if unsubscribed else None
    return _by_group_state(check)


def _by_group_type(check: _ExpiryInput) -> int | None:
    """The Java coordinator: classic groups as in 2.4–3.9, consumer and streams groups by commit time and subscription."""
    group = check.group
    if group is None or check.pending or group.group_type == "share":
        return None
    if group.group_type in ("consumer", "streams"):
        subscribed = check.topic in (group.subscribed_topics or ())
        return None if subscribed else check.after(check.offset.commit_timestamp)
    return _by_subscription(check)


_RULES: Mapping[ExpiryRule, Callable[[_ExpiryInput], int | None]] = MappingProxyType(
    {
        ExpiryRule.TIMESTAMP: _by_timestamp,
        ExpiryRule.GROUP_STATE: _by_group_state,
        ExpiryRule.SUBSCRIPTION: _by_subscription,
        ExpiryRule.GROUP_TYPE: _by_group_type,
    }
)


def _can_be_removed(era: Era, group: ExpiringGroup) -> bool:
    """True if a sweep may remove the group once it has no offsets. The group itself has no retention."""
    return era.group_removal is not GroupRemoval.NEVER and group.state == "Empty" and group.group_type != "share"


#: Record types of a group's tombstones in the order of writing, and those written even without such a record; the others are
#: written for existing records only.
_TOMBSTONE_ORDER: Mapping[str, tuple[tuple[int, ...], frozenset[int]]] = MappingProxyType(
    {
        "consumer": ((8, 7, 6, 5, 16, 4, 3), frozenset({6, 4, 3})),
        "streams": ((22, 21, 20, 19, 17, 23), frozenset({20, 17, 23})),
    }
)


def _group_tombstones(
    era: Era, group_id: str, group: ExpiringGroup, record_keys: Iterable[bytes]
) -> Iterable[tuple[bytes, bytes | None]]:
    if group.group_type not in _TOMBSTONE_ORDER:
        always = era.group_removal is GroupRemoval.ALWAYS_TOMBSTONE
        return [encode(Record(2, GroupMetadataKey(group_id), None, None))] if always or (group.generation or 0) > 0 else []
    order, unconditional = _TOMBSTONE_ORDER[group.group_type]
    keys: dict[int, set[bytes]] = {record_type: set() for record_type in order}
    for key in record_keys:
        keys.setdefault(int.from_bytes(key[:2], "big"), set()).add(key)
    for record_type in unconditional:
        keys[record_type].add(encode(Record(record_type, GroupKey(group_id), None, None))[0])
    return [(key, None) for record_type in order for key in sorted(keys[record_type])]
