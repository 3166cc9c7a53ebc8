"""One partition of the log: appends at the end, rolls segments, keeps them durable, reads, and has itself cleaned."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from coordinator_core.log.columns import RecordColumns, to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.force import force
from coordinator_core.log.leader_epochs import read_leader_epochs, with_new_epoch, write_leader_epochs
from coordinator_core.log.partition_metadata import partition_of
from coordinator_core.segment_log.append_batch import AppendBatch, batch_bytes
from coordinator_core.segment_log.cleaner import CleanResult, clean_in_slices
from coordinator_core.segment_log.cleaning_plan import CleaningPlan, plan_cleaning
from coordinator_core.segment_log.errors import AppendFailed, CleanFailed, PartitionFailed
from coordinator_core.segment_log.recovery import CutTail, recover
from coordinator_core.segment_log.segment import MOST_OFFSETS, ActiveSegment, Segment, log_path, sync_folder
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.sources.segments import SegmentSource


class PendingFlush(NamedTuple):
    """A flush that has begun: the file to fsync, and what is durable once that is done."""

    descriptor: int
    end_offset: int
    folder_changed: bool


class PartitionLog:
    """The segments in one folder, of which nobody else is the writer.

    One thread appends, rolls and closes; one other may flush, and one may clean, at the same time. `first_dirty_offset` is where
    the last cleaning ended.

    Attributes:
        partition: its number
        leader_epoch: of every batch appended from now on; greater than any before
        end_offset: offset of the next record
        flushed_offset: everything below has survived a flush
        cut_tail: what opening cut off, if anything
        first_dirty_offset: no cleaning has seen what is at or above
    """

    def __init__(self, folder: Path, settings: SegmentLogSettings, first_dirty_offset: int = 0) -> None:
        """Recovers the folder, which may be empty, and begins a leader epoch. Raises LogDamaged, OldMessages,
        PartitionFailed, OSError."""
        named = partition_of(folder.name)
        if named is None:
            raise ValueError(f"{folder.name} is not the name of a partition's folder")
        self.topic, self.partition = named
        self._folder = folder
        self._settings = settings
        found = recover(folder)
        self.cut_tail: CutTail | None = found.cut_tail
        self.end_offset = self._written_offset = found.end_offset
        self.flushed_offset = -1
        self.first_dirty_offset = first_dirty_offset if first_dirty_offset <= found.end_offset else 0
        self._producers = found.producers
        self._active = ActiveSegment(found.segments.pop(), found.first_timestamp)
        #: By base offset. Every change is one operation of the dict, so that the cleaner may make them beside appends.
        self._closed: dict[int, Segment] = {segment.base_offset: segment for segment in found.segments}
        self._retired: deque[ActiveSegment] = deque()
        self._flushing = False
        self._folder_changed = True
        self._failure: str | None = None
        self._cleaning_failure: str | None = None
        self.leader_epoch = self._begin_epoch(found.leader_epoch)
        # what a killed process left to the system is answered for from now on
        self.flush()

    def _begin_epoch(self, newest_in_batches: int) -> int:
        known = read_leader_epochs(self._folder)
        epoch = max(newest_in_batches, *(entry.epoch for entry in known), -1) + 1
        write_leader_epochs(self._folder, with_new_epoch(known, epoch, self.end_offset))
        return epoch

    # ---- writing

    def append(self, batches: Sequence[AppendBatch], now_ms: int) -> list[int]:
        """Appends all batches, in one write; their base offsets. `now_ms` is the timestamp of their records.

        The bytes are with the system, so that a kill of this process loses nothing; `flush` makes them survive the machine's.

        Raises:
            AppendFailed: the system refused, as when the disk is full; the log has nothing of the batches, and takes others
            PartitionFailed: the log cannot be brought back to what it was, or could not before
            ValueError: a batch without records
        """
        self._check()
        offset, bases, parts = self.end_offset, [], []
        for batch in batches:
            bases.append(offset)
            parts.append(batch_bytes(batch, offset, self.leader_epoch, now_ms, self._settings.compression))
            offset += batch.count
        data = b"".join(parts)
        if self._is_full(len(data), offset, now_ms):
            self.roll()
        self._write(data, offset)
        self._active.grow(self._active.size + len(data), now_ms)
        self.end_offset = self._written_offset = offset
        for batch, base in zip(batches, bases, strict=True):
            if batch.producer is not None:
                self._note_producer(batch, batch.producer, base, now_ms)
        return bases

    def _note_producer(self, batch: AppendBatch, producer: tuple[int, int], base: int, now_ms: int) -> None:
        is_control = batch.control_type is not None
        last = base + batch.count - 1
        self._producers.note(*producer, base, last, now_ms, transactional=True, control=is_control)

    def _write(self, data: bytes, offset_behind: int) -> None:
        active, written = self._active, 0
        try:
            written = os.pwrite(active.descriptor, data, active.size)
            while written < len(data):
                written += os.pwrite(active.descriptor, data[written:], active.size + written)
        except OSError as error:
            self._take_back(written, offset_behind, error)

    def _take_back(self, written: int, offset_behind: int, error: OSError) -> None:
        active = self._active
        if written:
            try:
                os.ftruncate(active.descriptor, active.size)
            except OSError as worse:
                raise self._failed(f"{error.strerror}, and what was written cannot be taken back: {worse.strerror}") from worse
            # A reader that follows may have seen whole batches of it: their offsets are never given to other records.
            self.end_offset = offset_behind
        raise AppendFailed(f"{active.path}: nothing was appended: {error.strerror}") from error

    def flush(self) -> int:
        """Makes durable what was appended before the call (fsync); the offset behind it, which is `flushed_offset` then.

        Raises PartitionFailed when the system cannot: what of the data is on disk is unknown from then on, whatever a later fsync
        says, so that the partition takes nothing more.
        """
        pending = self.begin_flush()
        if pending is None:
            return self.flushed_offset
        try:
            force(pending.descriptor)
        except OSError as error:
            return self.end_flush(pending, error)
        return self.end_flush(pending, None)

    def begin_flush(self) -> PendingFlush | None:
        """The first half of `flush`: which file to fsync, None for none. `end_flush` must follow. Raises PartitionFailed."""
        self._check()
        end_offset, folder_changed = self.end_offset, self._folder_changed
        if end_offset == self.flushed_offset and not folder_changed:
            return None
        self._flushing = True
        # asked for once, after the flag: a roll meanwhile leaves this file open
        return PendingFlush(self._active.descriptor, end_offset, folder_changed)

    def end_flush(self, pending: PendingFlush, error: OSError | None) -> int:
        """The second half, with what the fsync said; returns and raises as `flush` does."""
        try:
            if error is not None:
                raise error
            if pending.folder_changed:
                self._folder_changed = False
                sync_folder(self._folder)
        except OSError as refused:
            raise self._failed(f"fsync: {refused.strerror}") from refused
        finally:
            self._flushing = False
            self._close_retired()
        self.flushed_offset = pending.end_offset
        return pending.end_offset

    def roll_due(self, now_ms: int) -> bool:
        """Whether the active segment is older than `segment_ms`, counted from its first batch. Appends ask themselves."""
        active = self._active
        return active.size > 0 and now_ms - active.first_timestamp > self._settings.segment_ms

    def _is_full(self, more: int, end_offset: int, now_ms: int) -> bool:
        active = self._active
        return active.size > 0 and (
            active.size + more > self._settings.segment_bytes
            or end_offset - 1 - active.base_offset > MOST_OFFSETS
            or now_ms - active.first_timestamp > self._settings.segment_ms
        )

    def roll(self) -> None:
        """Begins a new segment, unless the active one is empty. The old one is durable before the new one exists.

        Raises AppendFailed when there cannot be a new segment, PartitionFailed when the old one cannot be made durable.
        """
        self._check()
        old = self._active
        if old.size == 0:
            return
        try:
            force(old.descriptor)
        except OSError as error:
            raise self._failed(f"fsync: {error.strerror}") from error
        path = log_path(self._folder, self.end_offset)
        try:
            new = ActiveSegment(Segment(self.end_offset, path, 0, -1), -1)
        except OSError as error:
            raise AppendFailed(f"{path}: no new segment: {error.strerror}") from error
        self._folder_changed = True
        self._closed[old.base_offset] = old.rolled()
        self._retired.append(old)
        self._active = new
        if not self._flushing:
            self._close_retired()

    def _close_retired(self) -> None:
        with suppress(IndexError):
            while True:
                self._retired.popleft().close()

    def _failed(self, why: str) -> PartitionFailed:
        self._failure = f"{self._active.path}: {why}; the partition takes nothing until it is opened again"
        return PartitionFailed(self._failure)

    def _check(self) -> None:
        if self._failure is not None:
            raise PartitionFailed(self._failure)

    def close(self) -> None:
        """Closes the files. What was not flushed is left to the system."""
        self._close_retired()
        self._active.close()

    # ---- reading

    def read_columns(self, from_offset: int = 0) -> Iterator[RecordColumns]:
        """Everything from `from_offset` on that was appended before the call, as columns, in pieces: the quick way to load."""
        source = SegmentSource(self._folder, self.topic)
        return source.read_columns(self.partition, from_offset, self._written_offset)

    def read(self, from_offset: int = 0) -> Iterator[LogRecord]:
        """The same as records, one by one."""
        for columns in self.read_columns(from_offset):
            yield from to_log_records(columns, self.partition)

    # ---- cleaning

    def cleanable_ratio(self, now_ms: int) -> float:
        """Which part of the bytes that a cleaning may touch has not been cleaned yet, 0–1. 0 after a cleaning that stopped, so
        that the other partitions are cleaned (Kafka's `markPartitionUncleanable`)."""
        return 0.0 if self._cleaning_failure is not None else self._plan(now_ms).dirty_ratio

    def clean(self, now_ms: int) -> CleanResult:
        """One cleaning of all closed segments that it may touch, however little of them is dirty. See `cleaning`."""
        result = CleanResult(self.partition)
        for result in self.cleaning(now_ms):  # noqa: B007
            pass
        return result

    def cleaning(self, now_ms: int) -> Iterator[CleanResult]:
        """The same in slices of about a megabyte: what was done so far, after each. May be left at any slice.

        Raises CleanFailed; the log is as good as before then, but is not cleaned again until it is opened again.
        """
        if self._cleaning_failure is not None:
            raise CleanFailed(self._cleaning_failure)
        plan = self._plan(now_ms)
        try:
            yield from clean_in_slices(plan, self._closed, self._settings, now_ms)
        except (CleanFailed, OSError) as error:
            self._cleaning_failure = f"{self._folder}: the cleaning stopped: {error}"
            raise CleanFailed(self._cleaning_failure) from error
        except Exception as error:
            self._cleaning_failure = f"{self._folder}: the cleaning stopped: {type(error).__name__}: {error}"
            raise
        self.first_dirty_offset = max(self.first_dirty_offset, plan.end_offset)

    def _plan(self, now_ms: int) -> CleaningPlan:
        # asked for first: what is rolled meanwhile is left to the next cleaning
        active_base_offset = self._active.base_offset
        return plan_cleaning(
            self.partition,
            [segment for base, segment in sorted(list(self._closed.items())) if base < active_base_offset],
            active_base_offset,
            self.first_dirty_offset,
            self._producers,
            self._settings,
            now_ms,
        )
