"""Every record that real brokers wrote: decodes, encodes to the same bytes, and prints as Kafka's own dump tool prints it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import genuine
import pytest
from dump_forms import dump_form
from expecting import expect

from coordinator_core.codec import NoAssignment, Record, decode, decode_assignment, decode_subscription, encode
from coordinator_core.codec.messages.classic import GroupMetadataValue
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from coordinator_core.log.columns import parse_columns, to_log_records
from coordinator_core.log.entries import LogRecord

WITH_DUMP = [version for version in genuine.SEGMENT_VERSIONS if not version.startswith("0.")]


@pytest.fixture(params=genuine.SEGMENT_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def data_records(version: str, directory: Path) -> Iterator[LogRecord]:
    for path in sorted(genuine.segments_dir(version, directory).glob("__consumer_offsets-*/*.log")):
        partition = int(path.parent.name.rpartition("-")[2])
        for record in to_log_records(parse_columns(path.read_bytes()), partition):
            if not record.is_control:
                yield record


def as_printed(json_object: Any) -> str:
    return json.dumps(json_object, separators=(",", ":"), ensure_ascii=False)


def test_every_record_decodes_and_encodes_to_its_bytes(version: str, tmp_path: Path) -> None:
    logged = list(data_records(version, tmp_path))

    assert logged
    for entry in logged:
        record = decode(entry.key, entry.value)
        assert isinstance(record, Record), record
        assert encode(record) == (entry.key, entry.value)


def test_members_of_classic_consumers_decode(version: str, tmp_path: Path) -> None:
    for entry in data_records(version, tmp_path):
        record = expect(Record, decode(entry.key, entry.value))
        if isinstance(record.value, GroupMetadataValue):
            for member in record.value.members:
                assert isinstance(decode_subscription(member.subscription), ConsumerProtocolSubscription)
                assert isinstance(decode_assignment(member.assignment), ConsumerProtocolAssignment | NoAssignment)


@pytest.mark.parametrize("version", WITH_DUMP)
def test_records_print_as_the_dump_tool_prints_them(version: str, tmp_path: Path) -> None:
    ours = {}
    for entry in data_records(version, tmp_path):
        form = dump_form(expect(Record, decode(entry.key, entry.value)))
        payload = form.payload if isinstance(form.payload, str) else as_printed(form.payload)
        ours[entry.partition, entry.offset] = f"key: {as_printed(form.key)} payload: {payload}"

    theirs = {
        (line.partition, line.offset): line.text[line.text.index("key: ") :] for line in genuine.dump(version) if not line.marker
    }
    assert ours == theirs


def test_the_genuine_logs_hold_every_type_that_is_still_written(tmp_path: Path) -> None:
    seen = {
        decode(entry.key, entry.value).record_type
        for version in genuine.SEGMENT_VERSIONS
        for entry in data_records(version, tmp_path)
    }

    assert seen == {1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 22, 23}
