"""`grouplake show`: the records of a source as Kafka's own formatters print them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from coordinator_core.codec import Record, decode
from coordinator_core.codec.text import classic_line, json_form
from coordinator_core.log.columns import to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.sources.source import LogSource


@dataclass(frozen=True)
class Problem:
    """A record or a part of the log that no formatter can print."""

    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"partition {self.partition} offset {self.offset}: {self.reason}"


def records(source: LogSource) -> Iterator[tuple[LogRecord, Record] | Problem]:
    """Every data record of a log, partition by partition in log order, and what is wrong between them."""
    earliest, end = source.earliest_offsets(), source.end_offsets()
    for partition in source.partitions():
        for columns in source.read_columns(partition, earliest[partition], end[partition]):
            for damage in columns.damages:
                yield Problem(partition, damage.offset, damage.reason)
            for record in to_log_records(columns, partition):
                if record.is_control:
                    continue
                decoded = decode(record.key, record.value)
                if isinstance(decoded, Record):
                    yield record, decoded
                else:
                    yield Problem(partition, record.offset, decoded.reason)


def json_line(place: LogRecord, record: Record, *, with_place: bool) -> str:
    """What the console consumer's formatters of 4.x print, for every record type; optionally with partition and offset."""
    where = {"partition": place.partition, "offset": place.offset} if with_place else {}
    return json.dumps({**where, **json_form(record)}, ensure_ascii=False, separators=(",", ":"))


def classic_line_of(place: LogRecord, record: Record, *, era: str, with_place: bool) -> str | None:
    """The line of the Scala formatters, None for the record types that they do not print; optionally behind partition-offset."""
    line = classic_line(record, era)
    return f"{place.partition}-{place.offset} {line}" if with_place and line is not None else line
