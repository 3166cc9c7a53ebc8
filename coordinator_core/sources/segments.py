"""`segments:DIR`: a topic in the log directory of a broker, a copy of one, or a directory written by the coordinator."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.damage import TornEnd
from coordinator_core.log.errors import LogNotFound, LogTruncated, LogUnreadable, RecordsDeleted
from coordinator_core.log.leader_epochs import EpochEntry, first_begun_after, read_leader_epochs
from coordinator_core.log.partition_metadata import partition_of, read_topic_ids
from coordinator_core.log.record_batch import NO_LEADER_EPOCH
from coordinator_core.sources.segment_file import SegmentFile
from coordinator_core.sources.source import one_after_another

CONSUMER_OFFSETS = "__consumer_offsets"
CHUNK_BYTES = 4 * 1024 * 1024

#: How often a segment may vanish between listing and opening before that is not a cleaner at work.
_ATTEMPTS = 5
_SEGMENT_NAME = re.compile(r"(\d{20})\.log")


@dataclass(frozen=True, slots=True)
class _End:
    """How far a segment was once scanned: `position` and `offset` behind its last whole batch, and the leader epoch of that."""

    inode: int
    size: int
    modified: int
    position: int = 0
    offset: int = 0
    leader_epoch: int = NO_LEADER_EPOCH
    #: All leader epochs of the partition when it was scanned.
    epochs: tuple[EpochEntry, ...] = ()


class SegmentSource:
    """The partitions of `topic` found as `TOPIC-N` folders in `directory`; implements `LogSource`.

    `directory` may also be one such folder. Files may grow, be rolled, compacted or deleted while they are read. Raises
    `LogNotFound` where there is no such directory or no such folder in it, `LogUnreadable` where the system refuses.
    """

    def __init__(self, directory: str | Path, topic: str = CONSUMER_OFFSETS) -> None:
        self._directory = Path(directory)
        self._topic = topic
        self._ends: dict[Path, _End] = {}
        #: The newest segment of each partition when its end was last asked for.
        self._newest: dict[int, _End] = {}
        if not self._folders():
            raise LogNotFound(f"{self._directory}: no {topic}-N folder in it")

    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending; those without any segment yet too."""
        return tuple(sorted(self._folders()))

    def earliest_offsets(self) -> dict[int, int]:
        """Base offset of the first segment of each partition."""
        return {partition: self._earliest_offset(partition) for partition in self.partitions()}

    def end_offsets(self) -> dict[int, int]:
        """The offset behind the last whole batch of each partition: its log end, even where the high watermark is lower."""
        return {partition: self._end_offset(partition) for partition in self.partitions()}

    def read_columns(
        self, partition: int, start: int, end: int | None = None, *, chunk_bytes: int = CHUNK_BYTES
    ) -> Iterator[RecordColumns]:
        """The records from `start` up to, not including, `end` (without one: to the end), in pieces of about `chunk_bytes`.

        A `start` of 0 is the beginning wherever that is. Raises `LogTruncated` where the partition ends before `start`, or, after
        whatever it has, before `end`; `RecordsDeleted` where it begins behind `start`.
        """
        self._expect_beginning_at(partition, start)
        self._expect_end_at(partition, start)
        next_offset = max(start, 0)
        open_file: SegmentFile | None = None
        try:
            while end is None or next_offset < end:
                bases = list(self._segments(partition))
                if not bases:
                    break
                index = max(bisect_right(bases, next_offset) - 1, 0)
                next_offset = before = max(next_offset, bases[index])
                open_file = self._opened(partition, next_offset, open_file)
                for columns in open_file.read(next_offset, end, chunk_bytes):
                    next_offset = columns.next_offset
                    yield columns
                # A segment is asked again until it has nothing new: compaction may have merged its successor into it.
                if next_offset == before:
                    if index + 1 == len(bases):
                        break
                    next_offset = bases[index + 1]
        finally:
            if open_file is not None:
                open_file.close()
        if end is not None and next_offset < end:
            self._expect_end_at(partition, end)

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Several partitions, one after the other; see `LogSource`."""
        return one_after_another(self.read_columns, wanted)

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """Bytes behind the last whole batch of the newest segments. In older segments they are damage that reading reports."""
        return tuple(end for partition in self.partitions() if (end := self._torn_end(partition)) is not None)

    def topic_ids(self) -> dict[UUID, str]:
        """Topic ids from the `partition.metadata` files of all topics in the directory."""
        return read_topic_ids(self._directory.parent if self._is_folder() else self._directory)

    @property
    def topic_id(self) -> UUID | None:
        """None: a log that is put into another topic's folder, as when a broker takes it over, is still the same log."""
        return None

    def leader_epochs(self) -> dict[int, int]:
        """Leader epoch of the last batch of each partition when `end_offsets` last asked.

        Those without batches in their newest segment, or with batches of formats that have no epochs, are left out.
        """
        return {p: end.leader_epoch for p, end in self._newest.items() if end.leader_epoch != NO_LEADER_EPOCH}

    def cut_back(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Where logs were cut back below a position, however far they have grown again since; see `LogSource`.

        Whoever opens the log to write begins a leader epoch where the log ends then (`LeaderEpochFileCache`): below a position
        of an earlier epoch only if what was between is lost.
        """
        folders = self._folders()
        begun = {
            partition: first_begun_after(epoch, read_leader_epochs(folders[partition]))
            for partition, (_, epoch) in positions.items()
            if partition in folders
        }
        return {p: offset for p, offset in begun.items() if offset is not None and offset < positions[p][0]}

    def close(self) -> None:
        """Nothing stays open between calls."""

    def _is_folder(self) -> bool:
        named = partition_of(self._directory.name)
        return named is not None and named[0] == self._topic

    def _folders(self) -> dict[int, Path]:
        candidates = [self._directory] if self._is_folder() else self._listed(self._directory)
        named = ((partition_of(path.name), path) for path in candidates)
        return {name[1]: path for name, path in named if name is not None and name[0] == self._topic and path.is_dir()}

    def _segments(self, partition: int) -> dict[int, Path]:
        """Segment files of a partition by base offset, ascending."""
        folder = self._folders().get(partition)
        if folder is None:
            raise LogNotFound(f"{self._directory}: no folder {self._topic}-{partition} in it")
        matches = ((_SEGMENT_NAME.fullmatch(path.name), path) for path in self._listed(folder))
        return dict(sorted((int(match[1]), path) for match, path in matches if match))

    @staticmethod
    def _listed(folder: Path) -> list[Path]:
        try:
            return list(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise LogNotFound(f"{folder}: no such directory") from error
        except OSError as error:
            raise LogUnreadable(f"{folder}: {error.strerror}") from error

    def _opened(self, partition: int, offset: int, open_file: SegmentFile | None) -> SegmentFile:
        """The segment in charge of `offset`: `open_file` while it is that, else another, for which it is closed."""
        for _ in range(_ATTEMPTS):
            segments = self._segments(partition)
            path = segments.get(max((base for base in segments if base <= offset), default=min(segments, default=-1)))
            if path is None:
                continue
            if open_file is not None and open_file.is_still(path):
                return open_file
            try:
                opened = SegmentFile(path)
            except FileNotFoundError:
                continue
            if open_file is not None:
                open_file.close()
            return opened
        raise LogUnreadable(
            f"{self._directory}: the segment of partition {partition} with offset {offset} vanishes each time it is listed"
        )

    def _expect_beginning_at(self, partition: int, offset: int) -> None:
        first = self._earliest_offset(partition)
        if 0 < offset < first:
            raise RecordsDeleted(
                f"{self._directory}: partition {partition} begins at offset {first}, behind offset {offset}: "
                "the records between were deleted"
            )

    def _expect_end_at(self, partition: int, offset: int) -> None:
        actual = self._end_offset(partition)
        if actual < offset:
            raise LogTruncated(
                f"{self._directory}: partition {partition} ends at offset {actual}, before offset {offset}: "
                "the log was truncated, recreated or restored since it was last read"
            )

    def _earliest_offset(self, partition: int) -> int:
        return next(iter(self._segments(partition)), 0)

    def _end_offset(self, partition: int) -> int:
        segments = self._segments(partition)
        if not segments:
            return 0
        base, path = list(segments.items())[-1]
        self._newest[partition] = end = self._scanned(path)
        return max(base, end.offset)

    def _torn_end(self, partition: int) -> TornEnd | None:
        segments = self._segments(partition)
        if not segments:
            return None
        base, path = list(segments.items())[-1]
        end = self._scanned(path)
        size = end.size - end.position
        return TornEnd(str(path), partition, max(base, end.offset), end.position, size) if size > 0 else None

    def _scanned(self, path: Path) -> _End:
        """The end of one segment; a file that only grew is scanned from where the last scan ended.

        One that was cut back may have grown to its former size since. Whoever opens the log to write begins a leader epoch.
        """
        try:
            file = SegmentFile(path)
        except FileNotFoundError as error:
            raise LogUnreadable(f"{path}: deleted while it was looked at") from error
        try:
            status, known = file.status(), self._ends.get(path)
            stamp = status.st_ino, status.st_size, status.st_mtime_ns
            if known is not None and (known.inode, known.size, known.modified) == stamp:
                return known
            epochs = tuple(read_leader_epochs(path.parent))
            if known is None or (known.inode, known.epochs) != (status.st_ino, epochs) or status.st_size < known.size:
                known = _End(*stamp)
            further = file.scan_end(known.position, CHUNK_BYTES)
        finally:
            file.close()
        epoch = further.leader_epoch if further.consumed else known.leader_epoch
        self._ends[path] = end = _End(*stamp, known.position + further.consumed, max(known.offset, further.offset), epoch, epochs)
        return end
