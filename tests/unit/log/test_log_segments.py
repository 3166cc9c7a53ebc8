import os
import shutil
from pathlib import Path
from uuid import UUID

import pytest
from segment_builder import LogBuilder

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.log.damage import Problem
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.errors import LogNotFound, LogTruncated, LogUnreadable, RecordsDeleted
from coordinator_core.sources.segments import SegmentSource

PAIRS = [(b"a", b"1"), (b"b", None), (b"c", b"333")]


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path)


def read(source: SegmentSource, partition: int, start: int = 0, end: int | None = None, **options: int) -> list[LogRecord]:
    pieces = source.read_columns(partition, start, end, **options)
    return [record for columns in pieces for record in to_log_records(columns, partition)]


def test_all_partitions_with_their_bounds(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    log.skip(7, 40)
    log.append(7, PAIRS)
    log.topic_id("__consumer_offsets", UUID(int=1), 2)
    source = SegmentSource(log.directory)
    assert source.partitions() == (0, 1, 7)
    assert source.earliest_offsets() == {0: 0, 1: 0, 7: 40}
    assert source.end_offsets() == {0: 3, 1: 0, 7: 43}
    assert read(source, 7) == log.records(7)
    assert read(source, 1) == []


def test_one_folder_by_itself(log: LogBuilder) -> None:
    log.append(3, PAIRS)
    log.topic_id("orders", UUID(int=5))
    source = SegmentSource(log.directory / "__consumer_offsets-3")
    assert source.partitions() == (3,)
    assert source.topic_ids() == {UUID(int=5): "orders"}


def test_another_topic(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "__transaction_state")
    log.append(0, PAIRS)
    assert read(SegmentSource(tmp_path, "__transaction_state"), 0) == log.records(0)


def test_folders_and_files_of_another_kind(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    for name in ("__consumer_offsets-1.0f-delete", "__consumer_offsets-x", "orders-0"):
        (log.directory / name).mkdir()
    for name in ("00000000000000000003.index", "00000000000000000003.log.deleted", "x.log"):
        (log.directory / "__consumer_offsets-0" / name).write_bytes(b"no log")
    source = SegmentSource(log.directory)
    assert source.end_offsets() == {0: 3}


def several_segments(log: LogBuilder) -> SegmentSource:
    for number in range(12):
        log.append(0, PAIRS, compression=Compression(number % 5))
        log.append_messages(0, PAIRS, magic=number % 2, compression=Compression(number % 4))
        if number % 4 == 3:
            log.roll(0)
    return SegmentSource(log.directory)


@pytest.mark.parametrize("chunk_bytes", [1, 100, 500, 1 << 20])
def test_segments_of_all_formats_in_pieces_of_any_size(log: LogBuilder, chunk_bytes: int) -> None:
    source = several_segments(log)
    assert source.end_offsets() == {0: 72}
    assert read(source, 0, chunk_bytes=chunk_bytes) == log.records(0)
    assert read(source, 0, 20, 51, chunk_bytes=chunk_bytes) == [r for r in log.records(0) if 20 <= r.offset < 51]


def test_end_of_a_partition_whose_last_segment_is_empty(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    log.skip(0, 4)
    log.roll(0)
    source = SegmentSource(log.directory)
    assert source.end_offsets() == {0: 7}
    assert read(source, 0, 0, 7) == log.records(0)


def test_next_offset_never_falls_behind_gaps_and_empty_batches(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    log.empty_batch(0, 10)
    log.roll(0)
    log.skip(0, 5)
    log.append(0, PAIRS)
    pieces = list(SegmentSource(log.directory).read_columns(0, 0, 21))
    assert [columns.next_offset for columns in pieces] == [13, 21]


def test_end_is_scanned_again_only_where_the_file_grew(log: LogBuilder) -> None:
    source = several_segments(log)
    log.append(0, PAIRS)
    assert source.end_offsets() == {0: 75}
    log.append(0, PAIRS)
    assert source.end_offsets() == {0: 78}
    log.rewrite(0, log.records(0)[:4])
    assert source.end_offsets() == {0: 78}
    log.tear(0, 1)
    assert source.end_offsets() == {0: 4}


def test_a_log_that_grows_and_rolls_while_it_is_read(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    source = SegmentSource(log.directory)
    pieces = source.read_columns(0, 0, 9)
    records = list(to_log_records(next(pieces), 0))
    log.append(0, PAIRS)
    log.roll(0)
    log.append(0, PAIRS)
    records += [record for columns in pieces for record in to_log_records(columns, 0)]
    assert records == log.records(0)


def test_segments_merged_by_compaction_while_they_are_read(log: LogBuilder) -> None:
    source = several_segments(log)
    pieces = source.read_columns(0, 0, 72, chunk_bytes=400)
    records = list(to_log_records(next(pieces), 0))
    written = log.records(0)
    log.rewrite(0, [record for record in written if record.offset % 3])
    records += [record for columns in pieces for record in to_log_records(columns, 0)]
    assert [record.offset for record in records if record.offset >= 48] == [o for o in range(48, 72) if o % 3]
    assert {record.offset for record in records} >= {record.offset for record in log.records(0)}


def test_partition_deleted_while_it_is_read(log: LogBuilder) -> None:
    source = several_segments(log)
    pieces = source.read_columns(0, 0, 72, chunk_bytes=400)
    next(pieces)
    shutil.rmtree(log.directory / "__consumer_offsets-0")
    with pytest.raises(LogNotFound, match=r"no folder __consumer_offsets-0"):
        list(pieces)


def test_torn_tail_is_reported_once_at_its_position_in_the_file(log: LogBuilder) -> None:
    source = several_segments(log)
    size = log.segment(0).stat().st_size
    log.append(0, PAIRS)
    log.tear(0, 1)
    pieces = list(source.read_columns(0, 0, chunk_bytes=200))
    damages = [damage for columns in pieces for damage in columns.damages]
    assert [(damage.problem, damage.offset, damage.position) for damage in damages] == [(Problem.TORN_TAIL, 72, size)]
    assert source.end_offsets() == {0: 72}


def test_damage_in_one_segment_does_not_hide_the_next(log: LogBuilder) -> None:
    source = several_segments(log)
    first = sorted((log.directory / "__consumer_offsets-0").glob("*.log"))[0]
    first.write_bytes(b"\0" * 100)
    pieces = list(source.read_columns(0, 0, 72))
    assert [damage.problem for columns in pieces for damage in columns.damages] == [Problem.IMPOSSIBLE_LENGTH]
    assert [record.offset for columns in pieces for record in to_log_records(columns, 0)] == list(range(24, 72))


@pytest.mark.parametrize(("start", "end"), [(4, 9), (4, None), (0, 4)])
def test_truncated_log(log: LogBuilder, start: int, end: int | None) -> None:
    log.append(0, PAIRS)
    with pytest.raises(LogTruncated, match=r"partition 0 ends at offset 3, before offset 4"):
        read(SegmentSource(log.directory), 0, start, end)


def test_start_before_the_log_begins(log: LogBuilder) -> None:
    log.skip(0, 10)
    log.append(0, PAIRS)
    source = SegmentSource(log.directory)
    assert read(source, 0, 0, 13) == log.records(0)
    with pytest.raises(RecordsDeleted, match=r"now starts at offset 10, but offset 9 is needed"):
        read(source, 0, 9, 13)


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(LogNotFound, match=r"nowhere: no such directory"):
        SegmentSource(tmp_path / "nowhere")
    with pytest.raises(LogNotFound, match=r"no __consumer_offsets-N folder in this directory"):
        SegmentSource(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LogNotFound):
        SegmentSource(tmp_path / "file")


def test_no_such_partition(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    with pytest.raises(LogNotFound, match=r"no folder __consumer_offsets-5"):
        read(SegmentSource(log.directory), 5)


def test_segment_that_cannot_be_read(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    source = SegmentSource(log.directory)
    log.roll(0).unlink()
    log.segment(0).mkdir()
    with pytest.raises(LogUnreadable, match=r"00000000000000000003\.log: Is a directory"):
        source.end_offsets()


def test_segment_that_is_listed_and_never_there(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    source = SegmentSource(log.directory)
    os.symlink(log.directory / "gone", log.roll(0).with_name("00000000000000000009.log"))
    with pytest.raises(LogUnreadable):
        read(source, 0, 9)


def test_topic_ids(log: LogBuilder) -> None:
    log.append(0, PAIRS)
    log.topic_id("orders.eu-west", UUID("01234567-89ab-cdef-fedc-ba9876543210"), 3)
    for name, text in {
        "broken-0": "version: 0\ntopic_id: !!",
        "empty-0": "",
        "x": "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    }.items():
        (log.directory / name).mkdir()
        (log.directory / name / "partition.metadata").write_text(text)
    (log.directory / "dir-0" / "partition.metadata").mkdir(parents=True)
    assert SegmentSource(log.directory).topic_ids() == {UUID("01234567-89ab-cdef-fedc-ba9876543210"): "orders.eu-west"}
