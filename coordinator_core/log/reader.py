"""Conversion of log bytes to records: the readable specification of the compiled `columns`.

A log is a sequence of frames: record batches v2 and messages of magic 0 and 1, mixed if the broker was upgraded. Every frame
starts with an offset and a length, so a damaged frame can be skipped if its length is right.
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

#: Higher than any real offset; sums of lower offsets fit into 64 bits.
MAX_OFFSET = 1 << 62
NO_END = (1 << 63) - 1

_OFFSET = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_MAGIC_AT = 16
#: Position of the attributes in messages of magic 0 and 1.
_ATTRIBUTES_AT = 17
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


@dataclass(frozen=True, slots=True)
class Frame:
    """Position of one batch or message in the bytes, and the offsets that its header states.

    A frame with a `problem` has no records. No frame follows a problem of `ENDS_READING`, and its `end` equals `position`.
    """

    position: int
    end: int
    base_offset: int
    last_offset: int
    magic: int
    problem: Problem | None = None


def frames(data: memoryview, start_offset: int = 0, end_offset: int = NO_END) -> Iterator[Frame]:
    """Yield the frames that may have offsets from `start_offset` up to, not including, `end_offset`.

    Never raises for damaged bytes.
    """
    position, covered = 0, -1
    while position < len(data):
        frame = _frame(data, position)
        # An impossible offset does not mark the end of the range: the frame is damaged, and others follow.
        if end_offset <= _first_offset(data, frame, covered) < MAX_OFFSET:
            return
        covered = frame.last_offset
        if frame.problem is not None or frame.last_offset >= start_offset:
            yield frame
        if frame.problem in ENDS_READING:
            return
        position = frame.end


def _first_offset(data: memoryview, frame: Frame, covered: int) -> int:
    """Lowest possible offset of a frame after a frame with last offset `covered` (-1: unknown).

    The offset of a wrapper of magic 0 or 1 is that of its last inner message.
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
    """Yield all records of one frame, and its damage. Never raises for damaged bytes."""
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


#: Placeholder for the batch header of messages of magic 0 and 1.
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
