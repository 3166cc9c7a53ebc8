"""What a reader of log bytes reports where the bytes are not what Kafka writes: values, never exceptions."""

from dataclasses import dataclass
from enum import IntEnum


class Problem(IntEnum):
    """Kinds of damage; the numbers travel through the compiled kernels, 0 stands for none there."""

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

    @property
    def text(self) -> str:
        """The problem in words, for people."""
        return _TEXTS[self]


_TEXTS = {
    Problem.TORN_TAIL: "the bytes end inside a batch",
    Problem.IMPOSSIBLE_LENGTH: "batch length below its own header; nothing after it can be framed",
    Problem.UNKNOWN_MAGIC: "magic is not 0, 1 or 2; batch skipped",
    Problem.IMPOSSIBLE_OFFSET: "offsets of the batch are negative or beyond 2^62; batch skipped",
    Problem.CRC_MISMATCH: "checksum does not match; records read all the same, as brokers do when they load",
    Problem.UNKNOWN_COMPRESSION: "compression type is not one of none, gzip, snappy, lz4, zstd; batch skipped",
    Problem.BAD_PAYLOAD: "payload does not decompress",
    Problem.IMPOSSIBLE_COUNT: "negative record count; records skipped",
    Problem.RECORD_TRUNCATED: "a record is longer than what is left of its batch; rest of the batch skipped",
    Problem.RECORD_OFFSET: "a record's offset is outside of its batch; rest of the batch skipped",
    Problem.RECORD_FIELD: "a field is longer than its record; rest of the batch skipped",
    Problem.RECORDS_MISSING: "fewer records than the batch says",
    Problem.RECORDS_LEFT_OVER: "bytes left after the last record",
    Problem.INNER_MESSAGE: "inner messages do not fit their wrapper; rest of them skipped",
}

#: After these the next batch cannot be found: reading of this stretch of bytes ends.
ENDS_READING = frozenset({Problem.TORN_TAIL, Problem.IMPOSSIBLE_LENGTH})


@dataclass(frozen=True, slots=True)
class Damage:
    """A batch that is not whole. A torn tail is normal while a log is being written and at the end of a fetch response.

    `offset` is the base offset that the batch states (-1 where not even that is readable), `position` the batch's first byte in
    the buffer that was read (in the file, for a segment source).
    """

    offset: int
    position: int
    problem: Problem
    detail: str = ""

    @property
    def reason(self) -> str:
        """One line for logs and for the quarantine."""
        return f"batch at offset {self.offset}, byte {self.position}: {self.problem.text}{self.detail and f' ({self.detail})'}"


@dataclass(frozen=True, slots=True)
class TornEnd:
    """Bytes behind the last whole batch of a partition: a batch that is being written right now, or was when the broker died.

    Nothing of them is read until they are whole. `offset` is the one that their first record will have, `position` their first
    byte in the file at `path`, `size` their number.
    """

    path: str
    partition: int
    offset: int
    position: int
    size: int

    def __str__(self) -> str:
        return (
            f"{self.path}: the last {self.size:,} bytes, from byte {self.position:,} and offset {self.offset} on, "
            "are no whole batch: left unread; if it is still being written, the next run reads it"
        )
