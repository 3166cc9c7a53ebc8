"""A partition with data: its log as producers and consumers see it (`UnifiedLog`)."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from coordinator_core.log.columns import parse_columns
from coordinator_core.log.leader_epochs import first_begun_after
from coordinator_core.log.record_batch import BatchHeader
from coordinator_core.producers.aborted_transactions import AbortedTransaction
from coordinator_core.producers.append import Marker, ProducerAppend
from coordinator_core.producers.leader_checks import check_client_batch
from coordinator_core.producers.rules import ProducerRules
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.producers.verification import NO_GUARD
from coordinator_core.segment_log.partition_log import PartitionLog
from coordinator_core.segment_log.producer_files import ProducerFiles
from coordinator_core.segment_log.producer_replay import data_batch_of
from coordinator_core.segment_log.read_kernels import first_with_timestamp, whole_batches
from coordinator_core.segment_log.segment import Segment
from coordinator_core.segment_log.sparse_index import INDEX_INTERVAL_BYTES
from coordinator_core.segment_log.topic_config import TopicConfig

_TRIES = 5
#: Size of a batch with a transaction marker.
_MARKER_BYTES = 78
_NO_EPOCH = -1
_NO_OFFSET = -1


class OffsetOutOfRange(Exception):
    """The offset is before the start or after the end of the log."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Result of an append. A repeated batch was not written again: its offset and timestamp are those of the first time."""

    base_offset: int
    is_duplicate: bool = False
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class Read:
    """Whole batches from an offset on, and the offset after them.

    `upper_offset` is at or after it: the next one in the index, which is the bound for aborted transactions.
    """

    data: bytes | memoryview
    next_offset: int
    upper_offset: int = 0


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    """A record by its timestamp; -1 in all fields for none."""

    timestamp: int = -1
    offset: int = _NO_OFFSET
    leader_epoch: int = _NO_EPOCH


