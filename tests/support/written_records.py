"""Records that a coordinator wrote into `__consumer_offsets`, by group, with placeholders for values that differ between runs.

Placeholders stand for member ids (the random part), times and topic ids. Only these are replaced: a record is decoded, changed
and encoded again, by a codec that is asserted here to reproduce the original bytes.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from uuid import UUID

from live_kafka import records_of

from coordinator_core.codec import Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.sources.segments import SegmentSource
from coordinator_core.state.registry import group_id_of

_MEMBER_ID = re.compile(r"(.+)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_NO_PRODUCER = (-1, -1)


@dataclass(frozen=True)
class Written:
    """A record, or a marker with its control record's bytes. `producer` is id and epoch."""

    key: bytes
    value: bytes | None
    producer: tuple[int, int] = _NO_PRODUCER
    marker: ControlType | None = None

    def __str__(self) -> str:
        what = self.marker.name if self.marker is not None else str(decode(self.key, self.value))
        return what if self.producer == _NO_PRODUCER else f"{what} of producer {self.producer}"


@dataclass
class Placeholders:
    """The placeholders of one log. `started_ms` and `ended_ms` bound every time in it."""

    started_ms: int
    ended_ms: int
    with_topic_ids: bool = True
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    _members: dict[tuple[str, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def record(self, record: Record) -> Record:
        value = record.value
        if isinstance(value, OffsetCommitValue):
            assert isinstance(record.key, OffsetCommitKey)
            return record._replace(value=self._commit(record.key.topic, value))
        if isinstance(value, GroupMetadataValue):
            return record._replace(value=self._group(group_id_of(record), value))
        assert value is None, record
        return record

    def _commit(self, topic: str, value: OffsetCommitValue) -> OffsetCommitValue:
        self._check_time(value.commit_timestamp)
        if value.topic_id != ZERO_UUID:
            assert self.topic_ids.setdefault(topic, value.topic_id) == value.topic_id, topic
        return replace(
            value,
            commit_timestamp=0,
            expire_timestamp=value.expire_timestamp - (value.commit_timestamp if value.expire_timestamp != -1 else 0),
            topic_id=UUID(int=1) if self.with_topic_ids and value.topic_id != ZERO_UUID else ZERO_UUID,
        )

    def _group(self, group: str, value: GroupMetadataValue) -> GroupMetadataValue:
        if value.current_state_timestamp != -1:
            self._check_time(value.current_state_timestamp)
        # brokers keep members in a map by their random ids
        members = sorted(value.members, key=lambda member: (member.client_id, member.group_instance_id or ""))
        return replace(
            value,
            leader=None if value.leader is None else self.member_id(group, value.leader),
            current_state_timestamp=min(value.current_state_timestamp, 0),
            members=tuple(self._member(group, member) for member in members),
        )

    def _member(self, group: str, member: MemberMetadata) -> MemberMetadata:
        return replace(member, member_id=self.member_id(group, member.member_id))

    def member_id(self, group: str, member_id: str) -> str:
        match = _MEMBER_ID.fullmatch(member_id)
        assert match, member_id
        known = self._members[group, match[1]]
        return known.setdefault(match[2], f"{match[1]}-{len(known) + 1}")

    def _check_time(self, time_ms: int) -> None:
        assert self.started_ms <= time_ms <= self.ended_ms, f"{time_ms} is not in {self.started_ms}-{self.ended_ms}"


def written(
    log: Path, started_ms: int, ended_ms: int, *, in_order: bool, with_topic_ids: bool = True
) -> dict[str, list[Written]]:
    """Records by group, in the order of the log; markers are listed under `producer N`.

    Consecutive tombstones are sorted: brokers read them from a hash map. So are the records of one batch unless they are
    `in_order`: Scala brokers put the commits of a request into a hash map first. Without `with_topic_ids`, topic ids are removed.
    """
    source = SegmentSource(log)
    starts, ends = source.earliest_offsets(), source.end_offsets()
    records = records_of((p, columns) for p in source.partitions() for columns in source.read_columns(p, starts[p], ends[p]))
    placeholders = Placeholders(started_ms, ended_ms, with_topic_ids)
    found: dict[str, list[Written]] = {}
    for _, batch in groupby(records, lambda record: (record.partition, record.batch_offset)):
        together = [_written(record, placeholders) for record in batch]
        for name, one in together if in_order else sorted(together, key=lambda pair: pair[1].key):
            found.setdefault(name, []).append(one)
    return {name: list(_tombstones_sorted(some)) for name, some in found.items()}


def _written(record: LogRecord, placeholders: Placeholders) -> tuple[str, Written]:
    producer = (record.producer_id, record.producer_epoch)
    assert record.key is not None
    if record.is_control:
        marker = ControlType(int.from_bytes(record.key[2:4], "big"))
        return f"producer {record.producer_id}", Written(record.key, record.value, producer, marker)
    assert record.is_transactional == (producer != _NO_PRODUCER), record
    decoded = decode(record.key, record.value)
    assert isinstance(decoded, Record), decoded
    assert encode(decoded) == (record.key, record.value)
    key, value = encode(placeholders.record(decoded))
    assert key is not None
    return group_id_of(decoded), Written(key, value, producer)


def _tombstones_sorted(written: Sequence[Written]) -> Iterator[Written]:
    for are_tombstones, run in groupby(written, lambda one: one.value is None):
        together = list(run)
        yield from sorted(together, key=lambda one: one.key) if are_tombstones else together


def differences(theirs: Mapping[str, Sequence[Written]], ours: Mapping[str, Sequence[Written]]) -> list[str]:
    """Lines that describe records which differ or exist on one side only."""
    found = []
    for group in sorted(theirs.keys() | ours.keys()):
        expected, have = list(theirs.get(group, ())), list(ours.get(group, ()))
        for index in range(max(len(expected), len(have))):
            one, other = expected[index : index + 1], have[index : index + 1]
            if one != other:
                shown = [str(side[0]) if side else "nothing" for side in (one, other)]
                found.append(f"{group}, record {index}:\n  theirs {shown[0]}\n  ours   {shown[1]}")
    return found
