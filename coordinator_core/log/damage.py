"""Reports about damaged log bytes, as values instead of exceptions."""

from dataclasses import dataclass
from enum import IntEnum


class Problem(IntEnum):
    """Kinds of damage. Compiled kernels use the numbers, with 0 for none."""

    TORN_TAIL = 1
    IMPOSSIBLE_LENGTH = 2
    UNKNOWN_MAGIC = 3
    IMPOSSIBLE_OFFSET = 4
    CRC_MISMATCH = 5
    UNKNOWN_COMPRESSION = 6
    BAD_PAYLOAD = 7
    IMPOSSIBLE_COUNT = 8
    RECORD_TRUNCATED = 9
    RECORD_OFFSET = 10
    RECORD_FIELD = 11
    RECORDS_MISSING = 12
    RECORDS_LEFT_OVER = 13
    INNER_MESSAGE = 14
    PAYLOAD_TOO_LARGE = 15

    @property
    def text(self) -> str:
        """Description of the problem."""
        return _TEXTS[self]


_TEXTS = {
    Problem.TORN_TAIL: "the bytes end inside a batch",
    Problem.IMPOSSIBLE_LENGTH: "batch length is smaller than a batch header; the rest of these bytes cannot be read",
    Problem.UNKNOWN_MAGIC: "magic is not 0, 1 or 2; batch skipped",
    Problem.IMPOSSIBLE_OFFSET: "offsets of the batch are negative or above 2^62; batch skipped",
    Problem.CRC_MISMATCH: "checksum does not match; records are read anyway, as by a loading broker",
    Problem.UNKNOWN_COMPRESSION: "compression type is not one of none, gzip, snappy, lz4, zstd; batch skipped",
    Problem.BAD_PAYLOAD: "payload does not decompress",
    Problem.PAYLOAD_TOO_LARGE: "payload is too large when decompressed; batch skipped",
    Problem.IMPOSSIBLE_COUNT: "negative record count; records skipped",
    Problem.RECORD_TRUNCATED: "a record is longer than the rest of its batch; rest of the batch skipped",
    Problem.RECORD_OFFSET: "a record's offset is outside of its batch; rest of the batch skipped",
    Problem.RECORD_FIELD: "a field is longer than its record; rest of the batch skipped",
    Problem.RECORDS_MISSING: "fewer records than the batch header states",
    Problem.RECORDS_LEFT_OVER: "bytes left after the last record",
    Problem.INNER_MESSAGE: "inner messages do not match their wrapper; remaining inner messages skipped",
}

#: Problems after which the next batch cannot be found, so that reading of the buffer ends.
ENDS_READING = frozenset({Problem.TORN_TAIL, Problem.IMPOSSIBLE_LENGTH})


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged batch. A torn tail is normal while a log is being written and at the end of a fetch response.

    `offset` is the base offset in the batch (-1 if unreadable), `position` the batch's first byte in the buffer (in the file, for
    a segment source).
    """

    offset: int
    position: int
    problem: Problem
    detail: str = ""

    @property
    def reason(self) -> str:
        """One line for log messages and for the table `quarantine`."""
        return f"batch at offset {self.offset}, byte {self.position}: {self.problem.text}{self.detail and f' ({self.detail})'}"


@dataclass(frozen=True, slots=True)
class TornEnd:
    """Bytes after the last whole batch of a partition: a batch in the course of being written, or torn by a crash.

    They are not read until the batch is whole. `offset` is that of its first record, `position` the first byte in the file at
    `path`, `size` the number of bytes.
    """

    path: str
    partition: int
    offset: int
    position: int
    size: int

    def __str__(self) -> str:
        return (
            f"{self.path}: the last {self.size:,} bytes, from byte {self.position:,} and offset {self.offset}, are an "
            "incomplete batch and were not read; the next run reads it once it is complete"
        )
