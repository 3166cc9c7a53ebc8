"""Logs of offset commits, tombstones and markers as hypothesis strategies, and what a reduction should say about them.

Few groups, keys and producers, so that events meet; some records are odd on purpose.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from coordinator_core.codec import Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_type
from coordinator_core.state.era import Era
from coordinator_core.state.reduction import PartitionReducer, Reduction
from coordinator_core.state.tombstone_scope import TombstoneScope

ERAS = ("0.10", "1", "3", "4")
PARTITION = 7

Cuts = Sequence[int]


class Key(NamedTuple):
    group: str
    topic: str
    partition: int


def reduced(records: Sequence[LogRecord], era: str, cuts: Cuts = ()) -> Reduction:
    """The reduction of the records, cut into chunks at the indices."""
    reducer = PartitionReducer(Era.named(era), PARTITION)
    for chunk in pieces(records, cuts):
        reducer.add(columns_of(chunk, next_offset=chunk[-1].offset + 1 if chunk else 0))
    return reducer.finish()


def pieces(records: Sequence[LogRecord], cuts: Cuts) -> list[Sequence[LogRecord]]:
    bounds = [0, *sorted(cut % (len(records) + 1) for cut in cuts), len(records)]
    return [records[low:high] for low, high in itertools.pairwise(bounds)]


_keys = st.builds(OffsetCommitKey, st.sampled_from("gh"), st.sampled_from(["t", "été"]), st.sampled_from([0, 0, 1]))
_topic_ids = st.sampled_from([ZERO_UUID, UUID(int=5), UUID(int=2**127 + 9)])


@st.composite
def _commits(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    version = draw(st.sampled_from([1, 1, 3, 4]))
    value = OffsetCommitValue(
        offset=draw(st.integers(0, 9)),
        leader_epoch=draw(st.sampled_from([-1, 4])) if version >= 3 else -1,
        metadata=draw(st.sampled_from(["", "", "m", "x" * 200])),
        commit_timestamp=draw(st.integers(0, 3)),
        expire_timestamp=draw(st.sampled_from([-1, 50])) if version == 1 else -1,
        topic_id=draw(_topic_ids) if version == 4 else ZERO_UUID,
    )
    return encode(Record(draw(st.sampled_from([0, 1, 1, 1])), draw(_keys), value, version))


_tombstones = st.builds(lambda record_type, key: encode(Record(record_type, key, None, None)), st.sampled_from([0, 1, 1]), _keys)
_strangers = st.sampled_from(
    [(None, None), (b"", b""), (b"\x00\x01", b"x"), (b"\x00\x63", b"x"), encode(Record(2, GroupMetadataKey("g"), None, None))]
)
_data = st.one_of(_commits(), _commits(), _tombstones, _strangers)
_control_keys = st.sampled_from([b"\0\0\0\1"] * 4 + [b"\0\0\0\0"] * 2 + [b"\0\0\0\5", b"\0\0", None])


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    """Records of one partition, transactional and plain, with markers of their producers."""
    records: list[LogRecord] = []
    offset = draw(st.integers(0, 5))
    for is_control, producer_id, is_transactional in draw(
        st.lists(st.tuples(st.sampled_from([False] * 3 + [True]), st.sampled_from([-1, 1, 2]), st.booleans()), max_size=24)
    ):
        key, value = (draw(_control_keys), bytes(6)) if is_control else draw(_data)
        # Odd, but possible: a producer id without a transaction (idempotence), seldom the other way round.
        is_transactional = is_control or ((is_transactional or producer_id == 1) and (producer_id != -1 or offset % 5 == 0))
        records.append(
            LogRecord(PARTITION, offset, 1000 + offset, key, value, producer_id, 0, is_transactional, is_control, offset)
        )
        offset += draw(st.sampled_from([1, 1, 2]))
    return records


cuts = st.lists(st.integers(0, 24), max_size=4)


@dataclass
class Story:
    """What a straightforward fold over a range from nothing says of each key: its operations in the order of taking effect."""

    effects: dict[Key, list[tuple[str, int]]] = field(default_factory=dict)
    standing: dict[Key, tuple[int, int]] = field(default_factory=dict)
    pending: dict[int, dict[Key, tuple[int, int]]] = field(default_factory=dict)
    markers: dict[int, tuple[int, str]] = field(default_factory=dict)
    values: dict[Key, int] = field(default_factory=dict)
    tombstones: dict[Key, int] = field(default_factory=dict)
    topic_ids: set[tuple[UUID, str]] = field(default_factory=set)
    others: list[int] = field(default_factory=list)

    def commit(self, key: Key, at: tuple[int, int]) -> None:
        self.standing[key] = at
        self.effects.setdefault(key, []).append(("commit", at[1]))

    def remove(self, key: Key, log_offset: int) -> None:
        self.standing.pop(key, None)
        self.effects.setdefault(key, []).append(("removal", log_offset))

    def history(self, key: Key) -> dict[str, Any]:
        effects = self.effects[key]
        committed = [offset for kind, offset in effects if kind == "commit"]
        rewinds = [a[0] == b[0] == "commit" and b[1] < a[1] for a, b in itertools.pairwise(effects)]
        return {
            "commits": len(committed),
            "min_offset": min(committed, default=None),
            "rewound": any(rewinds),
            "first_offset": effects[0][1] if effects[0][0] == "commit" else None,
        }


def story(records: Sequence[LogRecord], era: Era) -> Story:
    """Fold the records with dicts, by the rules of the reference and nothing else."""
    told = Story()
    java = era.tombstone_scope is TombstoneScope.JAVA
    for record in records:
        if record.is_control:
            _tell_control(told, record, era)
            continue
        decoded = decode(record.key, record.value)
        if (
            not isinstance(decoded, Record)
            or not isinstance(decoded.key, OffsetCommitKey)
            or not era.reads(decoded.record_type, decoded.value_version)
        ):
            told.others.append(record.offset)
            continue
        key = Key(decoded.key.group, decoded.key.topic, decoded.key.partition)
        transactional = era.knows_transactions and (record.producer_id != -1 if java else record.is_transactional)
        if isinstance(decoded.value, OffsetCommitValue):
            told.values[key] = record.offset
            if decoded.value.topic_id != ZERO_UUID:
                told.topic_ids.add((decoded.value.topic_id, key.topic))
            at = (record.offset, decoded.value.offset)
            if transactional:
                told.pending.setdefault(record.producer_id, {})[key] = at
            else:
                told.commit(key, at)
            continue
        told.tombstones[key] = record.offset
        if java:
            for pending in told.pending.values():
                pending.pop(key, None)
        if transactional and not java:
            told.pending.get(record.producer_id, {}).pop(key, None)
        else:
            told.remove(key, record.offset)
    return told


def _tell_control(told: Story, record: LogRecord, era: Era) -> None:
    kind = control_type(record.key)
    if kind is None or not era.knows_transactions:
        told.others.append(record.offset)
        return
    if kind not in (ControlType.COMMIT, ControlType.ABORT) and era.tombstone_scope is TombstoneScope.JAVA:
        return
    told.markers.setdefault(record.producer_id, (record.offset, "COMMIT" if kind == ControlType.COMMIT else "ABORT"))
    for key, at in told.pending.pop(record.producer_id, {}).items():
        if kind == ControlType.COMMIT and (key not in told.standing or told.standing[key][0] < at[0]):
            told.commit(key, at)
