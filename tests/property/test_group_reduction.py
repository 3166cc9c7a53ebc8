"""For every division of a log into ranges and chunks, the tasks' rows of group records equal the fold of the whole log."""

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from log_builder import Log, member
from offset_logs import Cuts, pieces

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.consumer import ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.membership_rows import membership_values, ownership_values
from coordinator_core.reduction.range_reduction import RangeReducer, RangeReduction
from coordinator_core.state.era import Era
from coordinator_core.state.group_fold import AppliedRecord, GroupChange, GroupFold
from coordinator_core.state.history import UNREADABLE_ASSIGNMENT
from coordinator_core.state.registry import group_id_of

Row = tuple[object, ...]

_MEMBERS = {
    "none": [],
    "one": [member()],
    "two": [member(), member("m2", topics=["bar"])],
    "moved": [member(topics=["foo", "bar"])],
    "static": [member(instance_id="i"), member("m3", topics=["bar"])],
    "same instance": [member(instance_id="i"), member("m2", instance_id="i")],
    "refused": [member(subscription=b"\x00\x00\x00\x00\x00\x09")],
}
_MODERN = {
    3: ConsumerGroupMetadataValue(4),
    5: ConsumerGroupMemberMetadataValue(None, None, "client", "/127.0.0.1", ("foo",), classic_member_metadata=None),
}
_groups = st.sampled_from(["a", "b"])
_shapes, _versions = st.sampled_from(sorted(_MEMBERS)), st.sampled_from([1, 3, 4])
_classic = st.tuples(st.just("classic"), _groups, _shapes, st.integers(1, 2), _versions)
_removal = st.tuples(st.just("removal"), _groups)
_modern = st.tuples(st.just("modern"), _groups, st.sampled_from(sorted(_MODERN)), st.booleans())
_other = st.sampled_from([("commit",), ("garbage", b"\x00\x02\x00\x01a"), ("garbage", b"\x00\x63"), ("garbage", b"")])
_operations = st.lists(st.one_of(_classic, _classic, _removal, _modern, _other), max_size=25)
_cuts = st.lists(st.integers(0, 25), max_size=3)


def written(operations: Sequence[tuple[Any, ...]]) -> Log:
    log = Log(partition=7)
    for operation in operations:
        match operation:
            case ("classic", group, members, generation, version):
                log.group(_MEMBERS[members], group=group, generation=generation, version=version)
            case ("removal", group):
                log.group_tombstone(group)
            case ("modern", group, record_type, is_tombstone):
                log.modern(record_type, None if is_tombstone else _MODERN[record_type], group=group)
            case ("garbage", key):
                log.raw(key, b"\x00")
            case _:
                log.commit(0, 1, group="a")
    return log


def reduced(records: Sequence[LogRecord], era: Era, cuts: Cuts) -> RangeReduction:
    reducer = RangeReducer(era, 7)
    for chunk in pieces(records, cuts):
        reducer.add(columns_of(chunk, next_offset=chunk[-1].offset + 1 if chunk else 0))
    return reducer.finish()


def read_by(era: Era, record: LogRecord) -> Record | None:
    decoded = decode(record.key, record.value)
    return decoded if isinstance(decoded, Record) and era.reads(decoded.record_type, decoded.value_version) else None


def row_of(record: LogRecord, change_of_group: GroupChange) -> Row:
    group_id, change, group = change_of_group
    state = (group.group_type, group.state, group.generation) if group else (None, None, None)
    # for the quarantine
    logged = (record.key, record.value) if change.change == UNREADABLE_ASSIGNMENT else (None, None)
    return (record.offset, record.timestamp, group_id, change.change, change.member_id, *state, change.detail, *logged)


def rows_of(record: LogRecord, applied: AppliedRecord) -> list[Row]:
    """Rows of the histories for a record: changes, membership, ownership."""
    membership, ownership = applied.membership
    position = (record.offset, record.timestamp)
    return [
        *(row_of(record, each) for each in applied.changes),
        *([] if membership is None else [(*position, *membership_values(membership))]),
        *((*position, *ownership_values(each)[:-2], list(each.gained), list(each.lost)) for each in ownership),
    ]


class Folded:
    """A fold, its histories, and the last record that removed each group."""

    def __init__(self, era: Era) -> None:
        self.era = era
        self.fold = GroupFold(era)
        self.history: list[Row] = []
        self.removals: dict[str, int] = {}

    def add(self, log_record: LogRecord, *, is_state_only: bool = False) -> None:
        record = read_by(self.era, log_record)
        if record is None:
            return
        if is_state_only:
            self.fold.apply_state_only(log_record, record, {})
        else:
            self.history += rows_of(log_record, self.fold.apply(log_record, record, {}))
        if self.fold.registry.removed_at.get(group_id_of(record)) == log_record.offset:
            self.removals[group_id_of(record)] = log_record.offset

    def state(self) -> tuple[object, ...]:
        registry = self.fold.registry
        groups = {group_id: (group.view({}), dict(group.records)) for group_id, group in registry.groups.items()}
        removals = {group_id: offset for group_id, offset in self.removals.items() if group_id not in groups}
        return groups, registry.removed_at, removals, sorted(self.history, key=str)


def in_ranges(records: Sequence[LogRecord], era: Era, range_cuts: Cuts, chunk_cuts: Cuts) -> Folded:
    folded = Folded(era)
    by_offset = {record.offset: record for record in records}
    for piece in pieces(records, range_cuts):
        groups = reduced(piece, era, chunk_cuts).groups
        for reported in (groups.changes, groups.membership, groups.ownership):
            folded.history += [tuple(row.values()) for row in reported.to_pylist()]
        for row in groups.records.sort_by("log_offset").to_pylist():
            record = by_offset[row["log_offset"]]
            assert (row["key"], row["value"], row["record_timestamp"]) == (record.key, record.value, record.timestamp)
            folded.add(LogRecord(7, record.offset, record.timestamp, record.key, record.value), is_state_only=row["state_only"])
    return folded


def at_once(records: Sequence[LogRecord], era: Era) -> Folded:
    folded = Folded(era)
    for record in records:
        folded.add(LogRecord(7, record.offset, record.timestamp, record.key, record.value))
    return folded


# a removal inside a run is the last one of a group that is removed without a tombstone of its own
@example(
    [
        ("classic", "a", "one", 1, 3),
        ("removal", "a"),
        ("classic", "a", "none", 1, 3),
        ("modern", "a", 5, False),
        ("modern", "a", 5, True),
    ],
    [],
    [],
    "4",
)
@given(_operations, _cuts, _cuts, st.sampled_from(["0.10", "2", "3", "4"]))
def test_ranges_fold_to_what_the_log_folds_to(
    operations: list[tuple[Any, ...]], range_cuts: list[int], chunk_cuts: list[int], era_name: str
) -> None:
    log, era = written(operations), Era.named(era_name)
    assert in_ranges(log.records, era, range_cuts, chunk_cuts).state() == at_once(log.records, era).state()


def test_of_a_run_at_most_three_records_are_left() -> None:
    operations: list[tuple[Any, ...]] = [("classic", "a", "one", generation, 3) for generation in range(50)]
    operations[20:20] = [("removal", "a"), ("removal", "a")]
    groups = reduced(written(operations).records, Era.named("4"), [10, 20, 30]).groups
    assert sorted(zip(groups.records["log_offset"].to_pylist(), groups.records["state_only"].to_pylist(), strict=True)) == [
        (0, False),
        (21, True),
        (51, True),
    ]
    assert groups.changes["change"].to_pylist().count("rebalance") == 48