class DataPartition:
    """A partition of a topic with data, not replicated. Used by one thread, except for flushes and cleanings of `log`.

    Attributes:
        log: its segments
        config: configs of the topic
        high_watermark: consumers see the records before it
        log_start_offset: offset of the first record; greater than that of the first segment after DeleteRecords
    """

    def __init__(
        self,
        folder: Path,
        config: TopicConfig,
        rules: ProducerRules,
        producer_id_expiration_ms: int,
        *,
        first_dirty_offset: int = 0,
        log_start_offset: int = 0,
    ) -> None:
        """Recover the folder. Raises the errors of `PartitionLog`."""
        self.config = config
        self._expiration_ms = producer_id_expiration_ms
        self.log = PartitionLog(
            folder,
            config.log_settings(producer_id_expiration_ms),
            first_dirty_offset,
            producers=ProducerStateManager(rules),
            producer_files=ProducerFiles(folder),
        )
        self.high_watermark = self.log.end_offset
        #: Bytes appended since the partition was opened, and those of them that are visible.
        self.appended_bytes = self._visible_bytes = 0
        first = self.log.segments[0].base_offset
        self.log_start_offset = max(first, min(log_start_offset, self.log.end_offset))
        self.log.producers.on_high_watermark_updated(self.high_watermark)

    @property
    def producers(self) -> ProducerStateManager:
        """States of the producers."""
        return self.log.producers

    @property
    def aborted_transactions(self) -> Sequence[AbortedTransaction]:
        """Rows of the index of aborted transactions."""
        return self._files.aborted.rows

    @property
    def _files(self) -> ProducerFiles:
        files = self.log.producer_files
        assert files is not None
        return files

    @property
    def last_stable_offset(self) -> int:
        """Offset up to which all transactions are decided; consumers with read_committed see the records before it."""
        unstable = self.producers.first_unstable_offset()
        stable = self.high_watermark if unstable is None else min(unstable, self.high_watermark)
        return max(stable, self.log_start_offset)

    def configure(self, config: TopicConfig) -> None:
        """Apply changed configs."""
        self.config = config
        self.log.configure(config.log_settings(self._expiration_ms))

    # ---- appends

    def append(
        self,
        header: BatchHeader,
        placed: Callable[[int, int], bytes],
        max_timestamp: int,
        guard: int = NO_GUARD,
        *,
        verification_enabled: bool = True,
    ) -> Appended:
        """Append a checked batch of a client; `placed` makes its bytes for an offset and a leader epoch.

        The records are visible after `advance`. Raises ProducerRejected, AppendFailed, PartitionFailed.
        """
        base_offset = self.log.end_offset
        next_offset = base_offset + header.count
        update: ProducerAppend | None = None
        if header.producer_id >= 0:
            batch = data_batch_of(header)._replace(base_offset=base_offset, last_offset=next_offset - 1, timestamp=max_timestamp)
            duplicate, update = check_client_batch(self.producers, batch, guard, verification_enabled=verification_enabled)
            if duplicate is not None:
                return Appended(duplicate.first_offset, True, duplicate.timestamp)
        data = placed(base_offset, self.log.leader_epoch)
        self.log.append_bytes(data, next_offset, max_timestamp)
        self.appended_bytes += len(data)
        if update is not None:
            self.producers.update(update)
            if header.is_transactional:
                self.producers.verifications.remove(header.producer_id)
        self.producers.map_end_offset = next_offset
        return Appended(base_offset)

    def append_marker(self, marker: Marker, now_ms: int) -> int:
        """Append a transaction marker and return its offset. Raises ProducerRejected, AppendFailed, PartitionFailed."""
        verification = self.producers.verifications.get(marker.producer_id)
        offset = self.log.append_marker(marker, now_ms)
        self.appended_bytes += _MARKER_BYTES
        # the marker of the previous transaction of version 2 must not end the verification of the next one
        is_previous = marker.transaction_version >= 2 and verification is not None and verification.epoch == marker.epoch
        if not (is_previous and self.producers.rules.ongoing_needs_epoch):
            self.producers.verifications.remove(marker.producer_id)
        return offset

    def advance(self, offset: int, appended_bytes: int) -> int:
        """Make the records before `offset` visible, at which `appended_bytes` had been appended; return the size of new ones."""
        if offset <= self.high_watermark:
            return 0
        self.high_watermark = offset
        self.producers.on_high_watermark_updated(offset)
        before, self._visible_bytes = self._visible_bytes, appended_bytes
        return appended_bytes - before

    # ---- reads

    def read(self, offset: int, most_bytes: int, end_offset: int) -> Read:
        """Read whole batches from the one with `offset` on, that begin before `end_offset`: `most_bytes`, but at least one.

        Raises OffsetOutOfRange, OSError.
        """
        if not self.log_start_offset <= offset <= self.log.end_offset:
            raise OffsetOutOfRange
        for attempt in range(_TRIES):
            try:
                return self._read(offset, most_bytes, end_offset)
            except FileNotFoundError:
                # the cleaner has replaced segments meanwhile
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    def _read(self, offset: int, most_bytes: int, end_offset: int) -> Read:
        segments = self.log.segments
        if offset >= end_offset:
            return Read(b"", offset)
        start = max(i for i, segment in enumerate(segments) if i == 0 or segment.base_offset <= offset)
        for segment in segments[start:]:
            if segment.base_offset >= end_offset:
                break
            found = self._read_segment(segment, offset, most_bytes, end_offset)
            if found is not None:
                return found
        return Read(b"", offset)

    def _read_segment(self, segment: Segment, offset: int, most_bytes: int, end_offset: int) -> Read | None:
        position = self.log.index_of(segment).position_of(offset)
        size = most_bytes + INDEX_INTERVAL_BYTES
        descriptor = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while position < segment.size:
                data = os.pread(descriptor, min(size, segment.size - position), position)
                begin, end, next_offset = whole_batches(np.frombuffer(data, np.uint8), offset, end_offset, most_bytes)
                if end > begin:
                    upper_offset = self._upper_offset(segment, position + int(end))
                    return Read(memoryview(data)[begin:end], int(next_offset), upper_offset)
                if next_offset < 0:
                    size = max(size, -1 - int(next_offset))
                    if begin == 0 and len(data) >= size:
                        return None
                elif end == 0:
                    return None
                position += int(begin)
        finally:
            os.close(descriptor)
        return None

    def _upper_offset(self, segment: Segment, position: int) -> int:
        """Return an offset that is not before the end of a read, as brokers find it in the offset index."""
        found = self.log.index_of(segment).offset_after(position)
        later = (each.base_offset for each in self.log.segments if each.base_offset > segment.base_offset)
        return next(later, self.log.end_offset) if found is None else found

    def aborted(self, offset: int, next_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap the offsets from `offset` up to, not including, `next_offset`."""
        return self._files.aborted.collect(offset, next_offset).rows

    # ---- offsets

    def find_timestamp(self, timestamp: int, end_offset: int) -> TimestampOffset:
        """Return the first record before `end_offset` with this timestamp or a later one. Raises OSError."""
        for segment in self.log.segments:
            if segment.largest_timestamp < timestamp or segment.base_offset >= end_offset:
                continue
            position = self.log.index_of(segment).position_of_timestamp(timestamp)
            found = self._find_in_segment(segment, position, timestamp)
            if found is not None:
                return found if found.offset < end_offset else TimestampOffset()
        return TimestampOffset()

    def _find_in_segment(self, segment: Segment, position: int, timestamp: int) -> TimestampOffset | None:
        with segment.path.open("rb", buffering=0) as file:
            data = os.pread(file.fileno(), segment.size - position, position)
        view = np.frombuffer(data, np.uint8)
        at = 0
        while at < len(data):
            begin, end = first_with_timestamp(view[at:], timestamp)
            if end == begin:
                return None
            columns = parse_columns(data[at + begin : at + end])
            matches = (columns.timestamp >= timestamp) & (columns.offset >= self.log_start_offset)
            if matches.any():
                first = int(np.argmax(matches))
                offset = int(columns.offset[first])
                return TimestampOffset(int(columns.timestamp[first]), offset, self.epoch_of(offset))
            at += int(end)
        return None

    def largest_timestamp(self) -> TimestampOffset:
        """Return the first record with the greatest timestamp. Raises OSError."""
        largest = max(segment.largest_timestamp for segment in self.log.segments)
        return TimestampOffset() if largest < 0 else self.find_timestamp(largest, self.log.end_offset)

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch in which the record at this offset was written, -1 if it is unknown."""
        return max((entry.epoch for entry in self.log.leader_epochs if entry.start_offset <= offset), default=_NO_EPOCH)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch up to this one, and the offset after its last record (`endOffsetFor`); -1 for unknown."""
        epochs = self.log.leader_epochs
        if epoch == self.log.leader_epoch:
            return epoch, self.log.end_offset
        end = first_begun_after(epoch, epochs)
        if epoch < 0 or end is None:
            return _NO_EPOCH, _NO_OFFSET
        return max((entry.epoch for entry in epochs if entry.epoch <= epoch), default=epoch), end

    # ---- deletion

    def delete_records(self, offset: int) -> int:
        """Delete the records before `offset`; return the new start of the log. The caller stores it. Raises OffsetOutOfRange."""
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange
        self.log_start_offset = max(self.log_start_offset, offset)
        self.producers.on_log_start_offset_incremented(self.log_start_offset)
        return self.log_start_offset

    def remove_old_segments(self, now_ms: int) -> int:
        """Delete segments by retention and by the start of the log; return their number. Raises OSError and append errors."""
        start = self.log_start_offset
        if self.config.is_deleted:
            start = max(start, self._start_by_time(now_ms), self._start_by_size())
        if start >= self.log.end_offset:
            self.log.roll()
        removed = self.log.remove_before(start)
        self.log_start_offset = max(self.log_start_offset, self.log.segments[0].base_offset)
        if removed:
            self.producers.on_log_start_offset_incremented(self.log_start_offset)
        return removed

    def _start_by_time(self, now_ms: int) -> int:
        retention_ms = self.config.number("retention.ms")
        start = _NO_OFFSET
        if retention_ms < 0:
            return start
        segments = self.log.segments
        ends = [after.base_offset for after in segments[1:]] + [self.log.end_offset]
        for segment, end in zip(segments, ends, strict=True):
            if now_ms - _time_of(segment) <= retention_ms or end > self.high_watermark or not segment.size:
                break
            start = end
        return start

    def _start_by_size(self) -> int:
        retention_bytes = self.config.number("retention.bytes")
        segments = self.log.segments
        excess = sum(segment.size for segment in segments) - retention_bytes
        start = _NO_OFFSET
        if retention_bytes < 0:
            return start
        for segment, after in pairwise(segments):
            if excess < segment.size or after.base_offset > self.high_watermark:
                break
            excess -= segment.size
            start = after.base_offset
        return start

    def close(self) -> None:
        """Write a snapshot of the producers and close the files. Raises OSError."""
        try:
            self._files.take_snapshot(self.producers)
        finally:
            self.log.close()


def _time_of(segment: Segment) -> int:
    """Return the greatest timestamp in ms; without timestamps, the time of the last append."""
    return segment.largest_timestamp if segment.largest_timestamp >= 0 else int(segment.path.stat().st_mtime * 1000)
