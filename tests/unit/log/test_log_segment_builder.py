"""The builder that other tests rely on: its segments contain the records that it lists, and its compaction is legal."""

from pathlib import Path

from segment_builder import LogBuilder, compact

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.sources.segments import SegmentSource


def read(log: LogBuilder, partition: int) -> list[LogRecord]:
    source = SegmentSource(log.directory)
    return [
        r for columns in source.read_columns(partition, 0, log.next_offset(partition)) for r in to_log_records(columns, partition)
    ]


def scenario(directory: Path) -> LogBuilder:
    log = LogBuilder(directory)
    log.append(0, [(b"a", b"1"), (b"b", b"1")])
    log.append(0, [(b"a", b"2"), (b"c", b"2")], producer_id=5, transactional=True)
    log.marker(0, 5, commit=True)
    log.append(0, [(b"b", b"3"), (None, b"3")], producer_id=6, transactional=True)
    log.marker(0, 6, commit=False)
    log.append(0, [(b"c", None)])
    log.append(0, [(b"a", b"4")], producer_id=5, transactional=True)
    log.append(0, [(b"c", b"5"), (b"b", b"5")])
    return log


def test_scenario_is_read_as_written(tmp_path: Path) -> None:
    log = scenario(tmp_path)
    assert read(log, 0) == log.records(0)


def test_compaction_keeps_the_last_of_each_key_below_the_open_transaction(tmp_path: Path) -> None:
    records = scenario(tmp_path).records(0)
    kept = compact(records)
    assert [(r.offset, r.key, r.is_control) for r in kept] == [
        (1, b"b", False),
        (2, b"a", False),
        (4, b"\0\0\0\1", True),
        (7, b"\0\0\0\0", True),
        (8, b"c", False),
        (9, b"a", False),
        (10, b"c", False),
        (11, b"b", False),
    ]
    assert [r.batch_offset for r in kept] == [1, 2, 4, 7, 8, 9, 10, 10]


def test_tombstones_and_lone_markers_may_go(tmp_path: Path) -> None:
    records = scenario(tmp_path).records(0)
    assert [r.offset for r in compact(records, drop_tombstones=True, drop_markers=True)] == [1, 2, 4, 9, 10, 11]
    assert [r.offset for r in compact(records, upto=3, drop_markers=True)][:4] == [1, 2, 3, 4]


def test_compacted_log_is_read_as_rewritten(tmp_path: Path) -> None:
    log = scenario(tmp_path)
    end = log.next_offset(0)
    kept = [r for r in compact(log.records(0)) if r.offset < 10]
    log.rewrite(0, kept)
    assert read(log, 0) == kept == log.records(0)
    assert SegmentSource(tmp_path).end_offsets() == {0: end}
