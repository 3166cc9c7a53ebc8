"""Compaction of closed segments (`LogCleaner`, `Cleaner`; KIP-98 for transactions, KIP-534 for tombstones).

Unlike Kafka's, the key map covers all cleaned segments, not only the dirty ones. A cleaning therefore needs no state of earlier
cleanings, and compacts records that an earlier one had to keep, such as those of a transaction that was open then.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coordinator_core.codec.arrays import Bytes, Int64s
from coordinator_core.codec.byte_kernels import gather_bytes
from coordinator_core.log.columns import IS_CONTROL, RecordColumns, parse_columns
from coordinator_core.log.force import force
from coordinator_core.log.record_batch import CONTROL
from coordinator_core.segment_log.batch_filter import COPY, EMPTY, REWRITE, decide, emptied, rewritten
from coordinator_core.segment_log.cleaning_plan import CleaningPlan
from coordinator_core.segment_log.errors import CleanFailed
from coordinator_core.segment_log.key_offsets import KeyOffsets
from coordinator_core.segment_log.segment import CLEANED, Segment
from coordinator_core.segment_log.segment_scan import Piece, pieces
from coordinator_core.segment_log.segment_swap import swap_in
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.segment_log.transactions import Transactions


@dataclass(frozen=True, slots=True)
class CleanResult:
    """Progress of a cleaning: bytes and segments read so far, and bytes and segments that replaced them."""

    partition: int
    bytes_before: int = 0
    bytes_after: int = 0
    segments_before: int = 0
    segments_after: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    """Bytes for the new segment, the largest timestamp of their batches in ms, and whether they are unchanged."""

    data: bytes | memoryview
    timestamp: int
    is_copy: bool


@dataclass(frozen=True, slots=True)
class _Cleaning:
    """Context of the steps of a cleaning."""

    plan: CleaningPlan
    closed: dict[int, Segment]
    keys: KeyOffsets
    transactions: Transactions
    open_batches: frozenset[int]
    settings: SegmentLogSettings
    now_ms: int


def clean_in_slices(
    plan: CleaningPlan, closed: dict[int, Segment], settings: SegmentLogSettings, now_ms: int
) -> Iterator[CleanResult]:
    """Clean the segments of the plan and update `closed`, by single operations of the dict.

    Segments are replaced in order; a kill at any moment leaves a log that loads to the same state. Raises CleanFailed for
    damage, OSError.
    """
    result = CleanResult(plan.partition)
    keys, transactions = KeyOffsets(), Transactions()
    for segment in plan.segments:
        for piece in whole_pieces(segment):
            transactions.note(piece)
            yield result
    open_batches = frozenset(transactions.open)
    for segment in plan.segments:
        for piece in whole_pieces(segment):
            for columns, batches in _parsed(piece):
                _note_keys(keys, columns, batches, transactions.aborted | open_batches)
            yield result
    cleaning = _Cleaning(plan, closed, keys, transactions, open_batches, settings, now_ms)
    for group in plan.groups:
        for done in _clean_group(cleaning, group):
            if done is not None:
                result = replace(
                    result,
                    bytes_before=result.bytes_before + sum(segment.size for segment in group),
                    bytes_after=result.bytes_after + done.size,
                    segments_before=result.segments_before + len(group),
                    segments_after=result.segments_after + 1,
                )
            yield result


def whole_pieces(segment: Segment) -> Iterator[Piece]:
    """Yield the batches of a segment. Raises CleanFailed for damage."""
    for piece in pieces(segment.path, segment.base_offset, upto=segment.size):
        if not isinstance(piece, Piece):
            raise CleanFailed(f"{segment.path}: byte {piece.position:,}: {piece.why}")
        yield piece


def _parsed(piece: Piece) -> Iterator[tuple[RecordColumns, npt.NDArray[np.void]]]:
    """Yield the records of a piece and their batches, in several steps if the decompressed records are large."""
    batches, position = piece.batches, 0
    while len(batches):
        columns = parse_columns(piece.data[position:])
        if columns.damages:
            raise CleanFailed(columns.damages[0].reason)
        position += columns.consumed
        count = int(np.searchsorted(batches["end"], position, side="right"))
        yield columns, batches[:count]
        batches = batches[count:]


def _note_keys(keys: KeyOffsets, columns: RecordColumns, batches: npt.NDArray[np.void], without: set[int]) -> None:
    counts = (columns.flags & IS_CONTROL) == 0
    if without:
        base = batches["base_offset"][_batch_of(columns, batches)]
        counts &= ~np.isin(base, np.fromiter(without, np.int64))
    if counts.all():
        keys.note(columns.buffer, columns.key_start, columns.key_length, columns.offset)
    else:
        keys.note(columns.buffer, columns.key_start[counts], columns.key_length[counts], columns.offset[counts])


def _batch_of(columns: RecordColumns, batches: npt.NDArray[np.void]) -> Int64s:
    """Return the row of each record's batch."""
    rows: Int64s = np.searchsorted(batches["base_offset"], columns.offset, side="right") - 1
    return rows


