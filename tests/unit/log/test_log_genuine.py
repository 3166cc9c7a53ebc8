"""Segments that brokers wrote: the records read equal those of a consumer and of Kafka's dump tool."""

import re
from pathlib import Path

import genuine
import pytest
from expecting import expect, expect_all
from scalar_logs import read_log

from coordinator_core.log.columns import parse_columns, to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.log.damage import ENDS_READING, Damage
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.reader import frames
from coordinator_core.log.record_batch import BatchRecord, control_type, read_header, write_batch
from coordinator_core.sources.segments import SegmentSource

WITH_DUMP = [version for version in genuine.SEGMENT_VERSIONS if not version.startswith("0.")]


def everything(version: str, tmp_path: Path) -> list[LogRecord]:
    source = SegmentSource(genuine.segments_dir(version, tmp_path))
    pieces = [
        (partition, columns)
        for partition, end in source.end_offsets().items()
        for columns in source.read_columns(partition, 0, end)
    ]
    assert not [damage for _, columns in pieces for damage in columns.damages]
    return [record for partition, columns in pieces for record in to_log_records(columns, partition)]


def segment_files(version: str, tmp_path: Path) -> list[Path]:
    return sorted(genuine.segments_dir(version, tmp_path).glob("__consumer_offsets-*/*.log"))


@pytest.mark.parametrize("version", genuine.VERSIONS)
def test_data_records_are_those_a_consumer_saw(version: str, tmp_path: Path) -> None:
    found = {(r.partition, r.offset): (r.timestamp, r.key, r.value) for r in everything(version, tmp_path) if not r.is_control}
    seen = {(r.partition, r.offset): (r.timestamp, r.key, r.value) for r in genuine.records(version)}
    # The broker of 0.10.2.2 wrote one more after the consumer had read to the end.
    later = {(11, 43)} if version == "0.10.2.2" else set()
    assert found.keys() - seen.keys() == later
    assert {position: found[position] for position in seen} == seen


@pytest.mark.parametrize("version", WITH_DUMP)
def test_records_and_markers_are_those_the_dump_tool_prints(version: str, tmp_path: Path) -> None:
    found = {
        (r.partition, r.offset, ControlType(expect(int, control_type(r.key))).name if r.is_control else None)
        for r in everything(version, tmp_path)
    }
    assert found == {(line.partition, line.offset, line.marker) for line in genuine.dump(version)}
    assert sum(marker is not None for *_, marker in found) == (0 if "share" in version else 7)


@pytest.mark.parametrize("version", WITH_DUMP)
def test_sizes_and_times_are_those_the_dump_tool_prints(version: str, tmp_path: Path) -> None:
    printed = {
        (line.partition, line.offset): re.findall(r"CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+)", line.text)
        for line in genuine.dump(version)
    }
    for record in everything(version, tmp_path):
        sizes = (-1 if data is None else len(data) for data in (record.key, record.value))
        (numbers,) = printed[record.partition, record.offset]
        assert tuple(map(int, numbers)) == (record.timestamp, *sizes)


@pytest.mark.parametrize("version", WITH_DUMP)
def test_batches_written_again_are_the_same_bytes(version: str, tmp_path: Path) -> None:
    for path in segment_files(version, tmp_path):
        data = memoryview(path.read_bytes())
        for frame in frames(data):
            batch = data[frame.position : frame.end]
            header = read_header(batch)
            records = [BatchRecord(r.offset, r.timestamp, r.key, r.value) for r in expect_all(LogRecord, read_log(batch, 0))]
            again = write_batch(
                records,
                last_offset=header.last_offset,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                leader_epoch=header.leader_epoch,
                compression=Compression(header.compression),
                transactional=header.is_transactional,
                control=header.is_control,
            )
            assert again == batch


@pytest.mark.parametrize("version", genuine.SEGMENT_VERSIONS)
def test_torn_at_every_byte(version: str, tmp_path: Path) -> None:
    data = min((path.read_bytes() for path in segment_files(version, tmp_path)), key=len)
    whole = list(frames(memoryview(data)))
    for cut in range(len(data)):
        columns = parse_columns(data[:cut])
        kept = [frame for frame in whole if frame.end <= cut]
        end = kept[-1].end if kept else 0
        assert columns.consumed == end
        assert columns.next_offset == (kept[-1].last_offset + 1 if kept else 0)
        assert [damage.position for damage in columns.damages if damage.problem in ENDS_READING] == ([] if end == cut else [end])
        assert list(to_log_records(columns, 0)) == [item for item in read_log(data[:cut], 0) if not isinstance(item, Damage)]


def test_topic_ids_beside_the_segments(tmp_path: Path) -> None:
    names = SegmentSource(genuine.segments_dir("4.1.1", tmp_path)).topic_ids().values()
    assert {"__consumer_offsets", "orders", "payments"} <= set(names)
