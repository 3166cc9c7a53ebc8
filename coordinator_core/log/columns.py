"""Compiled conversion of log bytes to columns: one row per record, keys and values as slices of one buffer."""

import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import crc32c
import numpy as np
import numpy.typing as npt

from coordinator_core.log.batch_rows import BATCH, IS_CONTROL, IS_TRANSACTIONAL
from coordinator_core.log.compression import COMPRESSIONS, BadPayload, decompress
from coordinator_core.log.damage import ENDS_READING, Damage, Problem
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.reader import NO_END, frames, read_frame
from coordinator_core.log.record_batch import COMPRESSION_MASK, CRC_START, HEADER_SIZE, LEADER_EPOCH_START, NO_LEADER_EPOCH

__all__ = [
    "BATCH",
    "IS_CONTROL",
    "IS_TRANSACTIONAL",
    "BatchesEnd",
    "RecordColumns",
    "batches_of",
    "columns_of",
    "end_of",
    "parse_columns",
    "to_log_records",
]

#: Columns with one element per record.
_PER_RECORD = (
    *("offset", "batch_offset", "timestamp", "key_start", "key_length", "value_start", "value_length"),
    *("producer_id", "producer_epoch", "flags"),
)
#: Most decompressed bytes of one call; a call ends before the batch that would exceed it.
MAX_CALL_BYTES = 64 * 1024 * 1024

#: The module of compiled functions, whose import takes as long as the headers of 200,000 batches.
_KERNELS = "coordinator_core.log.batch_kernels"
#: Most batches of a piece whose headers are read without compiled code: a log has a piece per partition.
_FEW_BATCHES = 4_096
_MAGIC_WITH_EPOCH = 2
_LEADER_EPOCH = struct.Struct(">i")

#: Smallest batch, in bytes, for which the library is faster than the compiled loop.
_LONG_BATCH = 512
#: Bytes of the checksum, relative to the first byte that it covers.
_CRC_BYTES = np.arange(-4, 0)
_CRC32C_POLYNOMIAL = 0x82F63B78


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in the order of the log. All slices are inside `buffer`, even for damaged logs; a null key or value has length -1.

    `timestamp` in ms. `flags`: bits `IS_TRANSACTIONAL`, `IS_CONTROL`. `batch_offset` as in `LogRecord`. `next_offset` is the
    offset after the last batch, which may be empty, compacted or damaged. `consumed` is the number of bytes in whole batches.
    The rest of the input starts with a batch that is torn, at or after the end offset, or left for the next call because of
    `MAX_CALL_BYTES`.
    """

    buffer: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]
    batch_offset: npt.NDArray[np.int64]
    timestamp: npt.NDArray[np.int64]
    key_start: npt.NDArray[np.int64]
    key_length: npt.NDArray[np.int32]
    value_start: npt.NDArray[np.int64]
    value_length: npt.NDArray[np.int32]
    producer_id: npt.NDArray[np.int64]
    producer_epoch: npt.NDArray[np.int16]
    flags: npt.NDArray[np.uint8]
    next_offset: int
    consumed: int
    damages: tuple[Damage, ...] = ()

    def __len__(self) -> int:
        return len(self.offset)

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> "RecordColumns":
        """Return only these rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _PER_RECORD})


def parse_columns(
    buffer: npt.NDArray[np.uint8] | bytes, start_offset: int = 0, end_offset: int | None = None, *, limit: int = MAX_CALL_BYTES
) -> RecordColumns:
    """Parse the records with offsets from `start_offset` up to, not including, `end_offset`. Never raises for damaged bytes.

    Uncompressed batches are not copied: the columns keep `buffer` alive. Batches outside of the range are skipped without checks.
    Reading ends at the first batch at or after `end_offset`, at a torn tail, or at an impossible length. A caller that passes a
    long log in pieces continues at `consumed`, one that fetches continues at `next_offset`. `limit` bounds the decompressed bytes
    of one call; the first batch of a call is always read.
    """
    from coordinator_core.log.batch_kernels import read_records, record_bound

    data = np.frombuffer(buffer, np.uint8) if isinstance(buffer, bytes) else buffer.view()
    # All arrays read-only: one array type, so the kernels are compiled once.
    data.setflags(write=False)
    start, end = max(start_offset, 0), NO_END if end_offset is None else end_offset
    batches, consumed = _frames(data, start, end)
    if np.any(batches["magic"] < 2):
        return _through_reader(data, start, end, limit)
    _check_crcs(data, batches)
    found = len(batches)
    data, batches, details = _with_plain_payloads(data, batches, limit)
    if len(batches) < found:
        consumed = int(batches["end"][-1])
    rows = record_bound(batches)
    longs = np.empty((6, rows), np.int64)
    lengths = np.empty((2, rows), np.int32)
    epochs, flags = np.empty(rows, np.int16), np.empty(rows, np.uint8)
    rows = read_records(data, batches, start, end, longs, lengths, epochs, flags)
    offset, batch_offset, timestamp, key_start, value_start, producer_id = longs[:, :rows]
    return RecordColumns(
        buffer=data,
        offset=offset,
        batch_offset=batch_offset,
        timestamp=timestamp,
        key_start=key_start,
        key_length=lengths[0, :rows],
        value_start=value_start,
        value_length=lengths[1, :rows],
        producer_id=producer_id,
        producer_epoch=epochs[:rows],
        flags=flags[:rows],
        next_offset=_next_offset(start, end, int(batches["last_offset"].max(initial=-1))),
        consumed=consumed,
        damages=_damages(batches, details),
    )


