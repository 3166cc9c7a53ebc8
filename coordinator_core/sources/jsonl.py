"""`jsonl:FILE`: records as JSON, one object per line: `partition`, `offset`, `timestamp` (ms), `key`, `value` (base64 or null).

`producer_id`, `producer_epoch`, `is_transactional`, `is_control` and `batch_offset` are optional; dumps made by a consumer
contain neither these fields nor transaction markers.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from coordinator_core.log.columns import RecordColumns, columns_of
from coordinator_core.log.damage import TornEnd
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.errors import LogNotFound, LogTruncated, LogUnreadable
from coordinator_core.log.reader import MAX_OFFSET
from coordinator_core.sources.source import one_after_another

#: Records per piece of columns.
CHUNK_RECORDS = 50_000

_REQUIRED = ("partition", "offset", "timestamp")
_OPTIONAL = {"producer_id": -1, "producer_epoch": -1, "is_transactional": False, "is_control": False}
#: Width of the numbers in bits, as in the log; all are signed.
_BITS = {"partition": 32, "offset": 64, "timestamp": 64, "producer_id": 64, "producer_epoch": 16, "batch_offset": 64}


class JsonlSource:
    """The partitions in one file; implements `LogSource`. The file is read once, into memory.

    Lines may be in any order. Raises `LogNotFound` for a missing file, `LogUnreadable` with the number of the first line that
    is not a record.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._records = _by_partition(self._path)

    def partitions(self) -> tuple[int, ...]:
        """Partitions with a record, ascending."""
        return tuple(sorted(self._records))

    def earliest_offsets(self) -> dict[int, int]:
        """First offset of each partition."""
        return {partition: self._records[partition][0].offset for partition in self.partitions()}

    def end_offsets(self) -> dict[int, int]:
        """Last offset of each partition, plus one."""
        return {partition: self._records[partition][-1].offset + 1 for partition in self.partitions()}

    def read_columns(self, partition: int, start: int, end: int | None = None) -> Iterator[RecordColumns]:
        """Yield the records from `start` up to, not including, `end` (None: to the end of the partition).

        Raises `LogTruncated` if the partition ends before `start` or `end`.
        """
        records = self._records.get(partition)
        if records is None:
            raise LogNotFound(f"{self._path}: no record of partition {partition}")
        last, wanted = records[-1].offset + 1, max(start, start if end is None else end)
        if last < wanted:
            raise LogTruncated(f"{self._path}: partition {partition} ends at offset {last}, before offset {wanted}")
        chosen = [record for record in records if start <= record.offset and (end is None or record.offset < end)]
        for first in range(0, len(chosen), CHUNK_RECORDS):
            piece = chosen[first : first + CHUNK_RECORDS]
            yield columns_of(piece, next_offset=piece[-1].offset + 1)

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Read several partitions in sequence; see `LogSource`."""
        return one_after_another(self.read_columns, wanted)

    @property
    def topic_id(self) -> UUID | None:
        """None: a dump has no topic id."""
        return None

    def partition_count(self) -> None:
        """None: a dump may have some partitions only."""

    def leader_epochs(self) -> dict[int, int]:
        """Empty: a dump has no leader epochs."""
        return {}

    def truncated_partitions(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:  # noqa: ARG002 - a dump has no epochs
        """Empty: a dump has no leader epochs."""
        return {}

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """Empty: an incomplete line is an error."""
        return ()

    def topic_ids(self) -> dict[UUID, str]:
        """Empty: the format has no topic ids."""
        return {}

    def close(self) -> None:
        """Do nothing: no file is open."""


def _by_partition(path: Path) -> dict[int, list[LogRecord]]:
    found: dict[int, list[LogRecord]] = {}
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    record = _parsed(line, f"{path}: line {number}")
                    found.setdefault(record.partition, []).append(record)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise LogNotFound(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise LogUnreadable(f"{path} is a directory: name a file of JSON lines") from error
    except OSError as error:
        raise LogUnreadable(f"{path}: {error.strerror}") from error
    for records in found.values():
        records.sort(key=lambda record: record.offset)
    return found


def _parsed(line: bytes, where: str) -> LogRecord:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LogUnreadable(f"{where}: not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise LogUnreadable(f"{where}: not a JSON object")
    partition, offset, timestamp = (_integer(fields, name, where) for name in _REQUIRED)
    if partition < 0 or offset < 0:
        raise LogUnreadable(f"{where}: partition {partition} and offset {offset} must not be negative")
    if offset >= MAX_OFFSET:
        raise LogUnreadable(f"{where}: offset {offset} must be lower than {MAX_OFFSET}")
    fields = _OPTIONAL | {"batch_offset": offset} | fields
    return LogRecord(
        partition,
        offset,
        timestamp,
        _bytes(fields, "key", where),
        _bytes(fields, "value", where),
        _integer(fields, "producer_id", where),
        _integer(fields, "producer_epoch", where),
        bool(fields["is_transactional"]),
        bool(fields["is_control"]),
        _integer(fields, "batch_offset", where),
    )


def _integer(fields: dict[str, Any], name: str, where: str) -> int:
    value = fields.get(name)
    highest = (1 << _BITS[name] - 1) - 1
    if not isinstance(value, int) or not -highest <= value <= highest:
        raise LogUnreadable(f"{where}: {name} is {value!r}, not a {_BITS[name]}-bit integer")
    return value


def _bytes(fields: dict[str, Any], name: str, where: str) -> bytes | None:
    value = fields.get(name, 0)
    if value is None:
        return None
    if not isinstance(value, str):
        raise LogUnreadable(f"{where}: {name} is neither base64 nor null")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise LogUnreadable(f"{where}: {name} is not base64: {error}") from error
