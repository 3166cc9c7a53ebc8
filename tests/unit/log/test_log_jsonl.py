import base64
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.errors import LogNotFound, LogTruncated, LogUnreadable
from coordinator_core.sources.jsonl import JsonlSource

RECORDS = [
    LogRecord(0, 4, 17, b"k", b"v", batch_offset=4),
    LogRecord(0, 5, 18, b"k", None, batch_offset=5),
    LogRecord(0, 9, 18, b"k", b"", 7, 1, True, False, 8),
    LogRecord(0, 10, 19, b"\0\0\0\1", bytes(6), 7, 1, True, True, 10),
    LogRecord(3, 0, 17, None, b"v", batch_offset=0),
]


def write_jsonl(records: Iterable[LogRecord], path: Path) -> None:
    """Write records; optional fields only where they differ from their defaults."""
    defaults = LogRecord(0, 0, 0, None, None)
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            fields: dict[str, object] = {name: getattr(record, name) for name in ("partition", "offset", "timestamp")}
            fields |= {
                n: None if d is None else base64.b64encode(d).decode() for n, d in (("key", record.key), ("value", record.value))
            }
            for name in ("producer_id", "producer_epoch", "is_transactional", "is_control"):
                if getattr(record, name) != getattr(defaults, name):
                    fields[name] = getattr(record, name)
            if record.batch_offset not in (-1, record.offset):
                fields["batch_offset"] = record.batch_offset
            file.write(json.dumps(fields) + "\n")


@pytest.fixture
def source(tmp_path: Path) -> JsonlSource:
    write_jsonl(reversed(RECORDS), tmp_path / "log.jsonl")
    return JsonlSource(tmp_path / "log.jsonl")


def read(source: JsonlSource, partition: int, start: int = 0, end: int | None = None) -> list[LogRecord]:
    return [record for columns in source.read_columns(partition, start, end) for record in to_log_records(columns, partition)]


def test_what_is_written_is_read_in_order_of_offsets(source: JsonlSource) -> None:
    assert source.partitions() == (0, 3)
    assert source.earliest_offsets() == {0: 4, 3: 0}
    assert source.end_offsets() == {0: 11, 3: 1}
    assert read(source, 0) + read(source, 3) == RECORDS
    assert source.topic_ids() == {}


def test_range(source: JsonlSource) -> None:
    assert [record.offset for record in read(source, 0, 5, 10)] == [5, 9]
    assert read(source, 0, 6, 8) == []


def test_plain_records_have_the_five_fields_only(tmp_path: Path) -> None:
    write_jsonl(RECORDS[:2], tmp_path / "log.jsonl")
    assert (tmp_path / "log.jsonl").read_text().splitlines() == [
        '{"partition": 0, "offset": 4, "timestamp": 17, "key": "aw==", "value": "dg=="}',
        '{"partition": 0, "offset": 5, "timestamp": 18, "key": "aw==", "value": null}',
    ]


@pytest.mark.parametrize(("start", "end"), [(12, None), (0, 12)])
def test_truncated(source: JsonlSource, start: int, end: int | None) -> None:
    with pytest.raises(LogTruncated, match=r"partition 0 ends at offset 11, before offset 12"):
        read(source, 0, start, end)


def test_not_there(source: JsonlSource, tmp_path: Path) -> None:
    with pytest.raises(LogNotFound, match=r"no record of partition 1"):
        read(source, 1)
    with pytest.raises(LogNotFound, match=r"nothing\.jsonl: no such file"):
        JsonlSource(tmp_path / "nothing.jsonl")
    with pytest.raises(LogUnreadable):
        JsonlSource(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "\xff",
        "[" * 100_000,
        '{"offset": 1, "timestamp": 1, "key": null, "value": null}',
        '{"partition": -1, "offset": 1, "timestamp": 1, "key": null, "value": null}',
        '{"partition": 0, "offset": 1.5, "timestamp": 1, "key": null, "value": null}',
        '{"partition": 0, "offset": 9223372036854775808, "timestamp": 1, "key": null, "value": null}',
        '{"partition": 0, "offset": 4611686018427387904, "timestamp": 1, "key": null, "value": null}',
        '{"partition": 2147483648, "offset": 1, "timestamp": 1, "key": null, "value": null}',
        '{"partition": 0, "offset": 1, "timestamp": 1, "key": null, "value": null, "producer_epoch": 32768}',
        '{"partition": 0, "offset": 1, "timestamp": 1, "key": null}',
        '{"partition": 0, "offset": 1, "timestamp": 1, "key": 5, "value": null}',
        '{"partition": 0, "offset": 1, "timestamp": 1, "key": "a", "value": null}',
        '{"partition": 0, "offset": 1, "timestamp": 1, "key": "é", "value": null}',
    ],
)
def test_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(
        b'{"partition": 0, "offset": 0, "timestamp": 1, "key": null, "value": null}\n\n' + line.encode("latin-1") + b"\n"
    )
    with pytest.raises(LogUnreadable, match=r"log\.jsonl: line 3: "):
        JsonlSource(path)
