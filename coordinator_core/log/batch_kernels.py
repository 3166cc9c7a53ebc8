"""Compiled reader of record batches v2: the rules of `reader` and `record_batch`, over arrays.

Bytes are untrusted: every length is compared with the remaining bytes before the bytes after it are read.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from coordinator_core.codec.arrays import Bytes, Integer
from coordinator_core.codec.byte_kernels import read_int16, read_int32, read_int64, read_varint, read_varlong
from coordinator_core.log.batch_rows import IS_CONTROL, IS_TRANSACTIONAL
from coordinator_core.log.damage import Problem
from coordinator_core.log.message_set import SMALLEST_MESSAGE
from coordinator_core.log.reader import MAX_OFFSET
from coordinator_core.log.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LEADER_EPOCH_START,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    SMALLEST_LENGTH,
    SMALLEST_RECORD,
    TRANSACTIONAL,
)

_TORN_TAIL = int(Problem.TORN_TAIL)
_IMPOSSIBLE_LENGTH = int(Problem.IMPOSSIBLE_LENGTH)
_IMPOSSIBLE_OFFSET = int(Problem.IMPOSSIBLE_OFFSET)
_UNKNOWN_MAGIC = int(Problem.UNKNOWN_MAGIC)
_CRC_MISMATCH = int(Problem.CRC_MISMATCH)
_IMPOSSIBLE_COUNT = int(Problem.IMPOSSIBLE_COUNT)
_RECORD_TRUNCATED = int(Problem.RECORD_TRUNCATED)
_RECORD_OFFSET = int(Problem.RECORD_OFFSET)
_RECORD_FIELD = int(Problem.RECORD_FIELD)
_RECORDS_MISSING = int(Problem.RECORDS_MISSING)
_RECORDS_LEFT_OVER = int(Problem.RECORDS_LEFT_OVER)


@njit(cache=True)
def _frame(data: Bytes, position: Integer) -> tuple[Integer, Integer, Integer, int]:
    """End, base offset, last offset and problem of the frame at `position`; mirrors `reader._frame`."""
    left = len(data) - position
    if left < LOG_OVERHEAD:
        return position, read_int64(data, position) if left >= 8 else -1, -1, _TORN_TAIL
    base = read_int64(data, position)
    length = read_int32(data, position + 8)
    if length < SMALLEST_MESSAGE:
        return position, base, -1, _IMPOSSIBLE_LENGTH
    if length > left - LOG_OVERHEAD:
        return position, base, -1, _TORN_TAIL
    end = position + LOG_OVERHEAD + length
    magic = data[position + 16]
    if magic == 2 and length < SMALLEST_LENGTH:
        return position, base, -1, _IMPOSSIBLE_LENGTH
    if base < 0 or base >= MAX_OFFSET:
        return end, base, -1, _IMPOSSIBLE_OFFSET
    if magic > 2:
        return end, base, base, _UNKNOWN_MAGIC
    last = base + read_int32(data, position + 23) if magic == 2 else base
    if last < base:
        return end, base, base, _IMPOSSIBLE_OFFSET
    return end, base, last, 0


@njit(cache=True)
def _first_offset(data: Bytes, position: Integer, end: Integer, base: Integer, covered: Integer) -> Integer:
    """Lowest possible offset of a frame; mirrors `reader._first_offset`."""
    wraps = end > position and data[position + 16] < 2 and data[position + 17] & COMPRESSION_MASK != 0
    return min(base, covered + 1) if wraps else base


@njit(cache=True)
def count_frames(data: Bytes, start_offset: int, end_offset: int) -> tuple[int, Integer]:
    """Number of frames that `read_frames` will list, and the position where reading ends."""
    frames = 0
    position: Integer = 0
    covered: Integer = np.int64(-1)
    while position < len(data):
        end, base, last, problem = _frame(data, position)
        first = _first_offset(data, position, end, base, covered)
        if first >= end_offset and first < MAX_OFFSET:
            break
        covered = last
        if problem != 0 or last >= start_offset:
            frames += 1
        if problem in (_TORN_TAIL, _IMPOSSIBLE_LENGTH):
            break
        position = end
    return frames, position


@njit(cache=True)
def read_frames(data: Bytes, start_offset: int, batches: npt.NDArray[np.void]) -> None:
    """Fill one row per frame that may have offsets of the range; mirrors `reader.frames`."""
    frame = 0
    position: Integer = 0
    while frame < len(batches):
        end, base, last, problem = _frame(data, position)
        if problem != 0 or last >= start_offset:
            batch = batches[frame]
            frame += 1
            batch.position = position
            batch.end = end
            batch.base_offset = base
            batch.last_offset = last
            batch.problem = problem
            batch.crc_problem = 0
            batch.record_problem = 0
            batch.attributes = 0
            batch.magic = 2 if problem != 0 else data[position + 16]
            if batch.magic == 2 and problem == 0:
                batch.attributes = read_int16(data, position + 21)
                batch.base_timestamp = read_int64(data, position + 27)
                batch.max_timestamp = read_int64(data, position + 35)
                batch.producer_id = read_int64(data, position + 43)
                batch.producer_epoch = read_int16(data, position + 51)
                batch.count = read_int32(data, position + 57)
                batch.records_start = position + HEADER_SIZE
                batch.records_end = end
        position = end


@njit(cache=True)
def last_frame(data: Bytes) -> tuple[Integer, Integer, Integer]:
    """The greatest offset of all frames, the leader epoch of the last one, and the position where reading ends.

    Offset and epoch are -1 for none. Only headers are read.
    """
    greatest: Integer = np.int64(-1)
    epoch: Integer = np.int64(NO_LEADER_EPOCH)
    position: Integer = 0
    while position < len(data):
        end, _, last, problem = _frame(data, position)
        greatest = max(greatest, last)
        if problem in (_TORN_TAIL, _IMPOSSIBLE_LENGTH):
            break
        epoch = read_int32(data, position + LEADER_EPOCH_START) if data[position + 16] == 2 else np.int64(NO_LEADER_EPOCH)
        position = end
    return greatest, epoch, position


@njit(cache=True)
def check_crcs(data: Bytes, batches: npt.NDArray[np.void], tables: npt.NDArray[np.uint32], longest: int) -> None:
    """Check the CRC-32C of batches of up to `longest` bytes; `tables` are the slicing-by-8 tables."""
    for frame in range(len(batches)):
        batch = batches[frame]
        if batch.problem != 0 or batch.end - batch.position > longest:
            continue
        position = batch.position + CRC_START
        crc = np.uint32(0xFFFFFFFF)
        while position + 8 <= batch.end:
            low = crc ^ (
                np.uint32(data[position])
                | np.uint32(data[position + 1]) << np.uint32(8)
                | np.uint32(data[position + 2]) << np.uint32(16)
                | np.uint32(data[position + 3]) << np.uint32(24)
            )
            crc = (
                tables[7, low & np.uint32(0xFF)]
                ^ tables[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
                ^ tables[5, (low >> np.uint32(16)) & np.uint32(0xFF)]
                ^ tables[4, low >> np.uint32(24)]
                ^ tables[3, data[position + 4]]
                ^ tables[2, data[position + 5]]
                ^ tables[1, data[position + 6]]
                ^ tables[0, data[position + 7]]
            )
            position += 8
        while position < batch.end:
            crc = tables[0, (crc ^ np.uint32(data[position])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
            position += 1
        stored = np.uint32(read_int32(data, batch.position + 17) & 0xFFFFFFFF)
        if crc ^ np.uint32(0xFFFFFFFF) != stored:
            batch.crc_problem = _CRC_MISMATCH


@njit(cache=True)
def record_bound(batches: npt.NDArray[np.void]) -> int:
    """Upper bound of the number of records in the payloads, independent of false counts in headers."""
    bound = 0
    for frame in range(len(batches)):
        batch = batches[frame]
        if batch.problem == 0:
            bound += max(0, min(batch.count, (batch.records_end - batch.records_start) // SMALLEST_RECORD))
    return bound


@njit(cache=True)
def _field(data: Bytes, position: Integer, end: Integer) -> tuple[Integer, Integer, Integer]:
    """Start, length and next position of a nullable field; length -1 for null, next position -1 for a field that does not fit."""
    length, position = read_varint(data, position, end)
    if position < 0 or length > end - position:
        return 0, -1, -1
    if length < 0:
        return position, -1, position
    return position, length, position + length


@njit(cache=True)
def read_record(
    data: Bytes, position: Integer, end: Integer, last_delta: Integer
) -> tuple[Integer, Integer, Integer, Integer, Integer, Integer, int]:
    """Timestamp and offset deltas, start and length of key and value, and the problem; mirrors `record_batch._read_record`."""
    timestamp_delta, position = read_varlong(data, position + 1, end)
    if position < 0:
        return 0, 0, 0, 0, 0, 0, _RECORD_FIELD
    delta, position = read_varint(data, position, end)
    if position < 0:
        return 0, 0, 0, 0, 0, 0, _RECORD_FIELD
    if delta < 0 or delta > last_delta:
        return 0, 0, 0, 0, 0, 0, _RECORD_OFFSET
    key, key_length, position = _field(data, position, end)
    if position < 0:
        return 0, 0, 0, 0, 0, 0, _RECORD_FIELD
    value, value_length, position = _field(data, position, end)
    if position < 0:
        return 0, 0, 0, 0, 0, 0, _RECORD_FIELD
    return timestamp_delta, delta, key, key_length, value, value_length, 0


@njit(cache=True)
def read_records(
    data: Bytes,
    batches: npt.NDArray[np.void],
    start_offset: int,
    end_offset: int,
    longs: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    producer_epoch: npt.NDArray[np.int16],
    flags: npt.NDArray[np.uint8],
) -> int:
    """Fill one row per record of the range and set `record_problem` of each batch; mirrors `record_batch.read_records`."""
    offset, batch_offset, timestamp = longs[0], longs[1], longs[2]
    key_start, value_start, producer_id = longs[3], longs[4], longs[5]
    key_length, value_length = lengths[0], lengths[1]
    filled = 0
    for frame in range(len(batches)):
        batch = batches[frame]
        if batch.problem != 0:
            continue
        if batch.count < 0:
            batch.record_problem = _IMPOSSIBLE_COUNT
            continue
        position, end = batch.records_start, batch.records_end
        base, last_delta = batch.base_offset, batch.last_offset - batch.base_offset
        append_time = batch.attributes & LOG_APPEND_TIME != 0
        flag = (IS_TRANSACTIONAL if batch.attributes & TRANSACTIONAL else 0) | (IS_CONTROL if batch.attributes & CONTROL else 0)
        first = np.int64(-1)
        problem = 0
        for _ in range(batch.count):
            if position >= end:
                problem = _RECORDS_MISSING
                break
            length, position = read_varint(data, position, end)
            if position < 0 or length < 0 or length > end - position:
                problem = _RECORD_TRUNCATED
                break
            record_end = position + length
            timestamp_delta, delta, key, key_size, value, value_size, problem = read_record(
                data, position, record_end, last_delta
            )
            if problem != 0:
                break
            position = record_end
            if first < 0:
                first = base + delta
            if base + delta < start_offset or base + delta >= end_offset:
                continue
            offset[filled] = base + delta
            batch_offset[filled] = first
            timestamp[filled] = batch.max_timestamp if append_time else batch.base_timestamp + timestamp_delta
            key_start[filled] = key
            key_length[filled] = key_size
            value_start[filled] = value
            value_length[filled] = value_size
            producer_id[filled] = batch.producer_id
            producer_epoch[filled] = batch.producer_epoch
            flags[filled] = flag
            filled += 1
        if problem == 0 and position < end:
            problem = _RECORDS_LEFT_OVER
        batch.record_problem = problem
    return filled


@njit(cache=True)
def compressed_frames(batches: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Indexes of the frames with compressed payloads."""
    found = np.empty(len(batches), np.int64)
    count = 0
    for frame in range(len(batches)):
        batch = batches[frame]
        if batch.problem == 0 and batch.attributes & COMPRESSION_MASK != 0:
            found[count] = frame
            count += 1
    return found[:count]