def _clean_group(cleaning: _Cleaning, group: tuple[Segment, ...]) -> Iterator[Segment | None]:
    first = group[0]
    cleaned = first.path.with_name(first.path.name + CLEANED)
    size, copied, largest = 0, 0, -1
    try:
        with cleaned.open("wb", buffering=0) as file:
            for segment in group:
                for piece in whole_pieces(segment):
                    for kept in _kept(cleaning, piece):
                        _write_all(file.fileno(), kept.data)
                        size, largest = size + len(kept.data), max(largest, kept.timestamp)
                        copied += len(kept.data) if kept.is_copy else 0
                    yield None
            is_same = len(group) == 1 and copied == first.size
            if not is_same:
                force(file.fileno())
    except BaseException:
        cleaned.unlink(missing_ok=True)
        raise
    if is_same:
        cleaned.unlink()
        yield first
        return
    _keep_modification_time(group[-1].path, cleaned)
    yield swap_in(cleaned, Segment(first.base_offset, first.path, size, largest), group, cleaning.closed)


def _keep_modification_time(of: Path, on: Path) -> None:
    status = of.stat()
    os.utime(on, ns=(status.st_atime_ns, status.st_mtime_ns))


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _kept(cleaning: _Cleaning, piece: Piece) -> Iterator[_Kept]:
    """Yield the bytes that are kept of the batches of a piece."""
    for columns, batches in _parsed(piece):
        rows = _batch_of(columns, batches)
        last = cleaning.keys.last(columns.buffer, columns.key_start, columns.key_length)
        is_kept, action = decide(
            columns, batches, rows, last, cleaning.transactions, cleaning.open_batches, cleaning.plan.producers, cleaning.now_ms
        )
        yield from _by_runs(cleaning, piece, batches, rows, columns, is_kept, action)


def _by_runs(
    cleaning: _Cleaning,
    piece: Piece,
    batches: npt.NDArray[np.void],
    rows: Int64s,
    columns: RecordColumns,
    is_kept: npt.NDArray[np.bool_],
    action: Bytes,
) -> Iterator[_Kept]:
    """Yield the batches in order: runs of batches to copy or drop as one slice, the other batches one by one."""
    single = np.flatnonzero((action == REWRITE) | (action == EMPTY))
    begin = 0
    for row in [*single.tolist(), len(batches)]:
        copied = begin + np.flatnonzero(action[begin:row] == COPY)
        if len(copied):
            starts, ends = batches["position"][copied], batches["end"][copied]
            target: Bytes = np.empty(int((ends - starts).sum()), np.uint8)
            gather_bytes(np.frombuffer(piece.data, np.uint8), starts, ends - starts, target)
            yield _Kept(target.data, int(batches["max_timestamp"][copied].max()), True)
        if row < len(batches):
            batch = batches[row]
            whole = memoryview(piece.data)[int(batch["position"]) : int(batch["end"])]
            if action[row] == EMPTY:
                yield _Kept(emptied(whole), int(batch["max_timestamp"]), False)
            else:
                own = slice(*np.searchsorted(rows, [row, row + 1]).tolist())
                kept = frozenset(columns.offset[own][is_kept[own]].tolist())
                horizon = cleaning.now_ms + cleaning.settings.delete_retention_ms
                data = rewritten(whole, kept, horizon, is_marker=bool(int(batch["attributes"]) & CONTROL))
                yield _Kept(data, int(batch["max_timestamp"]), False)
        begin = row + 1