def batches_of(buffer: bytes) -> tuple[npt.NDArray[np.void], int]:
    """Frames as rows of `BATCH`, checksums checked and records unread, and the number of bytes in whole frames.

    Never raises for damaged bytes. The last row may have a problem of `ENDS_READING`.
    """
    data = np.frombuffer(buffer, np.uint8)
    batches, consumed = _frames(data, 0, NO_END)
    _check_crcs(data, batches)
    return batches, consumed


def _frames(data: npt.NDArray[np.uint8], start: int, end: int) -> tuple[npt.NDArray[np.void], int]:
    from coordinator_core.log.batch_kernels import count_frames, read_frames

    found, consumed = count_frames(data, start, end)
    batches = np.zeros(found, BATCH)
    read_frames(data, start, batches)
    return batches, int(consumed)


class BatchesEnd(NamedTuple):
    """End of the whole batches: the offset after them (0 for none), and `consumed` bytes.

    `leader_epoch` is that of the last batch, -1 for none.
    """

    offset: int
    leader_epoch: int
    consumed: int


def end_of(buffer: bytes) -> BatchesEnd:
    """Find the end of the whole batches of `buffer`, without reading records. Never raises for damaged bytes.

    The first headers are read without compiled code: a run that finds nothing new then need not load it.
    """
    if _KERNELS in sys.modules:
        return compiled_end_of(buffer)
    found = scalar_end_of(buffer, _FEW_BATCHES)
    return compiled_end_of(buffer) if found is None else found


def compiled_end_of(buffer: bytes) -> BatchesEnd:
    """`end_of` for any number of batches."""
    from coordinator_core.log.batch_kernels import last_frame

    last, epoch, consumed = last_frame(np.frombuffer(buffer, np.uint8))
    return BatchesEnd(int(last) + 1, int(epoch), int(consumed))


def scalar_end_of(buffer: bytes, most: int) -> BatchesEnd | None:
    """`end_of` for at most `most` batches; None for more of them."""
    greatest, epoch, position = -1, NO_LEADER_EPOCH, 0
    for number, frame in enumerate(frames(memoryview(buffer))):
        if number == most:
            return None
        greatest = max(greatest, frame.last_offset)
        if frame.problem in ENDS_READING:
            break
        has_epoch = frame.magic == _MAGIC_WITH_EPOCH
        epoch = _LEADER_EPOCH.unpack_from(buffer, position + LEADER_EPOCH_START)[0] if has_epoch else NO_LEADER_EPOCH
        position = frame.end
    return BatchesEnd(greatest + 1, epoch, position)


def _next_offset(start: int, end: int, last_offset: int) -> int:
    return max(start, min(last_offset + 1, end))


def _with_plain_payloads(
    data: npt.NDArray[np.uint8], batches: npt.NDArray[np.void], limit: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.void], dict[int, str]]:
    """`data` followed by decompressed payloads, the batches within `limit`, and details of those that do not decompress."""
    from coordinator_core.log.batch_kernels import compressed_frames

    compressed = compressed_frames(batches)
    if not len(compressed):
        return data, batches, {}
    parts, size, details = [data], len(data), {}
    view, sizes = data.data, np.zeros(len(compressed), np.int64)
    bounds = zip(
        compressed.tolist(),
        (batches["attributes"][compressed] & COMPRESSION_MASK).tolist(),
        (batches["position"][compressed] + HEADER_SIZE).tolist(),
        batches["end"][compressed].tolist(),
        strict=True,
    )
    for index, (frame, number, start, end) in enumerate(bounds):
        codec = COMPRESSIONS.get(number)
        if codec is None:
            batches["problem"][frame], details[frame] = Problem.UNKNOWN_COMPRESSION, str(number)
            continue
        payload = decompress(codec, view[start:end])
        if isinstance(payload, BadPayload):
            batches["problem"][frame], details[frame] = payload.kind, payload.problem
            continue
        if frame and size - len(data) + len(payload) > limit:
            batches, compressed, sizes = batches[:frame], compressed[:index], sizes[:index]
            break
        sizes[index] = len(payload)
        parts.append(np.frombuffer(payload, np.uint8))
        size += len(payload)
    ends = len(data) + np.cumsum(sizes)
    batches["records_start"][compressed], batches["records_end"][compressed] = ends - sizes, ends
    joined = np.concatenate(parts)
    joined.setflags(write=False)
    return joined, batches, details


