"""Ranges that end inside of compressed messages of magic 0 or 1, whose offset is that of their last wrapped message."""

from pathlib import Path

import pytest
from scalar_logs import read_log
from segment_builder import LogBuilder

from coordinator_core.log.columns import parse_columns, to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import LogRecord
from coordinator_core.sources.segments import SegmentSource

LAYOUT = [(3, Compression.NONE), (4, Compression.GZIP), (1, Compression.NONE), (5, Compression.GZIP), (2, Compression.GZIP)]
END = sum(count for count, _ in LAYOUT)


@pytest.fixture(params=[0, 1])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> LogBuilder:
    builder = LogBuilder(tmp_path)
    for count, compression in LAYOUT:
        pairs = [(b"key", b"value")] * count
        builder.append_messages(0, pairs, magic=request.param, compression=compression)
    return builder


@pytest.mark.parametrize("end", range(END + 1))
def test_every_end_gives_every_record_before_it(log: LogBuilder, end: int) -> None:
    data = log.segment(0).read_bytes()
    scalar = [item.offset for item in read_log(data, 0, 0, end) if isinstance(item, LogRecord)]
    columns = parse_columns(data, 0, end)
    assert scalar == [record.offset for record in to_log_records(columns, 0)] == list(range(end))
    assert columns.next_offset == end


@pytest.mark.parametrize("cut", range(1, END))
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_two_ranges_are_the_whole(log: LogBuilder, cut: int, chunk_bytes: int) -> None:
    source = SegmentSource(log.directory)
    found = [
        record.offset
        for start, end in ((0, cut), (cut, END))
        for columns in source.read_columns(0, start, end, chunk_bytes=chunk_bytes)
        for record in to_log_records(columns, 0)
    ]
    assert found == list(range(END))


def test_a_range_is_not_read_beyond_its_end(log: LogBuilder) -> None:
    pieces = list(SegmentSource(log.directory).read_columns(0, 0, 5, chunk_bytes=1))
    assert [piece.next_offset for piece in pieces] == [1, 2, 3, 5]
