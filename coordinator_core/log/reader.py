"""Bytes of a log → records, one by one: the readable specification of what `columns` does compiled.

A log is a row of frames: record batches v2 and messages of magic 0 and 1, mixed where a broker was upgraded. Every frame starts
with an offset and a length, so a damaged one can be stepped over as long as its length holds.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from coordinator_core.log import message_set
from coordinator_core.log.damage import ENDS_READING, Damage, Problem
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.message_set import SMALLEST_MESSAGE
from coordinator_core.log.record_batch import (
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    SMALLEST_LENGTH,
    BatchHeader,
    BatchRecord,
    crc_matches,
    read_header,
    read_payload,
    read_records,
)

#: No log gets this far, and sums of offsets below it fit into 64 bits.
MAX_OFFSET = 1 << 62
NO_END = (1 << 63) - 1

_OFFSET = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_MAGIC_AT = 16
#: Of messages; in batches the attributes are elsewhere.
_ATTRIBUTES_AT = 17
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


@dataclass(frozen=True, slots=True)
class Frame:
    """Where one batch or message lies in the bytes, and which offsets it covers by its own account.

    With a `problem` it has no records. After one of `ENDS_READING` no frame follows, and `end` is its own start.
    """

    position: int
    end: int
    base_offset: int
    last_offset: int
    magic: int
    problem: Problem | None = None


def frames(data: memoryview, start_offset: int = 0, end_offset: int = NO_END) -> Iterator[Frame]:
    """The frames that may hold offsets from `start_offset` up to, not including, `end_offset`. Total."""
    position, covered = 0, -1
    while position < len(data):
        frame = _frame(data, position)
        # An offset that no log reaches says nothing about where this one ends: the frame is damaged, others follow.
        if end_offset <= _first_offset(data, frame, covered) < MAX_OFFSET:
            return
        covered = frame.last_offset
        if frame.problem is not None or frame.last_offset >= start_offset:
            yield frame
        if frame.problem in ENDS_READING:
            return
        position = frame.end


def _first_offset(data: memoryview, frame: Frame, covered: int) -> int:
    """Where the offsets of a frame may begin, after a frame that ends with `covered` (-1: unknown).

    The offset in front of compressed messages of magic 0 or 1 is that of the last of them.
    """
    wraps = frame.magic in (0, 1) and data[frame.position + _ATTRIBUTES_AT] & COMPRESSION_MASK
    return min(frame.base_offset, covered + 1) if wraps else frame.base_offset


def _frame(data: memoryview, position: int) -> Frame:
    left = len(data) - position
    if left < LOG_OVERHEAD:
        base = _OFFSET.unpack_from(data, position)[0] if left >= _OFFSET.size else -1
        return Frame(position, position, base, -1, -1, Problem.TORN_TAIL)
    (base,) = _OFFSET.unpack_from(data, position)
    (length,) = _LENGTH.unpack_from(data, position + 8)
    if length < SMALLEST_MESSAGE:
        return Frame(position, position, base, -1, -1, Problem.IMPOSSIBLE_LENGTH)
    if length > left - LOG_OVERHEAD:
        return Frame(position, position, base, -1, -1, Problem.TORN_TAIL)
    end = position + LOG_OVERHEAD + length
    magic = data[position + _MAGIC_AT]
    if magic == 2 and length < SMALLEST_LENGTH:
        return Frame(position, position, base, -1, magic, Problem.IMPOSSIBLE_LENGTH)
    if not 0 <= base < MAX_OFFSET:
        return Frame(position, end, base, -1, magic, Problem.IMPOSSIBLE_OFFSET)
    if magic > 2:
        return Frame(position, end, base, base, magic, Problem.UNKNOWN_MAGIC)
    last = base + _LAST_OFFSET_DELTA.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)[0] if magic == 2 else base
    if last < base:
        return Frame(position, end, base, base, magic, Problem.IMPOSSIBLE_OFFSET)
    return Frame(position, end, base, last, magic)


def read_frame(data: memoryview, frame: Frame, partition: int) -> Iterator[LogRecord | Damage]:
    """All records of one frame, and what is wrong with it. Total."""
    if frame.problem is not None:
        yield Damage(frame.base_offset, frame.position, frame.problem)
        return
    whole = data[frame.position : frame.end]
    batch_offset = -1
    header = read_header(whole) if frame.magic == 2 else _MESSAGE
    for item in _read_batch(whole, header) if frame.magic == 2 else message_set.read_records(whole):
        if not isinstance(item, BatchRecord):
            yield Damage(frame.base_offset, frame.position, *item)
            continue
        batch_offset = item.offset if batch_offset < 0 else batch_offset
        yield LogRecord(
            partition,
            item.offset,
            item.timestamp,
            item.key,
            item.value,
            header.producer_id,
            header.producer_epoch,
            header.is_transactional,
            header.is_control,
            batch_offset,
        )


#: What messages of magic 0 and 1 have in place of a batch header.
_MESSAGE = BatchHeader(-1, -1, -1, 1, 0, 0, 0, -1, -1, -1, -1, -1, 0)


def _read_batch(batch: memoryview, header: BatchHeader) -> Iterator[BatchRecord | tuple[Problem, str]]:
    if not crc_matches(batch, header):
        yield Problem.CRC_MISMATCH, ""
    payload = read_payload(batch, header)
    if isinstance(payload, tuple):
        yield payload
        return
    for item in read_records(payload, header):
        yield item if isinstance(item, BatchRecord) else (item, "")


def read_log(
    buffer: bytes | memoryview, partition: int, start_offset: int = 0, end_offset: int = NO_END
) -> Iterator[LogRecord | Damage]:
    """Every record with an offset from `start_offset` up to, not including, `end_offset`, in the order of the log. Total.

    Control records are among them. Empty batches, as compaction leaves them, yield nothing; `frames` tells what they cover.
    """
    data = memoryview(buffer)
    for frame in frames(data, start_offset, end_offset):
        for item in read_frame(data, frame, partition):
            if isinstance(item, Damage) or start_offset <= item.offset < end_offset:
                yield item
