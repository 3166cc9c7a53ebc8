"""One partition of the log: appends, rolls, flushes, reads and cleanings."""

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from coordinator_core.log.columns import RecordColumns, to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.force import force
from coordinator_core.log.leader_epochs import read_leader_epochs, with_new_epoch, write_leader_epochs
from coordinator_core.log.partition_metadata import partition_of
from coordinator_core.producers.aborted_transactions import AbortedTransaction
from coordinator_core.producers.append import AppendOrigin, Marker, ProducerRejected
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.append_batch import AppendBatch, batch_bytes
from coordinator_core.segment_log.cleaner import CleanResult, clean_in_slices, whole_pieces
from coordinator_core.segment_log.cleaning_plan import CleaningPlan, plan_cleaning
from coordinator_core.segment_log.coordinator_checks import check_coordinator_batches
from coordinator_core.segment_log.errors import AppendFailed, CleanFailed, PartitionFailed
from coordinator_core.segment_log.producer_files import ProducerFiles
from coordinator_core.segment_log.producer_replay import replay
from coordinator_core.segment_log.recovery import CutTail, recover
from coordinator_core.segment_log.segment import MOST_OFFSETS, ActiveSegment, Segment, log_path, sync_folder
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.segment_log.sparse_index import SparseIndex
from coordinator_core.sources.segments import SegmentSource


class PendingFlush(NamedTuple):
    """A started flush: the file to fsync, and the state that is durable afterwards."""

    descriptor: int
    end_offset: int
    folder_changed: bool


