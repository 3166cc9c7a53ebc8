"""`grouplake show`: the records of a source in the formats of Kafka's console-consumer formatters."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from coordinator_core.codec import Record, Undecodable, decode
from coordinator_core.codec.text import classic_line, json_form
from coordinator_core.log.columns import to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.sources.source import LogSource

R = TypeVar("R")


@dataclass(frozen=True)
class LogProblem:
    """An undecodable record or a damaged part of the log."""

    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"partition {self.partition} offset {self.offset}: {self.reason}"


def records(source: LogSource) -> Iterator[tuple[LogRecord, Record] | LogProblem]:
    """Every data record of a log, partition by partition in log order, with problems at their position."""
    return decoded_records(source, decode)


def decoded_records(
    source: LogSource, decode: Callable[[bytes | None, bytes | None], R | Undecodable]
) -> Iterator[tuple[LogRecord, R] | LogProblem]:
    """As `records`, with the decoder of the log's topic."""
    earliest, end = source.earliest_offsets(), source.end_offsets()
    for partition in source.partitions():
        for columns in source.read_columns(partition, earliest[partition], end[partition]):
            for damage in columns.damages:
                yield LogProblem(partition, damage.offset, damage.reason)
            for record in to_log_records(columns, partition):
                if record.is_control:
                    continue
                decoded = decode(record.key, record.value)
                if isinstance(decoded, Undecodable):
                    yield LogProblem(partition, record.offset, decoded.reason)
                else:
                    yield record, decoded


def json_line(logged: LogRecord, record: Record, *, with_position: bool) -> str:
    """The line of the console consumer's formatters of 4.x, for every record type; optionally with partition and offset."""
    position = {"partition": logged.partition, "offset": logged.offset} if with_position else {}
    return json.dumps({**position, **json_form(record)}, ensure_ascii=False, separators=(",", ":"))


def classic_line_of(logged: LogRecord, record: Record, *, era: str, with_position: bool) -> str | None:
    """The line of the Scala formatters, or None for a record type that they do not print; optionally after partition-offset."""
    line = classic_line(record, era)
    return f"{logged.partition}-{logged.offset} {line}" if with_position and line is not None else line
