"""Logs of offset commits, tombstones and markers as Hypothesis strategies, and the reduction that they must lead to.

There are few groups, keys and producers, so that events meet; some records are odd on purpose.
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
from coordinator_core.reduction.partition_reduction import PartitionReducer, Reduction
from coordinator_core.state.era import Era, TombstoneScope

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


_KEYS = [OffsetCommitKey("g", "t", 0)] * 4 + [OffsetCommitKey("g", "été", 1), OffsetCommitKey("h", "t", 0)]
_TOPIC_IDS = (ZERO_UUID, UUID(int=5), UUID(int=2**127 + 9))
#: (version, value); every era reads most of them.
_VALUES = [
    *((1, OffsetCommitValue(offset, -1, "", 3, expires)) for offset in (0, 4, 9) for expires in (-1, 50)),
    *((1, OffsetCommitValue(offset, -1, text)) for offset, text in ((2, "m"), (5, "x" * 200), (7, "né"))),
    (3, OffsetCommitValue(6, 4, "leader")),
    *((4, OffsetCommitValue(i, -1, "", 1, -1, topic_id)) for i, topic_id in enumerate(_TOPIC_IDS)),
]
_STRANGERS = [
    (None, None),
    (b"", b""),
    (b"\x00\x01", b"x"),
    (b"\x00\x63", b"x"),
    encode(Record(2, GroupMetadataKey("g"), None, None)),
]
_CONTROL_KEYS = [b"\0\0\0\1"] * 5 + [b"\0\0\0\0"] * 2 + [b"\0\0\0\5", b"\0\0", None]
_COMMITS = [
    encode(Record(0 if i % 6 == 5 else 1, key, value, version)) for i, key in enumerate(_KEYS) for version, value in _VALUES
]
_TOMBSTONES = [encode(Record(record_type, key, None, None)) for key in _KEYS for record_type in (1, 1, 0)]

#: (producer id, is transactional). Odd but possible: a producer id without a transaction (idempotence), and the reverse.
_plain = st.tuples(st.sampled_from([-1] * 5 + [1]), st.just(False))
_transactional = st.tuples(st.sampled_from([1, 2] * 4 + [-1]), st.just(True))
_events = st.one_of(
    st.tuples(st.just(False), st.sampled_from(_COMMITS), _transactional),
    st.tuples(st.just(False), st.sampled_from(_COMMITS), _plain),
    st.tuples(st.just(False), st.sampled_from(_TOMBSTONES), _transactional | _plain),
    st.tuples(st.just(True), st.tuples(st.sampled_from(_CONTROL_KEYS), st.just(bytes(6))), _transactional),
    st.tuples(st.just(False), st.sampled_from(_STRANGERS + _COMMITS[:5]), _transactional | _plain),
)


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    """Records of one partition, transactional and plain, with markers of their producers."""
    events = draw(st.lists(_events, max_size=5) | st.lists(_events, min_size=6, max_size=16))
    start, gap = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    offsets = [start + i + i // gap for i in range(len(events))]
    return [
        LogRecord(PARTITION, offset, 1000 + offset, key, value, producer_id, 0, is_transactional, is_control, offset)
        for offset, (is_control, (key, value), (producer_id, is_transactional)) in zip(offsets, events, strict=True)
    ]


cuts = st.lists(st.integers(0, 16), max_size=4)


@dataclass
class Story:
    """A plain fold over a range that starts from nothing; for each key its operations in the order in which they take effect."""

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
        rewinds = [b[1] for a, b in itertools.pairwise(effects) if a[0] == b[0] == "commit" and b[1] < a[1]]
        return {
            "commits": len(committed),
            "min_offset": min(rewinds or committed, default=None),
            "rewound": bool(rewinds),
            "first_offset": effects[0][1] if effects[0][0] == "commit" else None,
        }


def story(records: Sequence[LogRecord], era: Era) -> Story:
    """Fold the records with dicts, by the rules of the reference alone."""
    fold = Story()
    java = era.tombstone_scope is TombstoneScope.JAVA
    for record in records:
        if record.is_control:
            _add_control(fold, record, era)
            continue
        decoded = decode(record.key, record.value)
        if (
            not isinstance(decoded, Record)
            or not isinstance(decoded.key, OffsetCommitKey)
            or not era.reads(decoded.record_type, decoded.value_version)
        ):
            fold.others.append(record.offset)
            continue
        key = Key(decoded.key.group, decoded.key.topic, decoded.key.partition)
        transactional = era.knows_transactions and (record.producer_id != -1 if java else record.is_transactional)
        if isinstance(decoded.value, OffsetCommitValue):
            fold.values[key] = record.offset
            if decoded.value.topic_id != ZERO_UUID:
                fold.topic_ids.add((decoded.value.topic_id, key.topic))
            at = (record.offset, decoded.value.offset)
            if transactional:
                fold.pending.setdefault(record.producer_id, {})[key] = at
            else:
                fold.commit(key, at)
            continue
        fold.tombstones[key] = record.offset
        if java:
            for pending in fold.pending.values():
                pending.pop(key, None)
        if transactional and not java:
            fold.pending.get(record.producer_id, {}).pop(key, None)
        else:
            fold.remove(key, record.offset)
    return fold


def _add_control(fold: Story, record: LogRecord, era: Era) -> None:
    kind = control_type(record.key)
    if kind is None or not era.knows_transactions:
        fold.others.append(record.offset)
        return
    if kind not in (ControlType.COMMIT, ControlType.ABORT) and era.tombstone_scope is TombstoneScope.JAVA:
        return
    fold.markers.setdefault(record.producer_id, (record.offset, "COMMIT" if kind == ControlType.COMMIT else "ABORT"))
    for key, at in fold.pending.pop(record.producer_id, {}).items():
        if kind == ControlType.COMMIT and (key not in fold.standing or fold.standing[key][0] < at[0]):
            fold.commit(key, at)
