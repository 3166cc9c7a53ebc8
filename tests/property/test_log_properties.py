"""Any bytes: the compiled columns agree with the scalar reader, and every slice lies in its buffer."""

from typing import Any

import genuine
import pytest
from expecting import expect_all
from hypothesis import given
from hypothesis import strategies as st
from log_agreement import check
from message_sets import write_message_set
from scalar_logs import read_log

from coordinator_core.log.columns import parse_columns, to_log_records
from coordinator_core.log.compression import Compression, compress, decompress
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import BatchRecord, end_transaction_marker, write_batch

int64 = st.integers(-(1 << 63), (1 << 63) - 1)
timestamps = st.integers(-1, 1 << 42)
data_or_null = st.none() | st.binary(max_size=40) | st.binary(min_size=126, max_size=130)


@st.composite
def batch_records(draw: st.DrawFn, min_size: int = 0) -> list[BatchRecord]:
    gaps = draw(st.lists(st.integers(1, 200), min_size=min_size, max_size=6))
    offsets = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    return [BatchRecord(offset, draw(timestamps), draw(data_or_null), draw(data_or_null)) for offset in offsets]


@st.composite
def v2_batches(draw: st.DrawFn) -> bytes:
    records = draw(batch_records())
    last = records[-1].offset if records else 0
    return write_batch(
        records,
        base_offset=draw(st.integers(0, records[0].offset if records else 0)),
        last_offset=last + draw(st.integers(0, 3)),
        producer_id=draw(int64),
        producer_epoch=draw(st.integers(-1, 32767)),
        compression=draw(st.sampled_from(Compression)),
        transactional=draw(st.booleans()),
        log_append_time=draw(st.none() | timestamps),
    )


@st.composite
def message_sets(draw: st.DrawFn) -> bytes:
    return write_message_set(
        draw(batch_records(min_size=1)),
        magic=draw(st.integers(0, 1)),
        compression=draw(st.sampled_from((Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4))),
        log_append_time=draw(st.none() | timestamps),
    )


markers = st.builds(
    end_transaction_marker,
    st.integers(0, 1000),
    st.sampled_from(ControlType),
    producer_id=int64,
    producer_epoch=st.integers(0, 32767),
    timestamp=timestamps,
)
logs = st.lists(v2_batches() | markers | message_sets(), max_size=5).map(b"".join)
v2_logs = st.lists(v2_batches() | markers, max_size=5).map(b"".join)


@pytest.fixture(scope="module")
def genuine_segments(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    into = tmp_path_factory.mktemp("segments")
    return [
        path.read_bytes()
        for version in genuine.SEGMENT_VERSIONS
        for path in sorted(genuine.segments_dir(version, into).glob("__consumer_offsets-*/*.log"))
    ]


#: Positions are fractions, so that they fit any log; the first bytes of a log, its first header, are hit as often as all others.
positions = st.one_of(st.floats(0, 1, exclude_max=True), st.integers(0, 90))
interesting_bytes = st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)) | st.integers(0, 255)
mutations = st.one_of(
    st.tuples(st.just("set"), positions, interesting_bytes),
    st.tuples(st.just("remove"), positions, st.integers(1, 12)),
    st.tuples(st.just("insert"), positions, st.binary(min_size=1, max_size=12)),
    st.tuples(st.just("cut"), positions, st.none()),
)


#: Kind of change, position, and bytes.
Mutation = tuple[str, float | int, Any]


def mutated(data: bytes, changes: list[Mutation]) -> bytes:
    changed = bytearray(data)
    for kind, position, what in changes:
        at = min(int(position * len(changed)) if isinstance(position, float) else position, max(len(changed) - 1, 0))
        if kind == "set" and changed:
            changed[at] = what
        elif kind == "remove":
            del changed[at : at + what]
        elif kind == "insert":
            changed[at:at] = what
        elif kind == "cut":
            del changed[at:]
    return bytes(changed)


ranges = st.tuples(st.integers(0, 400), st.none() | st.integers(0, 800))


@given(logs, ranges)
def test_whole_logs_have_no_damage(data: bytes, bounds: tuple[int, int | None]) -> None:
    columns = check(data, *bounds)
    assert columns.damages == ()


@given(logs, st.lists(mutations, min_size=1, max_size=4), ranges)
def test_mutated_logs(data: bytes, changes: list[Mutation], bounds: tuple[int, int | None]) -> None:
    check(mutated(data, changes), *bounds)


@given(st.data(), st.lists(mutations, min_size=1, max_size=4), ranges)
def test_mutated_genuine_segments(
    genuine_segments: list[bytes],
    data: st.DataObject,
    changes: list[Mutation],
    bounds: tuple[int, int | None],
) -> None:
    check(mutated(data.draw(st.sampled_from(genuine_segments)), changes), *bounds)


@given(st.binary(max_size=300), ranges)
def test_garbage(data: bytes, bounds: tuple[int, int | None]) -> None:
    check(data, *bounds)


@given(v2_logs, st.integers(1, 400))
def test_in_pieces_or_at_once(data: bytes, size: int) -> None:
    at_once = list(to_log_records(parse_columns(data), 0))
    pieces: list[LogRecord] = []
    position = 0
    while position < len(data):
        columns = parse_columns(data[position : position + size])
        pieces += to_log_records(columns, 0)
        size = size if columns.consumed else size * 2
        position += columns.consumed
    assert pieces == at_once


def readable(data: bytes) -> list[LogRecord]:
    return expect_all(LogRecord, read_log(data, 0))


@given(batch_records(min_size=1), st.sampled_from(Compression), timestamps)
def test_v2_round_trip(records: list[BatchRecord], codec: Compression, stamp: int) -> None:
    expected = [(r.offset, r.timestamp, r.key, r.value) for r in records]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in readable(write_batch(records, compression=codec))] == expected
    stamped = write_batch(records, compression=codec, log_append_time=stamp)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in readable(stamped)] == [(o, stamp, k, v) for o, _, k, v in expected]


@given(
    batch_records(min_size=1),
    st.integers(0, 1),
    st.sampled_from((Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)),
)
def test_message_set_round_trip(records: list[BatchRecord], magic: int, codec: Compression) -> None:
    read = readable(write_message_set(records, magic=magic, compression=codec))
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read] == [
        (r.offset, r.timestamp if magic else -1, r.key, r.value) for r in records
    ]


@given(st.sampled_from(Compression), st.integers(0, 2), st.binary(max_size=200), st.lists(mutations, max_size=3))
def test_decompression_is_total(codec: Compression, magic: int, data: bytes, changes: list[Mutation]) -> None:
    decompress(codec, mutated(compress(codec, data, magic=magic), changes), magic=magic, limit=1 << 16)
    decompress(codec, data, magic=magic, limit=1 << 16)