def _check_crcs(data: npt.NDArray[np.uint8], batches: npt.NDArray[np.void]) -> None:
    from coordinator_core.log.batch_kernels import check_crcs

    check_crcs(data, batches, _CRC_TABLES, _LONG_BATCH)
    long = np.flatnonzero((batches["problem"] == 0) & (batches["end"] - batches["position"] > _LONG_BATCH))
    starts, view = batches["position"][long] + CRC_START, data.data
    bounds = zip(starts.tolist(), batches["end"][long].tolist(), strict=True)
    computed = np.array([crc32c.crc32c(view[start:end]) for start, end in bounds], np.uint32)
    stored = data[starts[:, None] + _CRC_BYTES].view(">u4")[:, 0]
    batches["crc_problem"][long[computed != stored]] = Problem.CRC_MISMATCH


def _crc_tables() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & np.uint32(1), np.uint32(_CRC32C_POLYNOMIAL), np.uint32(0))
    tables = [table]
    for _ in range(7):
        tables.append((tables[-1] >> np.uint32(8)) ^ table[tables[-1] & np.uint32(0xFF)])
    return np.stack(tables)


_CRC_TABLES = _crc_tables()


def _damages(batches: npt.NDArray[np.void], details: dict[int, str]) -> tuple[Damage, ...]:
    problems = ("crc_problem", "problem", "record_problem")
    damaged = np.flatnonzero(batches["problem"] | batches["crc_problem"] | batches["record_problem"])
    return tuple(
        Damage(
            int(batches["base_offset"][frame]),
            int(batches["position"][frame]),
            Problem(int(batches[kind][frame])),
            details.get(frame, "") if kind == "problem" else "",
        )
        for frame in damaged.tolist()
        for kind in problems
        if batches[kind][frame]
    )


def _through_reader(data: npt.NDArray[np.uint8], start: int, end: int, limit: int) -> RecordColumns:
    """Parse with the scalar reader, for bytes with messages of magic 0 or 1."""
    from coordinator_core.log.batch_kernels import count_frames

    view = data.data
    records: list[LogRecord] = []
    damages: list[Damage] = []
    last_offset, consumed, size = -1, len(data), 0
    for frame in frames(view, start, end):
        items = list(read_frame(view, frame, -1))
        size += sum(len(item.key or b"") + len(item.value or b"") for item in items if isinstance(item, LogRecord))
        if size > limit and last_offset >= 0:
            consumed = frame.position
            break
        damages += (item for item in items if isinstance(item, Damage))
        records += (item for item in items if isinstance(item, LogRecord) and start <= item.offset < end)
        last_offset = max(last_offset, frame.last_offset)
        consumed = frame.end
    else:
        consumed = int(count_frames(data, start, end)[1])
    return columns_of(records, next_offset=_next_offset(start, end, last_offset), consumed=consumed, damages=tuple(damages))


def columns_of(
    records: Sequence[LogRecord], *, next_offset: int, consumed: int = 0, damages: tuple[Damage, ...] = ()
) -> RecordColumns:
    """Convert records to columns with a new buffer; `partition` is not kept."""
    key_start: list[int] = []
    key_length: list[int] = []
    value_start: list[int] = []
    value_length: list[int] = []
    position = 0
    for record in records:
        for data, starts, lengths in ((record.key, key_start, key_length), (record.value, value_start, value_length)):
            starts.append(position)
            lengths.append(-1 if data is None else len(data))
            position += len(data or b"")
    buffer = b"".join(part for record in records for part in (record.key, record.value) if part)
    return RecordColumns(
        np.frombuffer(buffer, np.uint8),
        np.array([record.offset for record in records], np.int64),
        np.array([record.batch_offset for record in records], np.int64),
        np.array([record.timestamp for record in records], np.int64),
        np.array(key_start, np.int64),
        np.array(key_length, np.int32),
        np.array(value_start, np.int64),
        np.array(value_length, np.int32),
        np.array([record.producer_id for record in records], np.int64),
        np.array([record.producer_epoch for record in records], np.int16),
        np.array([record.is_transactional * IS_TRANSACTIONAL | record.is_control * IS_CONTROL for record in records], np.uint8),
        next_offset,
        consumed,
        damages,
    )


def to_log_records(columns: RecordColumns, partition: int) -> Iterator[LogRecord]:
    """Yield the rows as records."""
    data = columns.buffer.data
    rows = zip(
        columns.offset.tolist(),
        columns.batch_offset.tolist(),
        columns.timestamp.tolist(),
        columns.key_start.tolist(),
        columns.key_length.tolist(),
        columns.value_start.tolist(),
        columns.value_length.tolist(),
        columns.producer_id.tolist(),
        columns.producer_epoch.tolist(),
        columns.flags.tolist(),
        strict=True,
    )
    for offset, batch_offset, timestamp, key, key_length, value, value_length, producer_id, epoch, flags in rows:
        yield LogRecord(
            partition,
            offset,
            timestamp,
            None if key_length < 0 else bytes(data[key : key + key_length]),
            None if value_length < 0 else bytes(data[value : value + value_length]),
            producer_id,
            epoch,
            bool(flags & IS_TRANSACTIONAL),
            bool(flags & IS_CONTROL),
            batch_offset,
        )