class PartitionLog:
    """The segments in one folder, of which this object is the only writer.

    One thread appends, rolls and closes; at the same time a second one may flush and a third one may clean.

    Attributes:
        partition: number of the partition
        producers: states of its producers
        producer_files: their files, None if the partition has none
        leader_epoch: epoch of the batches appended from now on; greater than any earlier one
        end_offset: offset of the next record
        flushed_offset: records below this offset are durable
        cut_tail: bytes that recovery cut off, if any
        first_dirty_offset: end of the last cleaning; records at or after this offset are not cleaned
    """

    def __init__(
        self,
        folder: Path,
        settings: SegmentLogSettings,
        first_dirty_offset: int = 0,
        *,
        producers: ProducerStateManager | None = None,
        producer_files: ProducerFiles | None = None,
    ) -> None:
        """Recover the folder, which may be empty, and begin a leader epoch.

        `producers` gets the states found in the log; it may have the rules of another era.

        Raises LogDamaged, OldMessages, PartitionFailed, OSError.
        """
        named = partition_of(folder.name)
        if named is None:
            raise ValueError(f"invalid folder name {folder.name!r}: use TOPIC-PARTITION, such as __consumer_offsets-0")
        self.topic, self.partition = named
        self._folder = folder
        self._settings = settings
        self.producer_files = producer_files
        found = recover(folder, producers or ProducerStateManager(), producer_files)
        self.cut_tail: CutTail | None = found.cut_tail
        self.end_offset = self._written_offset = found.end_offset
        self.flushed_offset = -1
        self.first_dirty_offset = first_dirty_offset if first_dirty_offset <= found.end_offset else 0
        self.producers = found.producers
        self._indexes: dict[int, SparseIndex] = found.indexes
        self._active = ActiveSegment(found.segments.pop(), found.first_timestamp)
        #: Base offset → segment. Every change is one operation of the dict, so the cleaner may run beside appends.
        self._closed: dict[int, Segment] = {segment.base_offset: segment for segment in found.segments}
        self._retired: deque[ActiveSegment] = deque()
        self._flushing = False
        self._folder_changed = True
        self._failure: str | None = None
        self._cleaning_failure: str | None = None
        self.leader_epoch = self._begin_epoch(found.leader_epoch)
        # a killed process may have left records that are not durable
        self.flush()

    def _begin_epoch(self, newest_in_batches: int) -> int:
        known = read_leader_epochs(self._folder)
        epoch = max(newest_in_batches, *(entry.epoch for entry in known), -1) + 1
        #: Leader epochs, ascending.
        self.leader_epochs = with_new_epoch(known, epoch, self.end_offset)
        write_leader_epochs(self._folder, self.leader_epochs)
        return epoch

    @property
    def failure(self) -> str | None:
        """Reason why the partition takes no more appends; None if it has not failed."""
        return self._failure

    def configure(self, settings: SegmentLogSettings) -> None:
        """Use these settings from now on."""
        self._settings = settings

    # ---- writing

    def append(self, batches: Sequence[AppendBatch], now_ms: int) -> list[int]:
        """Append all batches with one write and return their base offsets. `now_ms` is the timestamp of their records.

        The bytes are in the page cache: a kill of this process loses nothing; `flush` protects against power failures.

        Raises:
            AppendFailed: the write failed, for example on a full disk; nothing was appended, and later appends may succeed
            PartitionFailed: a failed write cannot be undone, or the partition failed earlier
            ValueError: a batch has no records
        """
        self._check()
        offset, bases, parts = self.end_offset, [], []
        for batch in batches:
            bases.append(offset)
            parts.append(batch_bytes(batch, offset, self.leader_epoch, now_ms, self._settings.compression))
            offset += batch.offset_count
        self.append_bytes(b"".join(parts), offset, now_ms)
        for base_offset, batch in zip(bases, batches, strict=True):
            produced = batch.of_producer(base_offset, now_ms)
            if produced is not None:
                self._note_aborted(replay(self.producers, produced))
        self.producers.map_end_offset = offset
        if self.producer_files is None:
            # without consumers, nothing depends on the high watermark
            self.producers.on_high_watermark_updated(offset)
        return bases

    def check_producers(self, batches: Sequence[AppendBatch], now_ms: int) -> Mapping[int, ProducerRejected]:
        """Return the batches that the states of their producers refuse, by their position; `append` does not check this."""
        return check_coordinator_batches(self.producers, batches, self.end_offset, now_ms)

    def append_bytes(self, data: bytes, next_offset: int, timestamp: int) -> None:
        """Append whole batches, which begin at `end_offset` and have the leader epoch of this log, with one write.

        `next_offset` follows their last record, `timestamp` is their greatest one in ms. The caller updates `producers`.
        Raises AppendFailed and PartitionFailed as `append`.
        """
        self._check()
        base_offset = self.end_offset
        if self._is_full(len(data), next_offset, timestamp):
            self.roll()
        active = self._active
        self._write(data, next_offset)
        self._index_of(active.base_offset).note(base_offset, active.size, len(data), timestamp)
        active.grow(active.size + len(data), timestamp)
        self.end_offset = self._written_offset = next_offset

    def append_marker(self, marker: Marker, now_ms: int) -> int:
        """Append a transaction marker at `end_offset` and return its offset, after the checks of its producer.

        Raises ProducerRejected, AppendFailed, PartitionFailed.
        """
        self._check()
        append = self.producers.prepare_update(marker.producer_id, AppendOrigin.COORDINATOR)
        # checked first, without effect: nothing may be written that the producer's state refuses
        append.append_marker(marker)
        encoded = AppendBatch((), (marker.producer_id, marker.epoch), marker.control_type, marker.coordinator_epoch)
        return self.append([encoded], now_ms)[0]

    def _note_aborted(self, row: AbortedTransaction | None) -> None:
        if row is None or self.producer_files is None:
            return
        try:
            self.producer_files.append_aborted(row, self._active.base_offset)
        except OSError as error:
            # the marker is in the log and its row is not: readers would take aborted records for committed ones
            raise self.fail(f"cannot write the index of aborted transactions: {error.strerror}") from error

    def _write(self, data: bytes, next_offset: int) -> None:
        active, written = self._active, 0
        try:
            written = os.pwrite(active.descriptor, data, active.size)
            while written < len(data):
                written += os.pwrite(active.descriptor, data[written:], active.size + written)
        except OSError as error:
            self._undo(written, next_offset, error)

    def _undo(self, written: int, next_offset: int, error: OSError) -> None:
        active = self._active
        if written:
            try:
                os.ftruncate(active.descriptor, active.size)
            except OSError as second:
                raise self.fail(f"append failed: {error.strerror}; cannot truncate the file: {second.strerror}") from second
            # a reader may have seen complete batches of the write: their offsets are not used again
            self.end_offset = next_offset
        raise AppendFailed(f"{active.path}: append failed, nothing was written: {error.strerror}") from error

    def flush(self) -> int:
        """Fsync the records appended before the call; return the new `flushed_offset`, which follows the last of them.

        Raises PartitionFailed if the fsync fails: the content on disk is then unknown, even if a later fsync succeeds, so the
        partition rejects further appends.
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
        """Start a flush: return the file to fsync, None if all is durable. `end_flush` must follow. Raises PartitionFailed."""
        self._check()
        end_offset, folder_changed = self.end_offset, self._folder_changed
        if end_offset == self.flushed_offset and not folder_changed:
            return None
        self._flushing = True
        # read once, after setting the flag: a concurrent roll leaves this file open
        return PendingFlush(self._active.descriptor, end_offset, folder_changed)

    def end_flush(self, pending: PendingFlush, error: OSError | None) -> int:
        """Finish a flush with the error of the fsync, None for success; returns and raises as `flush` does."""
        try:
            if error is not None:
                raise error
            if pending.folder_changed:
                self._folder_changed = False
                sync_folder(self._folder)
        except OSError as failure:
            raise self.fail(f"fsync failed: {failure.strerror}") from failure
        finally:
            self._flushing = False
            self._close_retired()
        self.flushed_offset = pending.end_offset
        return pending.end_offset

    def roll_due(self, now_ms: int) -> bool:
        """Whether the active segment is older than `segment_ms`, counted from its first batch. Appends check this themselves."""
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
        """Begin a new segment, unless the active one is empty. The old one is durable before the new one exists.

        Raises AppendFailed if the new segment cannot be created, PartitionFailed if the old one cannot be made durable.
        """
        self._check()
        old = self._active
        if old.size == 0:
            return
        try:
            force(old.descriptor)
        except OSError as error:
            raise self.fail(f"fsync failed: {error.strerror}") from error
        path = log_path(self._folder, self.end_offset)
        try:
            if self.producer_files is not None:
                self.producer_files.take_snapshot(self.producers)
            new = ActiveSegment(Segment(self.end_offset, path, 0, -1), -1)
        except OSError as error:
            raise AppendFailed(f"{path}: cannot create a new segment: {error.strerror}") from error
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

    def fail(self, why: str) -> PartitionFailed:
        """Reject appends from now on, because the content on disk is unknown; return the error."""
        self._failure = f"{self._active.path}: {why}; the partition rejects appends until it is reopened"
        return PartitionFailed(self._failure)

    def _check(self) -> None:
        if self._failure is not None:
            raise PartitionFailed(self._failure)

    def close(self) -> None:
        """Close the files, without a flush."""
        self._close_retired()
        self._active.close()

    # ---- reading

    def read_columns(self, from_offset: int = 0) -> Iterator[RecordColumns]:
        """Yield the records from `from_offset` on that were appended before the call, as columns; faster than `read`."""
        source = SegmentSource(self._folder, self.topic)
        return source.read_columns(self.partition, from_offset, self._written_offset)

    def read(self, from_offset: int = 0) -> Iterator[LogRecord]:
        """Yield the same records one by one."""
        for columns in self.read_columns(from_offset):
            yield from to_log_records(columns, self.partition)

    # ---- segments

    @property
    def segments(self) -> list[Segment]:
        """All segments, ascending; the last one is active."""
        active = self._active
        # a copy: the cleaner may remove segments meanwhile
        closed = self._closed.copy()
        return [*(closed[base] for base in sorted(closed)), active.rolled()]

    @property
    def dirty_bytes(self) -> int:
        """Bytes of the closed segments after the last cleaning."""
        return sum(segment.size for base, segment in self._closed.copy().items() if base >= self.first_dirty_offset)

    def index_of(self, segment: Segment) -> SparseIndex:
        """Return the index of a segment of `segments`. Raises CleanFailed for a damaged one."""
        index = self._indexes.get(segment.base_offset)
        if index is None:
            # the segment was cleaned since
            index = SparseIndex()
            for piece in whole_pieces(segment):
                index.note_piece(piece)
            self._indexes[segment.base_offset] = index
        return index

    def _index_of(self, base_offset: int) -> SparseIndex:
        return self._indexes.setdefault(base_offset, SparseIndex())

    def remove_before(self, offset: int) -> int:
        """Delete the closed segments whose records are all before this offset; return their number. Raises OSError."""
        segments = self.segments
        old = [segment for segment, after in pairwise(segments) if after.base_offset <= offset]
        for segment in old:
            self._closed.pop(segment.base_offset)
            self._indexes.pop(segment.base_offset, None)
            segment.path.unlink()
        if old:
            if self.producer_files is not None:
                self.producer_files.remove_before(self.segments[0].base_offset)
            sync_folder(self._folder)
        return len(old)

    # ---- cleaning

    def cleanable_ratio(self, now_ms: int) -> float:
        """Return the share of the cleanable bytes that is not cleaned yet, 0–1.

        It is 0 after a failed cleaning, so that other partitions are cleaned (Kafka's `markPartitionUncleanable`).
        """
        return 0.0 if self._cleaning_failure is not None else self._plan(now_ms).dirty_ratio

    def clean(self, now_ms: int) -> CleanResult:
        """Clean all cleanable segments, regardless of the dirty ratio. See `cleaning`."""
        result = CleanResult(self.partition)
        for result in self.cleaning(now_ms):  # noqa: B007
            pass
        return result

    def cleaning(self, now_ms: int) -> Iterator[CleanResult]:
        """Clean in slices of about a megabyte, and yield the progress after each. The caller may stop after any slice.

        Raises CleanFailed: the log keeps its state, but is not cleaned again until it is reopened.
        """
        if self._cleaning_failure is not None:
            raise CleanFailed(self._cleaning_failure)
        plan = self._plan(now_ms)
        try:
            yield from clean_in_slices(plan, self._closed, self._settings, now_ms)
        except (CleanFailed, OSError) as error:
            self._cleaning_failure = f"{self._folder}: cleaning failed: {error}"
            raise CleanFailed(self._cleaning_failure) from error
        except Exception as error:
            self._cleaning_failure = f"{self._folder}: cleaning failed: {type(error).__name__}: {error}"
            raise
        self.first_dirty_offset = max(self.first_dirty_offset, plan.end_offset)
        for base in [base for base in list(self._indexes) if base < plan.end_offset]:
            self._indexes.pop(base, None)

    def _plan(self, now_ms: int) -> CleaningPlan:
        # read first: segments that are rolled meanwhile are left to the next cleaning
        active_base_offset = self._active.base_offset
        return plan_cleaning(
            self.partition,
            [segment for base, segment in sorted(list(self._closed.items())) if base < active_base_offset],
            active_base_offset,
            self.first_dirty_offset,
            self.producers,
            self._settings,
            now_ms,
        )
